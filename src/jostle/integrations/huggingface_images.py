"""What a folder of transformers says about the pixels that its image classifier takes."""

import json
from pathlib import Path
from typing import Any

from PIL import Image

from jostle.data.preprocessing import Preprocessing
from jostle.errors import UsageError

_SQUASHED = 384  # from this side on, the processor of ConvNeXt does not crop


def preprocessing(folder: Path) -> Preprocessing | None:
    """What ``preprocessor_config.json`` in ``folder`` asks for; None if there is no such file."""
    path = folder / "preprocessor_config.json"
    if not path.is_file():
        return None
    try:
        written = json.loads(path.read_text(encoding="utf-8"))
        size, resize = _sides(written)
        factor = 255 * written.get("rescale_factor", 1 / 255) if written.get("do_rescale", True) else 255.0
        shift = 1.0 if written.get("rescale_offset") else 0.0  # these processors take 1 off before they normalise
        normalises = written.get("do_normalize", True)
        mean, std = (written["image_mean"], written["image_std"]) if normalises else ([0.0] * 3, [1.0] * 3)
        return Preprocessing(
            size=size,
            resize=resize,
            mean=tuple(_rounded((number + shift) / factor) for number in mean),
            std=tuple(_rounded(number / factor) for number in std),
            interpolation=Image.Resampling(written.get("resample", Image.Resampling.BICUBIC)).name.lower(),
        )
    except UsageError as error:
        raise UsageError(f"{path}: {error}") from None
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise UsageError(f"{path} cannot be understood ({type(error).__name__}: {error}); mend or remove it") from None


def _sides(written: dict[str, Any]) -> tuple[int, int]:
    """Side of the crop, and shorter side before it."""
    resize = _side(written["size"])
    if written.get("do_center_crop") and "crop_size" in written:
        return _side(written["crop_size"]), resize
    if "crop_pct" in written and resize < _SQUASHED:
        return resize, int(resize / written["crop_pct"])
    return resize, resize


def _side(size: Any) -> int:
    """The side of a square, or the shorter side: 224, {shortest_edge: 224}, {height: 224, width: 224}."""
    if isinstance(size, dict):
        if "shortest_edge" in size:
            return int(size["shortest_edge"])
        if size["height"] != size["width"]:
            raise UsageError(f"size {size} is not a square, and only squares are cut from images here")
        return int(size["height"])
    return int(size)


def _rounded(number: float) -> float:
    return float(f"{number:.12g}")  # 255 * (1 / 255) need not be 1
