"""What a token is: a way to see one input as T tokens, without copying it.

``TokenView`` is the base class; the views for arrays and images follow it. Views of texts are in ``text_views``.
"""

import functools
from abc import ABC, abstractmethod
from dataclasses import dataclass
from math import prod

import torch
from torch import Tensor

from jostle.base import checks
from jostle.base.errors import UsageError
from jostle.base.registry import Registry

VIEWS: Registry[type["TokenView"]] = Registry(
    "token view",
    homes={
        "columns": "jostle.tokens.views",
        "coordinates": "jostle.tokens.views",
        "embeddings": "jostle.tokens.text_views",
        "patches": "jostle.tokens.views",
        "rows": "jostle.tokens.views",
        "whole": "jostle.tokens.views",
        "words": "jostle.tokens.text_views",
    },
)


@dataclass(frozen=True, kw_only=True)
class TokenView(ABC):
    """How a batch of inputs is cut into tokens.

    A view is described by one method, ``grid``: the batch seen as (batch, *positions, *token), sharing memory with the
    batch. Positions are numbered row by row, 0 .. num_tokens - 1. Splitting and joining are therefore bit-exact
    inverses, and every token but the chosen one stays as it was.

    Arguments:
        key: for inputs that are mappings of tensors, the entry that holds the tokens; by default the only entry that
            is not a mask, or the first of ``inputs_embeds``, ``pixel_values``, ``input_ids``, ``inputs``, ``x``.
        mask_key: for mappings, the entry with 1 for real tokens and 0 for padding; by default ``attention_mask`` or
            ``mask`` where there is one.
    """

    key: str | None = None
    mask_key: str | None = None

    @abstractmethod
    def positions(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """The shape of the position grid for one input of this shape, e.g. (7, 7); raises if it does not fit."""

    @abstractmethod
    def grid(self, batch: Tensor) -> Tensor:
        """``batch`` as (batch, *positions, *token), sharing its memory."""

    @property
    @abstractmethod
    def spec(self) -> str:
        """The spec without keys, e.g. ``patches:4``."""

    def describe(self) -> str:
        """A spec that makes this view again, e.g. ``patches:4`` or ``rows:key=x``."""
        keys = {"key": self.key, "mask_key": self.mask_key}
        options = [f"{name}={value}" for name, value in keys.items() if value is not None]
        if not options:
            return self.spec
        return f"{self.spec}{',' if ':' in self.spec else ':'}{','.join(options)}"

    def num_tokens(self, shape: tuple[int, ...]) -> int:
        """T for one input of this shape."""
        return prod(self.positions(shape))

    def pick(self, inputs: Tensor, chosen: Tensor, position: Tensor) -> Tensor:
        """Token ``position[i]`` of input ``chosen[i]``, as (len(chosen), dim): a copy."""
        within = places(self, tuple(inputs.shape[1:])).to(inputs.device)[position]  # (chosen, dim)
        return torch.take(inputs, within + chosen[:, None] * inputs[0].numel())

    def put(self, batch: Tensor, position: Tensor, tokens: Tensor) -> Tensor:
        """Write ``tokens`` (batch, dim) over token ``position[i]`` of input i, in place; returns ``batch``."""
        within = places(self, tuple(batch.shape[1:])).to(batch.device)[position]
        batch.view(len(batch), -1).scatter_(1, within, tokens)
        return batch


@functools.lru_cache(maxsize=64)
def places(view: TokenView, shape: tuple[int, ...]) -> Tensor:
    """(tokens, dim): where in a flattened input of this shape the numbers of each token are."""
    must_fit(prod(shape) > 0, view, shape, "they hold no numbers")
    with torch.inference_mode(False):  # the tensor is kept, and may be used where gradients are needed
        numbered = torch.arange(prod(shape)).view(1, *shape)
        return view.grid(numbered).reshape(view.num_tokens(shape), -1)


def must_fit(condition: bool, view: TokenView, shape: tuple[int, ...], expected: str) -> None:
    """Raise, unless ``condition`` holds, that a view cannot cut inputs of this shape."""
    if not condition:
        raise UsageError(f"tokens={view.describe()} cannot cut inputs of shape {tuple(shape)}: {expected}")


@VIEWS.register("coordinates")
@dataclass(frozen=True)
class Coordinates(TokenView):
    """Every number of the input is a token of its own: the bits of a Boolean function, the pixels of a grey image.

    >>> Coordinates().num_tokens((28, 28))
    784
    """

    def positions(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        must_fit(len(shape) >= 1, self, shape, "expected at least one dimension after the batch")
        return shape

    def grid(self, batch: Tensor) -> Tensor:
        return batch.unsqueeze(-1)

    @property
    def spec(self) -> str:
        return "coordinates"


@VIEWS.register("columns")
@dataclass(frozen=True)
class Columns(TokenView):
    """Every column of a table (batch, columns) is a token: arrays of features, frames of pandas and polars, csv files.

    Noise is in units of each column: ``GaussianNoise(std=0.5)`` adds half of the standard deviation that the column
    has in the inputs. Perturbations that say the new value themselves, such as ``ReplaceBy``, are used as they are.

    >>> Columns().num_tokens((4,))
    4

    Arguments:
        scaled: whether noise is in units of each column; otherwise all columns get the same.
        whole: whether all columns of a row move at once, each as it would alone.
    """

    scaled: bool = True
    whole: bool = False

    def __post_init__(self) -> None:
        checks.truth("scaled", self.scaled)
        checks.truth("whole", self.whole)

    def positions(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        must_fit(len(shape) == 1, self, shape, "expected a table (rows, columns)")
        return (1,) if self.whole else shape

    def grid(self, batch: Tensor) -> Tensor:
        return batch.unsqueeze(1) if self.whole else batch

    @property
    def spec(self) -> str:
        options = [
            name for name, is_usual in (("scaled=false", self.scaled), ("whole=true", not self.whole)) if not is_usual
        ]
        return ":".join(["columns", ",".join(options)]).rstrip(":")


@VIEWS.register("rows")
@dataclass(frozen=True)
class Rows(TokenView):
    """The first dimension after the batch counts the tokens: (batch, tokens, dim), or (batch, tokens) token ids.

    >>> Rows().num_tokens((50, 16))
    50
    """

    def positions(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        must_fit(len(shape) >= 1, self, shape, "expected (batch, tokens, dim) or (batch, tokens)")
        return shape[:1]

    def grid(self, batch: Tensor) -> Tensor:
        return batch

    @property
    def spec(self) -> str:
        return "rows"


@VIEWS.register("patches")
@dataclass(frozen=True)
class Patches(TokenView):
    """Square patches of an image (batch, channels, height, width) or (batch, height, width), all channels together.

    Positions are numbered from the top left, row by row, as in a vision transformer.

    >>> Patches(4).num_tokens((3, 32, 32))
    64

    Arguments:
        size: the side of a patch in pixels; it must divide height and width.
    """

    size: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", checks.whole("size", self.size, least=1))

    def positions(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        must_fit(len(shape) in (2, 3), self, shape, "expected (channels, height, width) or (height, width)")
        height, width = shape[-2:]
        fits = height % self.size == 0 and width % self.size == 0
        channels = shape[-1] if len(shape) == 3 and shape[-1] in (1, 3, 4) and shape[0] > shape[-1] else 0
        hint = f"; if the {channels} are channels, put them first: (channels, height, width)" if channels else ""
        must_fit(fits, self, shape, f"the side {self.size} must divide height {height} and width {width}{hint}")
        return height // self.size, width // self.size

    def grid(self, batch: Tensor) -> Tensor:
        rows, columns = self.positions(tuple(batch.shape[1:]))
        split = batch.view(*batch.shape[:-2], rows, self.size, columns, self.size)
        order = (0, 1, 3, 2, 4) if batch.dim() == 3 else (0, 2, 4, 1, 3, 5)
        return split.permute(order)  # (batch, rows, columns, [channels,] size, size)

    @property
    def spec(self) -> str:
        return f"patches:{self.size}"


@VIEWS.register("whole")
@dataclass(frozen=True)
class Whole(TokenView):
    """The whole input is one token: noise everywhere at once, the control of paper 1 (2403.06925), Table 4.

    >>> Whole().num_tokens((3, 32, 32))
    1
    """

    def positions(self, shape: tuple[int, ...]) -> tuple[int, ...]:  # noqa: ARG002
        return (1,)

    def grid(self, batch: Tensor) -> Tensor:
        return batch.unsqueeze(1)

    @property
    def spec(self) -> str:
        return "whole"


@dataclass(frozen=True)
class Inside(TokenView):
    """The vectors that a module inside the model gives out, (batch, tokens, dim): those of a block of a ViT, say.

    Of a map of features (batch, channels, height, width) they are those of its pixels; (batch, dim) is one vector.

    For inputs that are no texts; for texts it is ``Embeddings(module=...)``. It has no name among the views, whose
    tokens are parts of the input: the vectors exist only while the model runs.

    >>> Inside("blocks.0.mlp", count=65).num_tokens((3, 32, 32))
    65

    Arguments:
        site: the path of the module, one of ``model.named_modules()``.
        count: how many vectors there are; by default the model is asked.
        part, head: as for ``Embeddings``.
    """

    site: str
    count: int | None = None
    part: str = "output"
    head: int | None = None

    def __post_init__(self) -> None:
        check_part(self.site, self.part, self.head)
        if self.count is not None:
            object.__setattr__(self, "count", checks.whole("count", self.count, least=1))

    @property
    def module(self) -> str:
        """The path of the module."""
        return self.site

    def positions(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        must_fit(self.count is not None, self, shape, "say how many vectors the module gives out, count=")
        return (self.count or 0,)

    def grid(self, batch: Tensor) -> Tensor:
        """Every vector depends on the whole input."""
        return batch.flatten(1).unsqueeze(1).expand(-1, self.count or 0, -1)

    @property
    def spec(self) -> str:
        count = [] if self.count is None else [f"count={self.count}"]
        return "inside:" + ",".join([self.site, *count, *written_part(self.part, self.head)])


def check_part(module: str | None, part: str, head: object) -> None:
    """Raise unless ``part`` and ``head`` of a place inside a model can be meant."""
    checks.choice("part", part, ("output", "input"))
    if head is not None:
        checks.whole("head", head, least=0)
    if module is None and (head is not None or part != "output"):
        raise UsageError(f"part={part!r} and head={head!r} are of a module: give its path too")


def written_part(part: str, head: int | None) -> list[str]:
    """``part`` and ``head`` as parts of a spec, where they are not the defaults."""
    return [*([f"part={part}"] if part != "output" else []), *([f"head={head}"] if head is not None else [])]
