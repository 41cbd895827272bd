"""What studies of image networks share: train one network, follow its sensitivity on the way, record both."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from jostle import data, models
from jostle.data import Dataset
from jostle.estimates import measure
from jostle.figures import Series, curves
from jostle.perturbations import GaussianNoise
from jostle.progress import State
from jostle.results import Record, Store
from jostle.sampling import Until
from jostle.studies.records import Records
from jostle.studies.settings import Settings
from jostle.studies.study import Cell, Context, Drawing, Study
from jostle.tokens import Patches
from jostle.training import Epoch, evaluate, fit

MEASURED_AFTER = (
    0,
    1,
    2,
    3,
    5,
    8,
    12,
    16,
    20,
    25,
    30,
    40,
    50,
    60,
    80,
    100,
    150,
    200,
    300,
    400,
)  # epochs, and after the last one

Network = Mapping[str, Any]  # what network() returns: plain, so that settings can be written down


def network(
    model: str, lr: float, optimizer: str = "sgd", max_epochs: int | None = None, **sizes: Any
) -> dict[str, Any]:
    """An architecture of ``jostle.models`` and how it is trained; ``max_epochs`` where the study's are too few."""
    return {"model": model, "sizes": sizes, "lr": lr, "optimizer": optimizer, "max_epochs": max_epochs}


def noise(std: float, tokens: str = "") -> dict[str, Any]:
    """Gaussian noise of this std in one token; the study's own patches unless ``tokens`` is another spec."""
    return {"std": std, "tokens": tokens}


@dataclass(frozen=True, kw_only=True)
class Training(Settings):
    """Data, training and noise of a study of image networks.

    Arguments:
        networks: by name, each made by ``network``.
        dataset: a name of ``jostle.data``.
        relabel: a new label for each class, e.g. 0 and 1 for a binary task; empty for the classes as they are.
        limit, test_limit: how many training and unseen images; None for all.
        batch_size, max_epochs: of training.
        target_accuracy: training ends as soon as this share of the training images is classified right, so that
            networks are compared at matched accuracy.
        patch: height and width of the token.
        std: of the Gaussian noise; pixels lie in [-1, 1].
        passes: most inputs a network is asked about for one number on the way; five times as many at the end.
        final: further measurements of the trained network by name, each made by ``noise``.
    """

    networks: dict[str, dict[str, Any]] = field(default_factory=dict)
    dataset: str = "mnist-5000"
    relabel: tuple[int, ...] = ()
    limit: int | None = None
    test_limit: int | None = None
    batch_size: int = 100
    max_epochs: int = 2
    target_accuracy: float = 1.0
    patch: int = 4
    std: float = 1.0
    passes: int = 4000
    final: dict[str, dict[str, Any]] = field(default_factory=dict)


class TrainingStudy(Study[Training]):
    """A study whose cells are networks trained from several seeds. A subclass has the settings and expectations."""

    def cells(self, settings: Training, seeds: Sequence[int]) -> list[Cell]:
        return [Cell.of(network=name, seed=seed) for seed in seeds for name in settings.networks]

    def measure(self, cell: Cell, settings: Training, context: Context) -> Record:
        return follow(settings.networks[cell.values["network"]], settings, cell.values["seed"], context)

    def figures(self, records: Records[Training]) -> list[Drawing]:
        return [over_training(records), against_accuracy(records)]


def follow(chosen: Network, settings: Training, seed: int, context: Context) -> Record:
    """Train a network and measure its sensitivity after some epochs and at the end.

    The seed decides the weights, the order of the images and the noise; all networks of one seed see the same images
    and the same noise. What was measured is kept beside the checkpoint, so that a killed cell goes on where it was.
    """
    train = load(settings, "train", context)
    model = models.create(chosen["model"], seed=seed, **_sizes(chosen))
    done = Store(context.folder / "epochs.jsonl")
    last = chosen["max_epochs"] or settings.max_epochs

    def on_epoch(epoch: Epoch) -> None:
        is_last = epoch.number == last or epoch.accuracy >= settings.target_accuracy
        key = f"{epoch.number}"
        if key not in done:
            record: Record = {"epoch": epoch.number, "loss": epoch.loss, "accuracy": epoch.accuracy}
            if epoch.number in MEASURED_AFTER or is_last:
                passes = settings.passes * (5 if is_last else 1)
                record["sensitivity"] = jostled(epoch.model, train, settings, seed, noise(settings.std), passes)
            done.append(key, record)
        found = done[key].get("sensitivity", {}).get("value")
        text = f"accuracy {epoch.accuracy:.1%}" + (f"  sensitivity {found:.4f}" if found is not None else "")
        context.report(State(epoch.number / last, epoch.number * len(train), text, "examples"))

    history = fit(
        model,
        train,
        optimizer=chosen["optimizer"],
        lr=chosen["lr"],
        batch_size=settings.batch_size,
        max_epochs=last,
        target_accuracy=settings.target_accuracy,
        seed=seed,
        checkpoint=context.folder / "training.safetensors",
        on_epoch=on_epoch,
        device=context.device,
    )
    epochs = [done[key] for key in done if key.isdigit()]
    for name, jostle in settings.final.items():
        if f"final {name}" not in done:
            done.append(f"final {name}", jostled(model, train, settings, seed, jostle, 5 * settings.passes))
    return {
        "epochs": epochs,
        "stopped": history.stopped,
        "train_accuracy": history.accuracies[-1],
        "test_accuracy": evaluate(model, load(settings, "test", context)).accuracy,
        "sensitivity": epochs[-1]["sensitivity"]["value"],
        "low": epochs[-1]["sensitivity"]["low"],
        "high": epochs[-1]["sensitivity"]["high"],
        "final": {name: done[f"final {name}"] for name in settings.final},
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "data": train.note,
    }


def load(settings: Training, split: str, context: Context) -> Dataset:
    """The training images, which are also those that are jostled, or the unseen ones."""
    limit = settings.limit if split == "train" else settings.test_limit
    images = data.load(settings.dataset, split, limit, folder=context.data, progress=False)
    if not settings.relabel:
        return images
    return images.relabelled(list(settings.relabel), f"{settings.dataset}, relabelled")


def jostled(
    model: Any, images: Dataset, settings: Training, seed: int, jostle: Mapping[str, Any], passes: int
) -> Record:
    """Sensitivity to Gaussian noise in one token of the training images: paper 1 (2403.06925), section 5."""
    m = measure(
        model,
        images.inputs,
        tokens=jostle["tokens"] or Patches(settings.patch),
        perturbation=GaussianNoise(jostle["std"]),
        plan=Until(relative=0.05, max_passes=passes),
        seed=seed,
    )
    return {"value": m.value, "low": m.low, "high": m.high, "level": m.settings.level, "passes": m.passes}


def over_training(records: Records[Training]) -> Drawing:
    """Sensitivity after every measured epoch, the mean over seeds and the range of the seeds."""
    series = []
    for name in records.settings.networks:
        runs = [_by_epoch(record) for record in records.where(network=name).column("epochs")]
        shared = sorted(set.intersection(*(set(run) for run in runs)))
        values = [[run[epoch] for run in runs] for epoch in shared]
        series.append(
            Series(name, shared, [sum(v) / len(v) for v in values], [min(v) for v in values], [max(v) for v in values])
        )
    return Drawing(
        "over-training",
        curves(series, x_label="epochs of training", y_label="sensitivity"),
        f"Sensitivity to noise of std {records.settings.std:.3g} in one patch over training; bands are the range over "
        "seeds, up to the epoch at which the first seed ended.",
        "Curves of sensitivity over epochs, one for each network.",
    )


def against_accuracy(records: Records[Training]) -> Drawing:
    """The same against training accuracy: where networks can be compared."""
    series = []
    for name in records.settings.networks:
        points = [
            (epoch["accuracy"], epoch["sensitivity"]["value"])
            for record in records.where(network=name).column("epochs")
            for epoch in record
            if "sensitivity" in epoch and epoch["accuracy"] >= 0.5
        ]
        if points:
            x, y = zip(*sorted(points), strict=True)
            series.append(Series(name, x, y))
    if not series:
        series = [Series("no network has reached 50 %", [0.0], [0.0])]
    return Drawing(
        "against-accuracy",
        curves(series, x_label="training accuracy", y_label="sensitivity"),
        "The same measurements against the training accuracy at which they were made; all seeds of a network together.",
        "Curves of sensitivity against training accuracy, one for each network.",
    )


def _by_epoch(epochs: list[Record]) -> dict[int, float]:
    return {epoch["epoch"]: epoch["sensitivity"]["value"] for epoch in epochs if "sensitivity" in epoch}


def _sizes(chosen: Network) -> dict[str, Any]:
    """Sizes as they were before they were written down: lists are tuples again."""
    return {key: tuple(value) if isinstance(value, list) else value for key, value in chosen["sizes"].items()}
