"""The idx format of MNIST and Fashion-MNIST: a short header, then one byte for each value, all packed by gzip.

Header, big-endian: two zero bytes, 8 for unsigned bytes, the number of axes, then 4 bytes for the size of each axis.
"""

import gzip
import math
import zlib
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from jostle.base.errors import UsageError
from jostle.data.images import Images, check_file_labels


def read_idx(path: Path, axes: int) -> NDArray[np.uint8]:
    """The array of unsigned bytes in a gzipped idx file, # (first axis, ...); read-only.

    Arguments:
        path: the file.
        axes: the number of axes it must have: 3 for images, 1 for labels.
    """
    raw = _unpack(path)
    start = 4 + 4 * axes
    expected = bytes([0, 0, 8, axes])
    if raw[:4] != expected or len(raw) < start:
        raise UsageError(
            f"{path} starts with {raw[:4].hex(' ') or 'nothing'}; an idx file of unsigned bytes with {axes} "
            f"{'axis' if axes == 1 else 'axes'} starts with {expected.hex(' ')} and its sizes"
        )
    sizes = [int.from_bytes(raw[at : at + 4]) for at in range(4, start, 4)]
    if math.prod(sizes) != len(raw) - start:
        shape = " x ".join(map(str, sizes))
        raise UsageError(f"{path} says it holds {shape} bytes and holds {len(raw) - start:,}; get it again")
    return np.frombuffer(raw, dtype=np.uint8, offset=start).reshape(sizes)


def read_images(images: Path, labels: Path, classes: int) -> Images:
    """Grey images from one idx file and their labels from another, # (examples, 1, height, width)."""
    pixels, numbers = read_idx(images, axes=3), read_idx(labels, axes=1)
    if len(pixels) != len(numbers):
        raise UsageError(f"{images} holds {len(pixels):,} images, but {labels} {len(numbers):,} labels")
    check_file_labels(numbers, classes, labels)
    return Images(pixels[:, None], numbers, classes)


def _unpack(path: Path) -> bytes:
    try:
        return gzip.decompress(path.read_bytes())
    except EOFError:
        raise UsageError(f"{path} is cut short: its gzip stream has no end; get it again") from None
    except (gzip.BadGzipFile, zlib.error) as error:
        raise UsageError(f"{path} is damaged or no gzip file ({error})") from None
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror or error}") from None
