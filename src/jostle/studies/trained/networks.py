"""Where trained networks are kept, so that studies which need the same one train it once.

    <out>/networks/<model>-<hash>/recipe.json           all that decides the weights
                                  training.safetensors  the checkpoint, at the end the trained network
                                  measured-<hash>.jsonl what was measured on the way and at the end, by which code

The hash is of everything that decides the weights, the code of models, training and data included; so a network is
never taken for another, and a record does not depend on whether its network was there already. Numbers of an older
estimator are likewise left alone and measured again. Without a kept network a study trains it. Deleting the folder,
while nothing runs, costs time and nothing else.
"""

import contextlib
import functools
import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

import jostle
from jostle.data import Dataset
from jostle.files import write_text
from jostle.studies.trained.settings import Network, Training
from jostle.training.recipe import checksum

_DECIDING = ("models", "training", "data")  # packages whose code decides the weights
_LOWERING = ("lowering", "perturbations", "tokens")  # and those that do so for networks trained for low sensitivity
_MEASURING = (
    "estimates", "sampling", "perturbations", "responses", "tokens", "intervals", "randomness", "corruptions",
)  # and those that decide the numbers  # fmt: skip


def recipe(chosen: Network, settings: Training, images: Dataset, seed: int, device: str) -> dict[str, Any]:
    """All that decides the weights of a trained network, as a file holds it."""
    fields = ("dataset", "relabel", "limit", "batch_size", "target_accuracy")
    training = {name: getattr(settings, name) for name in fields}
    epochs = chosen["max_epochs"] or settings.max_epochs
    made = {"network": {**chosen, "max_epochs": epochs}, **training, "seed": seed}
    code = _DECIDING + (_LOWERING if {"penalty", "augment"} & set(chosen) else ())
    place = {"images": checksum(images), "device": device, "torch": torch.__version__, "code": _code(code)}
    return dict(json.loads(json.dumps(made | place)))


@contextlib.contextmanager
def kept(folder: Path, made: dict[str, Any]) -> Iterator[Path]:
    """The folder of the network of this recipe, held for the caller: another process that wants it waits."""
    digest = hashlib.sha256(json.dumps(made, sort_keys=True).encode()).hexdigest()[:12]
    place = folder / f"{made['network']['model']}-{digest}"
    place.mkdir(parents=True, exist_ok=True)
    with (place / ".lock").open("w") as lock:
        try:
            import fcntl

            fcntl.flock(lock, fcntl.LOCK_EX)
        except ImportError:  # not on Windows; there two processes may train the same network at once
            pass
        else:
            for part in place.glob(".*.part"):  # what a kill left of a checkpoint; nobody else is here
                part.unlink(missing_ok=True)
        if not (place / "recipe.json").exists():
            write_text(place / "recipe.json", json.dumps(made, indent=1) + "\n")
        yield place


def measurements(place: Path) -> Path:
    """The file of what the present code measured of the network in ``place``."""
    return place / f"measured-{_code(_MEASURING)}.jsonl"


@functools.cache
def _code(packages: tuple[str, ...]) -> str:
    """A hash of the code of packages and modules."""
    root = Path(jostle.__file__).parent
    digest = hashlib.sha256()
    for package in packages:
        for path in [*root.glob(f"{package}.py"), *sorted((root / package).rglob("*.py"))]:
            digest.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:12]
