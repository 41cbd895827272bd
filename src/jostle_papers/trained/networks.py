"""Where trained networks are kept, so that several studies that need the same network train it once.

    <out>/networks/<model>-<hash>/recipe.json           all that decides the weights
                                  training.safetensors  the checkpoint, at the end the trained network
                                  measured-<hash>.jsonl what was measured on the way and at the end, by which code

The hash is of everything that decides the weights, also of the code of models, training and data. So a network is
never mistaken for another, and a record does not depend on whether its network was already there. Numbers of an older
estimator are kept, not used, and measured again. A study trains a network that is not there. Deleting the folder, while
nothing runs, costs time and changes no number.
"""

import ast
import contextlib
import functools
import hashlib
import importlib.util
import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from filelock import FileLock

from jostle.base.errors import FailureError
from jostle.base.files import write_text
from jostle.data import Dataset
from jostle.studies.schema import IfGiven, Struct, to_plain
from jostle.training.recipe import checksum
from jostle_papers.trained.settings import Network, TrainingSettings

# Packages whose code decides the weights, those that do so for networks trained for low sensitivity, and those that
# decide the numbers measured of a network.
_DECIDING = ("jostle.models", "jostle.training", "jostle.data")
_LOWERING = ("jostle.lowering", "jostle.perturbations", "jostle.tokens")
_MEASURING = (
    "jostle.estimates",
    "jostle.sampling",
    "jostle.perturbations",
    "jostle.responses",
    "jostle.tokens",
    "jostle.intervals",
    "jostle.base.randomness",
    "jostle.corruptions",
)


@dataclass(frozen=True, kw_only=True)
class NetworkRecipe(Struct):
    """All that decides the weights of a trained network.

    Arguments:
        network: with the number of epochs that it is trained at most.
        dataset, relabel, limit, batch_size, target_accuracy, evaluate_every: as in ``TrainingSettings``; the last says
            where training may stop.
        seed: of weights and order.
        images: a checksum of the training inputs.
        device, torch: where, and with which version.
        code: a hash of the code.
    """

    network: Network
    dataset: str
    relabel: tuple[int, ...]
    limit: int | None
    batch_size: int
    target_accuracy: float | None
    seed: int
    images: int
    device: str
    torch: str
    code: str
    evaluate_every: IfGiven[int | None] = None


def make_recipe(network: Network, settings: TrainingSettings, images: Dataset, seed: int, device: str) -> NetworkRecipe:
    """The recipe of a network under these settings."""
    lowers = network.penalty is not None or network.augment is not None
    return NetworkRecipe(
        network=replace(network, max_epochs=network.max_epochs or settings.max_epochs),
        dataset=settings.dataset,
        relabel=settings.relabel,
        limit=settings.limit,
        batch_size=settings.batch_size,
        target_accuracy=settings.target_accuracy,
        seed=seed,
        images=checksum(images),
        device=device,
        torch=str(torch.__version__),
        code=_code(_DECIDING + (_LOWERING if lowers else ())),
        evaluate_every=settings.evaluate_every,
    )


@contextlib.contextmanager
def hold_network(folder: Path, recipe: NetworkRecipe) -> Iterator[Path]:
    """The folder of the network of this recipe, held for the caller: another process that wants it waits."""
    made = to_plain(recipe)
    digest = hashlib.sha256(json.dumps(made, sort_keys=True).encode()).hexdigest()[:12]
    place = folder / f"{recipe.network.model}-{digest}"
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FailureError(
            f"no network can be kept in {folder}: {error.strerror or error}; give another --out"
        ) from None
    with FileLock(place / ".lock"):
        for part in place.glob(".*.part"):  # parts of a checkpoint that a kill left behind; no other process is here
            part.unlink(missing_ok=True)
        if not (place / "recipe.json").exists():
            write_text(place / "recipe.json", json.dumps(made, indent=1) + "\n")
        yield place


def measurement_file(place: Path) -> Path:
    """The file of measurements of the network in ``place``, made by the present code."""
    return place / f"measured-{_code(_MEASURING)}.jsonl"


@functools.cache
def _code(packages: tuple[str, ...]) -> str:
    """A hash of the code of packages and modules without docstrings, comments and layout.

    Raises:
        FailureError: if there is no package or module of such a name, since its code would be left out silently.
    """
    digest = hashlib.sha256()
    for package in packages:
        spec = importlib.util.find_spec(package)
        if spec is None or spec.origin is None:
            raise FailureError(f"the code of {package} decides trained networks, but there is no such module")
        folder = Path(spec.origin).parent
        paths = sorted(folder.rglob("*.py")) if spec.submodule_search_locations else [Path(spec.origin)]
        for path in paths:
            digest.update(f"{package}/{path.relative_to(folder).as_posix()}\0".encode())
            digest.update(_statements(path.read_text(encoding="utf-8")).encode() + b"\0")
    return digest.hexdigest()[:12]


def _statements(source: str) -> str:
    """Source code as its syntax tree without docstrings."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and ast.get_docstring(
            node, clean=False
        ):
            node.body = node.body[1:]
    return ast.dump(tree)
