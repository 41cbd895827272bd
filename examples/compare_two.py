"""Two small networks, trained briefly on 500 digits, compared on the same patches and the same noise.

Needs the digits that come with ``pip install "jostle[samples]"``; takes a few seconds. The difference is taken trial by
trial, so its interval is narrower than those of the two networks would suggest.
"""

import torch

import jostle
from jostle import data, models, training

SIZES = {
    "mlp": {"hidden": (64,)},
    "vit-simple": {"patch_size": 7, "dim": 64, "depth": 1, "heads": 4, "dim_head": 16, "mlp_dim": 128},
}


def main() -> jostle.Comparison:
    torch.set_num_threads(1)  # networks this small are faster on one thread
    digits, networks = data.load("mnist-5000", limit=500), {}
    for name, sizes in SIZES.items():
        networks[name] = models.create(name, image_size=28, channels=1, seed=0, **sizes)
        history = training.fit(networks[name], digits, lr=3e-3, batch_size=20, max_epochs=20, target_accuracy=0.95)
        print(f"{name}: {history.accuracies[-1]:.1%} of the training digits right after {history.epochs} epochs")
    result = jostle.compare(
        networks,
        digits,
        tokens=jostle.Patches(7),
        perturbation=jostle.GaussianNoise(std=2.0),
        plan=jostle.Until(half_width=0.03),
    )
    print(result)
    return result


if __name__ == "__main__":
    main()
