"""The networks of paper 2 (2402.09963) that read bits: their registry, and the check of what they are given.

Here: (batch, tokens) of -1 and 1 in, real numbers out. ``jostle.boolean.networks`` has other networks on bits, of one
length each and for random weights; these are the ones that the paper trains.
"""

from collections.abc import Callable

from torch import Tensor, nn

from jostle.errors import UsageError
from jostle.registry import Registry

FAMILIES = ["bit_encoder", "bit_scratchpad"]
BIT_MODELS = Registry[Callable[..., nn.Module]]("bit model", modules=[f"jostle.models.{family}" for family in FAMILIES])
register_bits = BIT_MODELS.register


def check_strings(bits: Tensor, longest: int, name: str = "bits") -> None:
    """Raise unless ``bits`` is a batch of strings, (batch, tokens), not empty and not longer than ``longest``."""
    if bits.ndim != 2 or not 1 <= bits.shape[1] <= longest:
        raise UsageError(
            f"{name} of shape {tuple(bits.shape)} must be (batch, tokens) with 1 to {longest} tokens; pass a larger "
            "max_length for longer strings"
        )
