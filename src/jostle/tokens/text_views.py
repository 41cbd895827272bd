"""Texts as tokens: the token ids themselves, or their embeddings inside the model.

A text is a row of whole numbers (token ids), padded on the right or on the left. Inputs are a mapping with
``input_ids`` and ``attention_mask`` (batch, tokens), as tokenizers of transformers make them, or one tensor of ids for
models whose attribute ``pad`` is the id of padding. An entry ``special_tokens_mask`` is never given to the model.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from torch import Tensor

from jostle.base import checks
from jostle.base.errors import UsageError
from jostle.base.specs import written_list
from jostle.tokens.padding import read_special_ids
from jostle.tokens.views import VIEWS, TokenView, check_part, must_fit, written_part

SPECIAL_KEY = "special_tokens_mask"


@dataclass(frozen=True, kw_only=True)
class TextView(TokenView):
    """What views of texts have in common. Padding is never jostled, and batches are cut to their longest text.

    Arguments:
        special: whether special tokens, such as the classification token and separators, may be jostled: true, false,
            or ``only``, if only they may.
        special_ids: the ids of special tokens; by default ``special_tokens_mask`` of the inputs marks them.
        alignment: what a position is in a profile: ``left``, the number of the token in its text, from 0; or ``right``,
            counted so that the last tokens of all texts share the last position.
        whole: whether a text is one token, as an image is with ``Whole()``: all its tokens change at once, each as it
            would alone, the control of paper 1, Table 4. Padding stays as it is.
    """

    special: bool | Literal["only"] = True
    special_ids: Sequence[int] | int | None = None
    alignment: Literal["left", "right"] = "left"
    whole: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.special, bool) and self.special != "only":
            raise checks.wrong("special", self.special, "true, false or only")
        object.__setattr__(self, "special_ids", read_special_ids(self.special_ids))
        checks.choice("alignment", self.alignment, ("left", "right"))
        checks.truth("whole", self.whole)
        if self.whole and self.alignment != "left":
            raise UsageError(
                f"alignment={self.alignment!r} of {type(self).__name__}(whole=True): a whole text has one position"
            )

    def positions(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        must_fit(len(shape) >= 1, self, shape, "expected token ids (batch, tokens)")
        return (1,) if self.whole else shape[:1]

    def grid(self, batch: Tensor) -> Tensor:
        return batch.unsqueeze(1) if self.whole else batch

    def options(self) -> list[str]:
        """The arguments that differ from the defaults, as parts of a spec."""
        options = ["whole=true"] if self.whole else []
        options += [] if self.special is True else [f"special={str(self.special).lower()}"]
        if self.special_ids is not None:
            options.append(f"special_ids={written_list(read_special_ids(self.special_ids) or ())}")
        return options if self.alignment == "left" else [*options, f"alignment={self.alignment}"]


@VIEWS.register("words")
@dataclass(frozen=True)
class Words(TextView):
    """Token ids as tokens: for ``UniformToken``, ``ReplaceBy``, ``Deletion`` and ``Correlated``.

    >>> Words(special=False).describe()
    'words:special=false'
    """

    @property
    def spec(self) -> str:
        return ":".join(["words", ",".join(self.options())]).rstrip(":")


@VIEWS.register("embeddings")
@dataclass(frozen=True)
class Embeddings(TextView):
    """The vector of each token inside the model: paper 1 (2403.06925), Section 6, adds its noise there.

    The model runs on the token ids, and one vector in the output of one of its modules is replaced. So position ids,
    type ids and masks are the model's own, and nothing is added twice.

    >>> Embeddings("before", special=False).describe()
    'embeddings:before,special=false'

    Arguments:
        where: ``after``, the embedded text that enters the first layer: words and positions, after their LayerNorm if
            there is one; or ``before``, the word vectors alone, the output of ``get_input_embeddings()``.
        module: the path of another module whose output, (batch, tokens, dim), is jostled, e.g. ``transformer.drop``.
        part: ``output``, what that module gives out, or ``input``, what enters it.
        head: of an attention layer whose output projection is ``module``: only the part of its input that this head
            wrote is jostled.
    """

    where: Literal["after", "before"] = "after"
    module: str | None = field(default=None, kw_only=True)
    part: Literal["output", "input"] = field(default="output", kw_only=True)
    head: int | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.choice("where", self.where, ("after", "before"))
        if self.module is not None and self.where == "before":
            raise UsageError(f"where='before' and module={self.module!r} of Embeddings: give one of them")
        check_part(self.module, self.part, self.head)

    @property
    def spec(self) -> str:
        place = self.where if self.module is None else f"module={self.module}"
        return "embeddings:" + ",".join([place, *written_part(self.part, self.head), *self.options()])
