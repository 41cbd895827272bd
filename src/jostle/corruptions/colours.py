"""Grey and colour: what a colour is in a grey image, and how bright a pixel is."""

from collections.abc import Sequence

import numpy as np

from jostle.corruptions.corruption import Floats

_LUMA = (0.299, 0.587, 0.114)  # ITU-R BT.601


def luminance(images: Floats) -> Floats:
    """How bright every pixel is, # (images, 1, height, width); a grey image is that already."""
    if images.shape[1] == 1:
        return images
    return sum((weight * images[:, [channel]] for channel, weight in enumerate(_LUMA)), np.zeros(1))


def painted(colour: Sequence[float], images: Floats) -> Floats:
    """``colour`` in the channels that ``images`` have, # (1, channels, 1, 1): its luminance if they are grey."""
    whole = np.asarray(colour, dtype=np.float64).reshape(1, 3, 1, 1)
    return whole if images.shape[1] == 3 else luminance(whole)
