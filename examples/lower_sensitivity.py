"""Lower the sensitivity of a network in your own training loop, and see on unseen digits what it costs.

Make the penalty, add it to the loss, hand it the logits that are there already: the rest is plain PyTorch. Takes one to
two minutes on one core, or seconds with few epochs; needs the digits of ``pip install "jostle[samples]"``.
"""

import torch

import jostle

SIZES = {"patch_size": 7, "dim": 64, "depth": 2, "heads": 4, "dim_head": 16, "mlp_dim": 128}
NOISE = {"tokens": jostle.Patches(7), "perturbation": jostle.GaussianNoise(std=2.0)}
EPOCHS, DIGITS, UNSEEN = 30, jostle.data.load("mnist-5000"), jostle.data.load("mnist-5000", split="test")


def train(penalty: jostle.SensitivityPenalty, seed: int = 0) -> torch.nn.Module:
    torch.manual_seed(seed)
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(DIGITS.inputs, DIGITS.labels), 50, shuffle=True)
    model = jostle.models.create("vit-simple", image_size=28, channels=1, **SIZES)
    optimizer = torch.optim.Adam(model.parameters())
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 3e-3, epochs=EPOCHS, steps_per_epoch=len(loader))
    for x, y in (batch for _ in range(EPOCHS) for batch in loader):
        logits = model(x)
        loss = torch.nn.functional.cross_entropy(logits, y) + penalty(model, x, clean=logits)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    return model.eval()


if __name__ == "__main__":
    torch.set_num_threads(1)  # a network this small is faster on one thread
    plain, penalty = jostle.SensitivityPenalty(strength=0), jostle.SensitivityPenalty(strength=3.0, **NOISE)
    networks = {"plain": train(plain), "penalised": train(penalty)}
    print(jostle.compare(networks, UNSEEN, **NOISE))
    right = [(model(UNSEEN.inputs).argmax(dim=1) == UNSEEN.labels).double() for model in networks.values()]
    gain, error = (right[1] - right[0]).mean(), (right[1] - right[0]).std() / len(UNSEEN) ** 0.5
    print(f"unseen digits right: {right[0].mean():.1%} and {right[1].mean():.1%}; {gain:+.1%} ± {1.96 * error:.1%}")
