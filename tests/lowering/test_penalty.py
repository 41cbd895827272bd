"""The penalty against its closed form, against an explicit loop, and what it leaves alone."""

import pytest
import torch
from torch import nn

import jostle
from jostle.base.errors import UsageError
from jostle.lowering import SensitivityPenalty, UnalignedSquares


class Watched(nn.Module):
    """A model that keeps the batches it was asked about."""

    def __init__(self, inner):
        super().__init__()
        self.inner, self.seen = inner, []

    def forward(self, x):
        self.seen.append(x)
        return self.inner(x)


def network(*layers, inputs=12, classes=3):
    return nn.Sequential(nn.Flatten(), nn.Linear(inputs, 8), nn.Tanh(), *layers, nn.Linear(8, classes))


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def gradients(loss, model):
    return torch.autograd.grad(loss, list(model.parameters()))


@pytest.mark.parametrize(
    ("view", "shape"),
    [
        (jostle.Rows(), (4, 3)),
        (jostle.Patches(2), (2, 4, 6)),
        (UnalignedSquares(2), (2, 4, 5)),
        (UnalignedSquares(2, released=True), (2, 4, 5)),
        (jostle.Whole(), (5,)),
    ],
)
def test_linear_models_have_a_closed_form(view, shape):
    """f(x) = W x: strength * std^2 * mean over tokens of the squared norm of W's part of the token / classes."""
    std, strength, classes = 1.7, 0.4, 5
    model, x = nn.Sequential(nn.Flatten(), nn.Linear(torch.zeros(shape).numel(), classes)), torch.randn(40, *shape)
    images = model[1].weight.detach().view(classes, *shape)
    parts = view.grid(images).reshape(classes, view.num_tokens(shape), -1)
    expected = strength * std**2 * float(parts.square().sum(dim=(0, 2)).mean()) / classes
    penalty, noise = SensitivityPenalty(tokens=view, std=std, strength=strength), generator(1)
    with torch.no_grad():
        sampled = torch.stack([penalty(model, x, generator=noise) for _ in range(300)])
    assert abs(float(sampled.mean()) - expected) < 4 * float(sampled.std()) / len(sampled) ** 0.5
    assert float(sampled.std()) / len(sampled) ** 0.5 < 0.02 * expected  # the test can tell


def test_bits_have_an_exact_answer():
    """A flip of x_i changes w . x by 2 w_i; tokens are few, so the mean over many calls is near the exact mean."""
    weights = torch.tensor([0.5, -1.0, 2.0, 0.0])
    bits = torch.randint(2, (64, 4)).double() * 2 - 1
    penalty = SensitivityPenalty(tokens="coordinates", perturbation=jostle.SignFlip(), strength=1.0)
    sampled = torch.stack([penalty(lambda x: x @ weights, bits) for _ in range(300)])
    expected = float((2 * weights).square().mean())
    assert abs(float(sampled.mean()) - expected) < 4 * float(sampled.std()) / len(sampled) ** 0.5


@pytest.mark.parametrize("is_handed_in", [False, True])
def test_value_and_gradient_are_those_of_an_explicit_loop(is_handed_in):
    model, x, strength = Watched(network()), torch.randn(6, 4, 3), 0.3
    clean = model.inner(x) if is_handed_in else None
    penalty = SensitivityPenalty(tokens="rows", std=0.8, strength=strength)
    term = penalty(model, x, clean=clean)
    jostled = model.seen[-1]
    assert len(model.seen) == (1 if is_handed_in else 2)
    assert ((jostled != x).any(dim=2).sum(dim=1) == 1).all()
    explicit = 0.0
    for before, after in zip(x, jostled, strict=True):
        for logit in range(3):
            explicit = explicit + (model.inner(after[None])[0, logit] - model.inner(before[None])[0, logit]) ** 2
    explicit = strength * explicit / (6 * 3)
    torch.testing.assert_close(term, explicit)
    for mine, its in zip(gradients(term, model), gradients(explicit, model), strict=True):
        torch.testing.assert_close(mine, its)


def test_detached_logits_stop_the_gradient_of_the_clean_pass():
    model, x, penalty = network(), torch.randn(6, 4, 3), SensitivityPenalty(tokens="rows")
    through, stopped = (
        gradients(penalty(model, x, clean=clean, generator=generator()), model)
        for clean in (model(x), model(x).detach())
    )
    assert not torch.allclose(through[0], stopped[0])
    jostled = Watched(model)
    penalty(jostled, x, clean=model(x), generator=generator())
    alone = gradients(0.25 * (model(jostled.seen[0]) - model(x).detach()).square().mean(), model)
    torch.testing.assert_close(stopped, alone)


def test_clean_logits_handed_in_change_nothing_but_the_cost():
    model, x = network(), torch.randn(6, 4, 3)
    penalty = SensitivityPenalty(tokens="rows")
    own, handed = penalty(model, x, generator=generator()), penalty(model, x, clean=model(x), generator=generator())
    assert torch.equal(own, handed)


def test_combine_is_the_objective_of_the_paper_and_the_call_is_the_term():
    model, x, loss = network(), torch.randn(6, 4, 3), torch.tensor(2.0)
    penalty = SensitivityPenalty(tokens="rows", strength=0.25)
    change = penalty.change(model, x, generator=generator())
    assert torch.equal(penalty(model, x, generator=generator()), 0.25 * change)
    assert torch.equal(penalty.combine(loss, model, x, generator=generator()), 0.75 * loss + 0.25 * change)
    all_of_it = SensitivityPenalty(tokens="rows", strength=1.0)
    assert torch.equal(all_of_it.combine(loss, model, x, generator=generator()), change)


def test_passes_are_counted_with_the_backward_pass_as_two():
    model, x = network(), torch.randn(6, 4, 3)
    penalty = SensitivityPenalty(tokens="rows")
    penalty(model, x)
    assert penalty.passes == 6 * 2 * 3
    penalty(model, x, clean=model(x))
    assert penalty.passes == 6 * 2 * 3 + 6 * 3
    penalty.combine(torch.tensor(1.0), model, x, clean=model(x))
    assert penalty.passes == 6 * 2 * 3 + 2 * 6 * 3
    with torch.no_grad():
        penalty(model, x)
        penalty(model, x, clean=model(x))
    assert penalty.passes == 6 * 2 * 3 + 2 * 6 * 3 + 6 * 3


def refuse(*_, **__):
    raise AssertionError("the model was called")


@pytest.mark.parametrize("settings", [{"strength": 0}, {"strength": 0.0}, {"std": 0}, {"perturbation": "sphere:0"}])
def test_strength_0_and_std_0_are_exactly_nothing(settings):
    penalty, state = SensitivityPenalty(**settings), torch.random.get_rng_state()
    for inputs in (torch.zeros(2, 1, 8, 8), {"ids": torch.zeros(2, 3, dtype=torch.int64)}):
        term = penalty(refuse, inputs)
        assert term.shape == ()
        assert term == 0
    assert torch.equal(torch.random.get_rng_state(), state)
    assert penalty.passes == 0
    loss = torch.tensor(2.0)
    combined = penalty.combine(loss, refuse, torch.zeros(2, 1, 8, 8))
    assert combined is loss if penalty.strength == 0 else combined == 0.75 * loss


@pytest.mark.parametrize("way", ["added", "combined"])
def test_training_with_strength_0_is_plain_training_bit_for_bit(way):
    def trained(penalty):
        torch.manual_seed(3)
        model = network(nn.BatchNorm1d(8), nn.Dropout(0.3)).float()
        optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
        for _ in range(5):
            x, y = torch.randn(8, 4, 3, dtype=torch.float32), torch.randint(3, (8,))
            loss = nn.functional.cross_entropy(model(x), y)
            if penalty is not None:
                loss = loss + penalty(model, x) if way == "added" else penalty.combine(loss, model, x)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        return model.state_dict()

    plain, nothing, some = (
        trained(penalty)
        for penalty in (None, SensitivityPenalty(strength=0), SensitivityPenalty(tokens="rows", strength=0.1))
    )
    assert all(torch.equal(plain[name], nothing[name]) for name in plain)
    assert not torch.equal(plain["1.weight"], some["1.weight"])


def test_padding_and_masks():
    """Mean pooling without the mask would feel noise in padding; the penalty must not."""
    mask = torch.tensor([[1, 1, 0, 0], [1, 0, 0, 0]])
    batch = {"inputs_embeds": torch.randn(2, 4, 3), "attention_mask": mask}

    def feels_padding_only(inputs_embeds, attention_mask):
        return {"logits": (inputs_embeds * (1 - attention_mask)[:, :, None]).sum(dim=(1, 2))[:, None]}

    def feels_tokens_only(inputs_embeds, attention_mask):
        return ((inputs_embeds * attention_mask[:, :, None]).sum(dim=(1, 2)), "more")

    penalty = SensitivityPenalty(tokens=jostle.Rows())
    assert all(penalty(feels_padding_only, batch) == 0 for _ in range(50))
    assert penalty(feels_tokens_only, batch) > 0
    x = torch.randn(2, 4, 3)
    assert all(penalty(lambda given: given[:, 2:].sum(dim=(1, 2)), x, mask=mask) == 0 for _ in range(50))
    assert penalty(lambda given: given[:, :2].sum(dim=(1, 2)), x, mask=mask) > 0


def test_token_ids_of_a_vocabulary():
    table, ids = torch.randn(9, 4), torch.randint(9, (200, 6))
    penalty = SensitivityPenalty(tokens="rows", perturbation=jostle.UniformToken(9), strength=1.0)
    sampled = torch.stack([penalty(lambda x: table[x].sum(dim=1), ids) for _ in range(50)])
    pairs = (table[ids.flatten()][:, None] - table[None]).square().mean(dim=2).mean()  # all present, all new tokens
    assert abs(float(sampled.mean() - pairs)) < 4 * float(sampled.std()) / 50**0.5


def test_dropout_is_independent_in_the_two_passes():
    """So even a jostle too small to matter costs something in train mode, and nothing in eval mode."""
    model, x = network(nn.Dropout(0.5)), torch.randn(200, 4, 3)
    penalty = SensitivityPenalty(tokens="rows", std=1e-9, strength=1.0)
    with torch.no_grad():
        sampled = torch.stack([penalty(model, x) for _ in range(60)])
        kept = model[2](model[1](model[0](x)))  # what dropout sees, and keeps or drops with probability 1/2, doubled
        variance = (kept.square() @ model[4].weight.square().T).mean()  # of a logit under dropout
        assert abs(float(sampled.mean() - 2 * variance)) < 4 * float(sampled.std()) / 60**0.5
        assert float(penalty(model.eval(), x)) < 1e-15
    assert not model.training  # the mode is the caller's


def test_batchnorm_sees_clean_and_jostled_batches_apart():
    model, x = network(nn.BatchNorm1d(8)), torch.randn(6, 4, 3)
    twin = network(nn.BatchNorm1d(8))
    twin.load_state_dict(model.state_dict())
    watched, penalty = Watched(model), SensitivityPenalty(tokens="rows", std=3.0, strength=1.0)
    term = penalty(watched, x)
    clean, jostled = watched.seen
    apart = (twin(jostled), twin(clean))  # in either order: train mode does not read the running statistics
    torch.testing.assert_close(term, (apart[0] - apart[1]).square().mean())
    joined = twin(torch.cat([clean, jostled])).chunk(2)
    assert not torch.allclose(term, (joined[0] - joined[1]).square().mean(), rtol=1e-3)


def test_batchnorm_takes_the_jostled_batch_into_its_running_statistics():
    model, x = network(nn.BatchNorm1d(8)), torch.randn(6, 4, 3)
    twin = network(nn.BatchNorm1d(8))
    twin.load_state_dict(model.state_dict())
    watched = Watched(model)
    logits = model(x)
    SensitivityPenalty(tokens="rows")(watched, x, clean=logits)
    assert model[3].num_batches_tracked == 2
    twin(x), twin(watched.seen[0])
    assert torch.equal(model[3].running_mean, twin[3].running_mean)
    assert torch.equal(model[3].running_var, twin[3].running_var)
    before = model[3].running_mean.clone()
    SensitivityPenalty(tokens="rows")(model.eval(), x)
    assert torch.equal(model[3].running_mean, before)


@pytest.mark.parametrize("seed", [0, 5])
def test_a_seeded_loop_is_reproducible(seed):
    model, x, penalty = network(), torch.randn(6, 4, 3), SensitivityPenalty(tokens="rows")

    def terms():
        torch.manual_seed(seed)
        return torch.stack([penalty(model, x) for _ in range(3)])

    first = terms()
    assert torch.equal(first, terms())
    assert len(set(first.tolist())) == 3  # another token and another draw in every call


def test_half_precision_logits_are_compared_in_single_precision():
    x = torch.randn(6, 4, 3, dtype=torch.float32)
    model = network().float()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        term = SensitivityPenalty(tokens="rows")(model, x)
    assert term.dtype == torch.float32
    term.backward()
    assert all(weights.grad.isfinite().all() for weights in model.parameters())


def test_a_batch_of_one():
    x = torch.randn(1, 4, 3)
    assert SensitivityPenalty(tokens="rows")(network(), x) > 0
    with pytest.raises(UsageError, match="a batch of 1 input is too few for BatchNorm in train mode; use larger"):
        SensitivityPenalty(tokens="rows")(network(nn.BatchNorm1d(8)), x)
    with pytest.raises(UsageError, match=r"answered 1 inputs with outputs of shape \(\)"):
        SensitivityPenalty(tokens="rows")(lambda given: given.sum(dim=(1, 2)).squeeze(), x)


def test_errors_of_the_model_are_the_callers():
    def broken(x):
        raise ValueError("my own")

    with pytest.raises(ValueError, match=r"^my own$"):
        SensitivityPenalty(tokens="rows")(broken, torch.randn(1, 4, 3))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"std": 1.0, "perturbation": "sign-flip"}, "std=1.0 and perturbation='sign-flip' .*give one of them"),
        ({"strength": 1.5, "mix": True}, r"strength=1.5 .* leaves the loss a share of -0.5; combine and mix need"),
        ({"tokens": "patch:4"}, "unknown token view 'patch'; did you mean patches"),
        ({"perturbation": "gauss"}, "unknown perturbation 'gauss'"),
    ],
)
def test_settings_that_cannot_be(settings, message):
    with pytest.raises(UsageError, match=message) as caught:
        SensitivityPenalty(**settings)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("inputs", "clean", "model", "message"),
    [
        (torch.zeros(2, 1, 6, 6), None, network(inputs=36), "tokens=patches:4 cannot cut inputs of shape"),
        (
            torch.zeros(2, 4, 4, dtype=torch.int64),
            None,
            network(inputs=16),
            "needs real-valued tokens, but they are int64",
        ),
        (torch.zeros(2, 4, 4), torch.zeros(2, 1), network(inputs=16), r"clean has shape \(2, 1\), but .* \(2, 3\)"),
        (
            torch.zeros(2, 4, 4),
            torch.zeros(3, 3),
            network(inputs=16),
            r"clean must be the model's own output for these 2 inputs: .* of shape \(3, 3\); expected \(2, classes",
        ),
        (torch.zeros(2, 4, 4), None, lambda x: x.flatten(1).argmax(dim=1), "torch.int64; expected real-valued logits"),
        (torch.zeros(2, 4, 4), None, lambda x: "logits", "must answer with a tensor of outputs, not str"),
    ],
)
def test_what_does_not_fit_is_one_clear_line(inputs, clean, model, message):
    with pytest.raises(UsageError, match=message) as caught:
        SensitivityPenalty()(model, inputs, clean=clean)
    assert "\n" not in str(caught.value)


def test_combine_needs_a_share():
    penalty = SensitivityPenalty(tokens="rows", strength=4.0)
    model, x = network(), torch.randn(2, 4, 3)
    assert penalty(model, x) > 0
    with pytest.raises(UsageError, match=r"strength=4.0 .* a share of -3; .* or add the penalty to the loss$"):
        penalty.combine(torch.tensor(1.0), model, x)


def test_descriptions_tell_penalties_apart():
    penalties = [
        SensitivityPenalty(),
        SensitivityPenalty(std=2.0),
        SensitivityPenalty(strength=0.5),
        SensitivityPenalty(mix=True),
        SensitivityPenalty(tokens=jostle.Patches(7)),
        SensitivityPenalty(tokens=UnalignedSquares(4)),
        SensitivityPenalty(tokens=UnalignedSquares(4, released=True)),
        SensitivityPenalty(perturbation="sphere:1"),
    ]
    assert len({penalty.describe() for penalty in penalties}) == len(penalties)
    assert repr(penalties[3]) == (
        "sensitivity-penalty(tokens=patches:4, perturbation=gaussian-noise:std=1, strength=0.25, mix)"
    )
    assert SensitivityPenalty(std=1.0).describe() == penalties[0].describe()


@pytest.mark.parametrize("inputs", [[torch.zeros(2, 3)], (torch.zeros(2, 3), torch.zeros(2)), None])
def test_a_penalty_of_strength_0_looks_at_its_inputs_too(inputs):
    for penalty in (SensitivityPenalty(strength=0), SensitivityPenalty(std=0)):
        with pytest.raises(UsageError, match=r"inputs of type \w+ are no batch: give a tensor"):
            penalty(network(), inputs)
    assert SensitivityPenalty(strength=0)(network(), torch.zeros(0, 4, 3)) == 0  # nothing is nothing


def test_combine_with_its_arguments_in_another_order():
    model, x = network(), torch.randn(2, 4, 3)
    for loss in (model, None):
        with pytest.raises(UsageError, match=r"must be a number: call combine\(loss, model, inputs\)"):
            SensitivityPenalty(tokens="rows").combine(loss, x, model)
    with pytest.raises(UsageError, match="inputs of type Sequential are no batch"):
        SensitivityPenalty(tokens="rows")(x, model)


def test_nan_among_the_inputs_makes_the_penalty_nan():
    """As it does a loss; a gradient scaler, or the loop, decides what to do about it."""
    x = torch.randn(2, 4, 3)
    x[0, 0, 0] = float("nan")
    assert SensitivityPenalty(tokens="rows")(network(), x).isnan()
