"""Train the small networks that come with jostle, on digits that jostle draws, and write them into the package.

``jostle try`` and ``jostle play`` use them, and ``sample:NAME`` names them on the command line. Takes some minutes.
"""

from pathlib import Path

import torch

from jostle import data, models
from jostle.integrations.sample import FOLDER, SAMPLES
from jostle.training import evaluate, fit, save_weights

RATES = {"vit": 2e-3, "mlp": 1e-3, "cnn": 1e-3}  # of Adam


def main() -> None:
    """Train all of them to 99.5 % of the training digits."""
    torch.set_num_threads(1)
    train, test = data.load("drawn-digits"), data.load("drawn-digits", "test")
    for name, (model, sizes) in SAMPLES.items():
        network = models.create(model, seed=0, **sizes)
        history = fit(network, train, lr=RATES[name], batch_size=50, max_epochs=30, target_accuracy=0.995, seed=0)
        save_weights(network, Path(str(FOLDER)) / f"{name}.safetensors")
        shares = f"{history.accuracies[-1]:.3f} of train, {evaluate(network, test).accuracy:.3f} of test digits"
        print(name, shares)  # noqa: T201


if __name__ == "__main__":
    main()
