"""Six photographs that come by pip, inside scikit-image: ``py:jostle.integrations.photographs:photographs``."""

import importlib.resources
from pathlib import Path

import torch

from jostle.base.errors import UsageError
from jostle.data.image_folder import ImageFiles

# Everyday scenes, as in ImageNet; the other pictures of the package are textures, drawings and microscopy.
NAMES = ("astronaut.png", "camera.png", "chelsea.png", "coffee.png", "motorcycle_left.png", "rocket.jpg")


def photographs() -> ImageFiles:
    """An astronaut, a man with a camera (grey), a cat, a cup of coffee, a motorcycle and a rocket; no labels."""
    try:
        folder = Path(str(importlib.resources.files("skimage"))) / "data"
    except ModuleNotFoundError:
        raise UsageError("the photographs need scikit-image: pip install scikit-image") from None
    paths = tuple(folder / name for name in NAMES)
    for path in paths:
        if not path.is_file():
            raise UsageError(f"the photograph {path.name} is not in this scikit-image; version 0.26.0 has it")
    return ImageFiles("photographs", paths, torch.zeros(len(paths), dtype=torch.int64), ("all",))
