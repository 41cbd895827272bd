"""A torchvision that was built for another torch: what it lacks is declared, so that it can be imported.

``pip install timm`` beside a torch for the CPU brings a torchvision for CUDA. Its compiled operators cannot be loaded,
and importing it then fails with "operator torchvision::nms does not exist"; so do timm and large parts of
transformers. Networks and transforms need none of these operators: a declaration without code is enough.
"""

import importlib.util
from pathlib import Path
from traceback import walk_tb
from typing import Any

import torch

_OPERATORS = ("nms", "qnms")
_SIGNATURE = "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"
_LIBRARIES: list[Any] = []  # a declaration lasts as long as its library is held


def mend_torchvision() -> bool:
    """Declare the operators that torchvision asks for when it is imported, if its own are not there; true if it did.

    Nothing happens where torchvision is not installed, is imported already, or brings its operators with it.
    """
    if importlib.util.find_spec("torchvision") is None or _LIBRARIES or _has_operators():
        return False
    library = torch.library.Library("torchvision", "DEF")  # type: ignore[no-untyped-call]
    for name in _OPERATORS:
        library.define(f"{name}{_SIGNATURE}")  # type: ignore[no-untyped-call]
    _LIBRARIES.append(library)
    return True


def _has_operators() -> bool:
    """Whether the compiled part of torchvision can be loaded; it declares its operators then."""
    try:
        place = importlib.util.find_spec("torchvision")
        folders = (place.submodule_search_locations or []) if place is not None else []
        files = [file for folder in folders for file in _compiled(folder)]
        for file in files[:1]:
            torch.ops.load_library(file)  # type: ignore[no-untyped-call]
    except OSError:
        return False
    return hasattr(torch.ops.torchvision, "nms")


def _compiled(folder: str) -> list[str]:
    return sorted(str(path) for path in Path(folder).glob("_C.*") if path.suffix in (".so", ".pyd"))


def broken_package(error: BaseException) -> str | None:
    """The package in whose lines an error of an import was raised; None if that is of no other package than torch.

    Arguments:
        error: as it was caught. If others led to it, the first of them counts: it names the real culprit.
    """
    while (before := error.__cause__ or error.__context__) is not None:
        error = before
    names = [str(frame.f_globals.get("__name__", "")).partition(".")[0] for frame, _ in walk_tb(error.__traceback__)]
    return next((name for name in reversed(names) if name not in ("torch", "importlib", "jostle", "")), None)
