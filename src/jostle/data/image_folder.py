"""Images of your own: a folder of JPEG and PNG files, in class folders or flat.

As a spec: ``images:DIR`` or ``images:DIR:size=224,mean=0.5,std=0.5,seed=0``; ``jostle.data.load`` and the command line
take it in place of a dataset's name. Files are decoded when they are needed, so that 20,000 of them take no memory.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from jostle.base import checks, specs
from jostle.base.errors import UsageError
from jostle.data.dataset import Dataset
from jostle.data.preprocessing import PixelMaker, Preprocessing, read_image
from jostle.data.selection import check_limit, check_seed, choose

PREFIX = "images:"
SUFFIXES = (".jpg", ".jpeg", ".png")
_SPLITS = {"train": ("train",), "test": ("val", "validation", "test")}  # folders of each split, as in ImageNet
_OPTIONS = (*(part.name for part in fields(Preprocessing)), "limit", "seed")


@dataclass(frozen=True, eq=False)
class ImageFiles:
    """Labelled images that are read when they are needed: a sequence of (pixels, label) that ``measure`` takes.

    Arguments:
        name: as records name it.
        paths: the files.
        labels: the class of each, # (images,) of int64.
        classes: names of the classes, in the order of the labels.
        preprocessing: makes the pixels of each file; item i is # (channels, height, width) of float32 and its label.
        options: parts of ``preprocessing`` that the caller named; a network's own do not replace them.
        split: which part it is.
        note: how it departs from an official split; empty if it does not.
    """

    name: str
    paths: tuple[Path, ...]
    labels: Tensor
    classes: tuple[str, ...]
    preprocessing: PixelMaker = field(default_factory=Preprocessing)
    options: Mapping[str, Any] = field(default_factory=dict)
    split: str = "train"
    note: str = ""

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        return self.preprocessing.pixels(read_image(self.paths[index]), self.paths[index]), int(self.labels[index])

    def with_preprocessing(self, wanted: PixelMaker) -> "ImageFiles":
        """The same files with other pixels: those of ``wanted``, in which ``options`` replace some parts."""
        return replace(self, preprocessing=wanted.with_options(self.options))

    def first(self, n: int) -> "ImageFiles":
        """The first ``n`` images, or all if there are fewer."""
        return replace(self, paths=self.paths[:n], labels=self.labels[:n])

    def dataset(self) -> Dataset:
        """All images at once, in memory: 0.6 MB for each of 224 x 224 pixels."""
        inputs = torch.stack([self[index][0] for index in range(len(self))])  # (images, channels, size, size)
        return Dataset(self.name, inputs, self.labels, len(self.classes), self.split, self.note)

    def fingerprint(self) -> str:
        """A hash of the files' names and sizes, for records: other files, another fingerprint."""
        digest = hashlib.sha256()
        for path in self.paths:
            digest.update(f"{path.parent.name}/{path.name} {path.stat().st_size}\n".encode())
        return digest.hexdigest()[:12]


def open_images(
    spec: str, split: str = "train", limit: int | None = None, *, seed: int | None = None, balanced: bool = False
) -> ImageFiles:
    """The images a spec names, not yet read.

    A class is a folder; classes are numbered in the order of their names, which for ImageNet's folders ``n01440764``,
    ... is the numbering that pretrained networks use. Images without class folders are all of class 0. If the folder
    holds ``train``, and ``val``, ``validation`` or ``test``, these are the splits.

    Arguments:
        spec: ``images:DIR``, and after a colon any of ``size``, ``resize``, ``mean``, ``std`` and ``interpolation`` (as
            in ``Preprocessing``; lists with slashes), ``limit`` and ``seed``.
        split: ``train`` or ``test``.
        limit: the number of images to keep; without ``seed`` the first, which are of the first classes.
        seed: shuffle the images first; the same seed gives the same images, a larger limit adds to them.
        balanced: keep the same number of each class.
    """
    folder, options = _parse(spec)
    written_limit, written_seed = options.pop("limit", None), options.pop("seed", None)
    limit = written_limit if limit is None else limit
    seed = written_seed if seed is None else seed
    check_limit(limit)
    check_seed(seed)
    preprocessing = Preprocessing().with_options(options)
    place, note = _split_folder(folder, split)
    paths, labels, classes = _find_images(place)
    rows = choose(labels, len(classes), limit, seed=seed, balanced=balanced, called=f"images in {place}")
    chosen = np.arange(len(paths))[rows]
    return ImageFiles(
        name=f"{PREFIX}{folder.name}",
        paths=tuple(paths[row] for row in chosen),
        labels=torch.from_numpy(labels[chosen]),
        classes=classes,
        preprocessing=preprocessing,
        options=options,
        split=split,
        note=note,
    )


def _parse(spec: str) -> tuple[Path, dict[str, Any]]:
    """Folder and options of a spec."""
    rest = spec.removeprefix(PREFIX)
    head, colon, tail = rest.rpartition(":")
    folder, text = (head, tail) if colon and "=" in tail else (rest, "")
    if not folder:
        raise UsageError(f"data {spec!r} must read images:DIR, for example images:photos or images:photos:size=224")
    positional, named = specs.arguments(text)
    if positional:
        raise UsageError(f"data {spec!r}: write options as key=value, for example images:photos:size=224,seed=0")
    for key in named:
        checks.choice("option of images", key, _OPTIONS)
    path = Path(folder).expanduser()
    if not path.is_dir():
        raise UsageError(f"data {spec!r}: the folder {folder} does not exist; give one that holds JPEG or PNG files")
    return path, named


def _split_folder(folder: Path, split: str) -> tuple[Path, str]:
    """Where the images of a split are, and a note if there are no splits."""
    checks.choice("split", split, _SPLITS)
    there = {name for names in _SPLITS.values() for name in names if (folder / name).is_dir()}
    if not there:
        return folder, "one folder of images without splits"
    for name in _SPLITS[split]:
        if name in there:
            return folder / name, ""
    wanted = " or ".join(_SPLITS[split])
    raise UsageError(f"{folder} holds the folders {', '.join(sorted(there))}, but none called {wanted} for {split!r}")


def _find_images(folder: Path) -> tuple[list[Path], np.ndarray[Any, np.dtype[np.int64]], tuple[str, ...]]:
    """Images, labels and names of classes, in the order of their names."""
    flat = _sort_images(folder.iterdir())
    inner = [path for path in sorted(folder.iterdir()) if path.is_dir() and not path.name.startswith(".")]
    groups = [_sort_images(path.rglob("*")) for path in inner]
    if flat and any(groups):
        raise UsageError(
            f"{folder} holds {len(flat)} images next to folders of images, such as {inner[0].name}; put all images in "
            "folders, one for each class, or none"
        )
    if not flat and not any(groups):
        raise UsageError(f"{folder} holds no images; expected files that end in {', '.join(SUFFIXES)}")
    groups, names = ([flat], ("all",)) if flat else (groups, tuple(path.name for path in inner))
    labels = np.repeat(np.arange(len(groups), dtype=np.int64), [len(group) for group in groups])
    return [path for group in groups for path in group], labels, names


def _sort_images(paths: Any) -> list[Path]:
    return sorted(p for p in paths if p.suffix.lower() in SUFFIXES and not p.name.startswith(".") and p.is_file())
