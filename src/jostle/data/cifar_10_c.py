"""CIFAR-10-C from its official arrays: the CIFAR-10 test images under 19 corruptions, five severities.

Hendrycks and Dietterich (2019), "Benchmarking neural network robustness to common corruptions and perturbations"; CC BY
4.0, https://zenodo.org/records/2535967. These are the published files; ``jostle.corruptions`` makes similar images
of its own, after the same definitions and settings.

A file ``<corruption>.npy`` is # (50000, 32, 32, 3) of uint8: all 10,000 test images, in the order of CIFAR-10, at
severity 1, then all at severity 2, up to 5; ``labels.npy`` is # (50000,) of uint8 to match. The archive of 2.9 GB is
not downloaded for you: unpack it into a folder called CIFAR-10-C.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jostle.base import checks
from jostle.base.errors import UsageError
from jostle.data.dataset import Dataset
from jostle.data.images import Images, check_file_labels
from jostle.data.places import Place, places
from jostle.data.selection import check_limit, check_seed, choose

ADDRESS = "https://zenodo.org/records/2535967"
FOLDERS = ("CIFAR-10-C", "cifar-10-c", "cifar10c", "cifar_10_c")
IMAGES = 10_000  # at each severity
SEVERITIES = 5
NAMES = (
    "brightness",
    "contrast",
    "defocus_blur",
    "elastic_transform",
    "fog",
    "frost",
    "gaussian_blur",
    "gaussian_noise",
    "glass_blur",
    "impulse_noise",
    "jpeg_compression",
    "motion_blur",
    "pixelate",
    "saturate",
    "shot_noise",
    "snow",
    "spatter",
    "speckle_noise",
    "zoom_blur",
)
_LABELS = "labels.npy"


def load_corrupted(
    name: str,
    severity: int = 2,
    limit: int | None = None,
    *,
    seed: int | None = None,
    balanced: bool = False,
    folder: str | Path | None = None,
) -> Dataset:
    """The official CIFAR-10-C images of one corruption at one severity, pixels scaled to [-1, 1].

    Arguments:
        name: one of ``NAMES``, e.g. ``fog``.
        severity: 1 to 5.
        limit, seed, balanced: which images, as in ``jostle.data.load``; the same ones for every name and severity, and
            the same as of ``load("cifar-10", "test", ...)``.
        folder: where to look first: the files, or a folder called CIFAR-10-C with them; then ``JOSTLE_DATA`` and the
            user's cache.
    """
    checks.choice("corruption of CIFAR-10-C", name, NAMES)
    checks.whole("severity", severity, least=1, most=SEVERITIES)
    check_limit(limit)
    check_seed(seed)
    found = _find_folder((f"{name}.npy", _LABELS), places(folder))
    pixels = _open_array(found / f"{name}.npy", (SEVERITIES * IMAGES, 32, 32, 3))
    labels = _open_array(found / _LABELS, (SEVERITIES * IMAGES,))
    at_severity = slice((severity - 1) * IMAGES, severity * IMAGES)
    labels = np.array(labels[at_severity])
    check_file_labels(labels, 10, found / _LABELS)
    rows = choose(labels, 10, limit, seed=seed, balanced=balanced, called="images of CIFAR-10-C")
    # Only the chosen rows of a file of 150 MB are read.
    chosen = np.array(pixels[at_severity][rows]).transpose(0, 3, 1, 2)
    note = f"official CIFAR-10-C, {name}, severity {severity}"
    return Images(chosen, labels[rows], 10, note).dataset(f"cifar-10-c/{name}-{severity}", "test", slice(None))


def _find_folder(files: tuple[str, ...], where: Iterable[Place]) -> Path:
    """The first folder that holds all ``files``."""
    looked = list(where)
    for place in looked:
        for name in (*FOLDERS, ""):
            if all((place.path / name / file).is_file() for file in files):
                return place.path / name
    raise UsageError(
        f"CIFAR-10-C needs {' and '.join(files)}, not found in {', '.join(map(str, looked))}; download "
        f"CIFAR-10-C.tar from {ADDRESS} and unpack it there"
    )


def _open_array(path: Path, shape: tuple[int, ...]) -> NDArray[np.uint8]:
    """The array in a file, left on disk; an array of another shape or type is an error."""
    try:
        array: Any = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise UsageError(f"{path} cannot be read as .npy: {' '.join(str(error).split())}") from None
    if not isinstance(array, np.ndarray) or array.dtype != np.uint8 or array.shape != shape:
        kind = f"{array.dtype} of shape {array.shape}" if isinstance(array, np.ndarray) else type(array).__name__
        raise UsageError(f"{path} holds {kind}; a file of CIFAR-10-C holds uint8 of shape {shape}")
    return array
