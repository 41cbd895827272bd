"""What the demo trains and measures."""

from dataclasses import dataclass

from jostle.studies.schema import Struct
from jostle_papers.trained.settings import Sizes


@dataclass(frozen=True)
class DemoNetwork(Struct):
    """One network of the demo: a name of ``jostle.models``, its sizes and its learning rate."""

    model: str
    sizes: Sizes
    lr: float


@dataclass(frozen=True)
class DemoSettings(Struct):
    """All settings of the demo. A demo can only be continued with the same settings.

    Arguments:
        networks: what is trained, by name.
        dataset: trained on, and measured on its training part, as in paper 1.
        limit: use only this many digits; None for all.
        target_accuracy: training stops at this training accuracy, so that networks are compared at matched accuracy.
        max_epochs: training stops here at the latest.
        patch: side of a token in pixels; 7 gives the 16 tokens of paper 1's MNIST experiment.
        training_std: noise at which sensitivity is followed over training.
        training_half_width: precision of that curve.
        stds: noise levels of the sweep after training.
        relative, max_passes: precision of the sweep.
        faint_std: noise so weak that it should hardly matter, for blank against inked patches.
        patch_half_width: precision of that comparison.
        example_draws: draws for each patch of the example digit.
        seed: decides the first weights, the order of the data and the noise.
    """

    networks: dict[str, DemoNetwork]
    dataset: str = "mnist-5000"
    limit: int | None = None
    target_accuracy: float = 0.99
    max_epochs: int = 20
    patch: int = 7
    training_std: float = 2.0
    training_half_width: float = 0.015
    stds: tuple[float, ...] = (0.5, 1.0, 1.5, 2.0, 3.0, 5.0, 8.0)
    relative: float = 0.1
    max_passes: int = 20_000
    faint_std: float = 0.01
    patch_half_width: float = 0.005
    example_draws: int = 100
    seed: int = 0


_IMAGE: Sizes = {"image_size": 28, "channels": 1}

FULL = DemoSettings(
    networks={
        "ViT": DemoNetwork(
            "vit-simple",
            {**_IMAGE, "patch_size": 7, "dim": 64, "depth": 4, "heads": 4, "dim_head": 16, "mlp_dim": 128},
            lr=1e-3,
        ),
        "MLP": DemoNetwork("mlp", _IMAGE, lr=1e-3),
        "CNN": DemoNetwork("cnn", {**_IMAGE, "width": 16}, lr=5e-4),
        "ConvMixer": DemoNetwork("convmixer", {**_IMAGE, "patch_size": 4, "dim": 64, "depth": 4}, lr=5e-4),
    }
)

QUICK = DemoSettings(
    networks={
        "ViT": DemoNetwork(
            "vit-simple",
            {**_IMAGE, "patch_size": 7, "dim": 16, "depth": 1, "heads": 2, "dim_head": 8, "mlp_dim": 16},
            3e-3,
        ),
        "MLP": DemoNetwork("mlp", _IMAGE, 3e-3),
    },
    limit=200,
    target_accuracy=0.8,
    max_epochs=3,
    training_half_width=0.1,
    stds=(1.0, 5.0),
    relative=0.5,
    max_passes=1_000,
    patch_half_width=0.2,
    example_draws=5,
)
