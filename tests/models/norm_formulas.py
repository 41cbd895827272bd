"""The norms of ``jostle.models.norms`` from their formulas."""


def by_formula(kind):
    """norm(x, layer) of one kind, with the weights of the layer."""

    def layer_norm(x, layer):
        centred = x - x.mean(dim=-1, keepdim=True)
        return centred / (centred.square().mean(dim=-1, keepdim=True) + 1e-5).sqrt() * layer.weight + layer.bias

    def rms_norm(x, layer):
        return x / (x.square().mean(dim=-1, keepdim=True) + 1e-5).sqrt() * layer.weight

    def dynamic_tanh(x, layer):
        return (layer.alpha * x).tanh() * layer.weight + layer.bias

    return {"layer": layer_norm, "rms": rms_norm, "dyt": dynamic_tanh, "none": lambda x, _: x}[kind]
