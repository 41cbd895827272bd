"""What counts as a change: a number for each pair of clean and jostled outputs.

A response keeps only what it needs of the clean outputs (its *reference*), so that a measurement of flips remembers one
integer for each input, and no outputs.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor
from torch.linalg import vector_norm

from jostle.base import checks
from jostle.base.errors import UsageError
from jostle.base.registry import Registry

RESPONSES: Registry[type["Response"]] = Registry("response", group="jostle.responses")

PLACES = {
    "answer": "the model's answer to the text; that at the last token, if it answers at every token",
    "whole": "all outputs together, as the model gives them",
    "last": "at the last token of the text: the prediction of the next token",
    "later": "at the token that moved and at every later one",
    "every": "at every token",
    "others": "at every token but the one that moved",
    "continuation": "what the model writes after the text, token by token",
}


class Response(ABC):
    """One way to compare outputs before and after.

    Attributes:
        is_binary: whether a change is 0 or 1, which decides which intervals its mean has.
        bounds: the smallest and the largest change there can be; None if there is no largest.
        reads_ranks: whether only the order of several outputs counts, which is the same for logits and probabilities.
        at: where a model of texts that answers at every token is read, a key of ``PLACES``.
        over: what becomes of the changes at several tokens: their ``mean``, or the ``largest``.
        name: the registered name.
    """

    is_binary: bool = False
    bounds: tuple[float, float] | None = None
    reads_ranks: ClassVar[bool] = False
    at: str = "answer"
    over: ClassVar[str] = "mean"
    name: ClassVar[str]

    @abstractmethod
    def reference(self, outputs: Tensor) -> Tensor:
        """The part of clean outputs (batch, ...) that is remembered, (batch, ...)."""

    @abstractmethod
    def change(self, reference: Tensor, outputs: Tensor) -> Tensor:
        """The change (batch,) from a reference to jostled outputs (batch, ...); (batch, tokens) if all are read."""

    def margins(self, outputs: Tensor) -> Tensor | None:  # noqa: ARG002
        """(batch,) about how far each clean output is from a change, in any unit; None if that is not known.

        It helps to seek rare flips where they are likely, see ``sampling.adaptive``, and has no influence on results.
        """
        return None

    def describe(self) -> str:
        """A spec that makes this response again."""
        return self.name


@RESPONSES.register("flip")
@dataclass(frozen=True)
class Flip(Response):
    """1 if the prediction changes, else 0: paper 1 (2403.06925), Def. 4.1.

    The prediction is the sign of a single logit, where sign(0) = 0 is a value of its own, or the argmax of several
    logits; a single integer is the class itself.

    Arguments:
        rule: ``sign``, ``argmax``, or ``auto``: sign for outputs (batch,) or (batch, 1), argmax for (batch, classes).
    """

    rule: Literal["auto", "sign", "argmax"] = "auto"
    is_binary = True
    bounds = (0.0, 1.0)
    reads_ranks: ClassVar[bool] = True
    name: ClassVar[str] = "flip"

    def __post_init__(self) -> None:
        checks.choice("rule", self.rule, ("auto", "sign", "argmax"))

    def reference(self, outputs: Tensor) -> Tensor:
        logits = logits_of(outputs)
        single = logits.shape[1] == 1
        if single and not outputs.is_floating_point():
            return logits[:, 0].to(torch.int64)  # class labels
        if self.rule == "argmax" and single:
            raise UsageError("response flip:argmax needs at least two logits per input; use flip:sign for one")
        if self.rule == "sign" and not single:
            raise UsageError(f"response flip:sign needs one logit per input, the model gives {logits.shape[1]}")
        return torch.sign(logits[:, 0]).to(torch.int64) if single else logits.argmax(dim=1)

    def change(self, reference: Tensor, outputs: Tensor) -> Tensor:
        return (self.reference(outputs) != reference).double()

    def margins(self, outputs: Tensor) -> Tensor | None:
        if not outputs.is_floating_point():
            return None  # class labels
        logits = logits_of(outputs).double()
        if logits.shape[1] == 1:
            return logits[:, 0].abs()
        largest = logits.topk(2, dim=1).values
        return largest[:, 0] - largest[:, 1]

    def describe(self) -> str:
        return self.name if self.rule == "auto" else f"{self.name}:{self.rule}"


@RESPONSES.register("margin")
@dataclass(frozen=True)
class Margin(Response):
    """|m' - m|, the change of the margin of the clean prediction.

    For several logits m = z_c - max of the others with c the clean prediction; for one logit z, m = sign(z_clean) z.
    """

    name: ClassVar[str] = "margin"

    def reference(self, outputs: Tensor) -> Tensor:
        logits = logits_of(outputs).double()
        chosen = torch.sign(logits[:, 0]) if logits.shape[1] == 1 else logits.argmax(dim=1).double()
        return torch.stack([chosen, _margin(logits, chosen)], dim=1)  # (batch, 2)

    def change(self, reference: Tensor, outputs: Tensor) -> Tensor:
        return (_margin(logits_of(outputs).double(), reference[:, 0]) - reference[:, 1]).abs()


@RESPONSES.register("logit-change")
@dataclass(frozen=True)
class LogitChange(Response):
    """max_k |z'_k - z_k|, the largest change of any logit."""

    name: ClassVar[str] = "logit-change"

    def reference(self, outputs: Tensor) -> Tensor:
        return logits_of(outputs)

    def change(self, reference: Tensor, outputs: Tensor) -> Tensor:
        return (logits_of(outputs).double() - reference.double()).abs().amax(dim=1)


@RESPONSES.register("absolute-change")
@dataclass(frozen=True)
class AbsoluteChange(Response):
    """||f(x') - f(x)||_2 over all outputs of an input, of any shape: features as well as logits."""

    at = "whole"
    name: ClassVar[str] = "absolute-change"

    def reference(self, outputs: Tensor) -> Tensor:
        return outputs.reshape(len(outputs), -1)

    def change(self, reference: Tensor, outputs: Tensor) -> Tensor:
        distance: Tensor = vector_norm(self.reference(outputs).double() - reference.double(), dim=1)
        return distance


@RESPONSES.register("relative-change")
@dataclass(frozen=True)
class RelativeChange(AbsoluteChange):
    """||f(x') - f(x)||_2 / ||f(x)||_2: the ratio inside paper 3's word sensitivity (2402.02969), Eq. 3.4."""

    name: ClassVar[str] = "relative-change"

    def change(self, reference: Tensor, outputs: Tensor) -> Tensor:
        size: Tensor = vector_norm(reference.double(), dim=1)
        return super().change(reference, outputs) / size


@RESPONSES.register("angle")
@dataclass(frozen=True)
class Angle(AbsoluteChange):
    """The angle in radians between f(x) and f(x'), from 0 to pi.

    Computed as 2 atan2(||u - v||, ||u + v||) of the unit vectors u, v: exactly 0 for equal outputs, where arccos of the
    cosine loses half of the digits.
    """

    name: ClassVar[str] = "angle"

    def change(self, reference: Tensor, outputs: Tensor) -> Tensor:
        before, after = reference.double(), self.reference(outputs).double()
        before, after = (part / vector_norm(part, dim=1, keepdim=True) for part in (before, after))
        return 2 * torch.atan2(vector_norm(after - before, dim=1), vector_norm(after + before, dim=1))


@dataclass(frozen=True)
class TokenResponse(Response):
    """What changes of a distribution over tokens: the next-token prediction of a language model.

    Outputs are logits (batch, vocabulary) of the last token, or (batch, tokens, vocabulary) if more of them are read;
    a change is then the mean over the tokens that are read.

    Arguments:
        at: ``last``, the prediction after the whole text; ``later``, the predictions at the token that moved and at
            all later tokens; or ``every``.
    """

    at: Literal["last", "later", "every"] = "last"

    def __post_init__(self) -> None:
        checks.choice("at", self.at, ("last", "later", "every"))

    def describe(self) -> str:
        """A spec that makes this response again."""
        return self.name if self.at == "last" else f"{self.name}:{self.at}"


@RESPONSES.register("next-token-flip")
@dataclass(frozen=True)
class NextTokenFlip(TokenResponse):
    """1 if the most likely next token changes, else 0; the share of such tokens, if several are read."""

    bounds = (0.0, 1.0)
    reads_ranks: ClassVar[bool] = True
    name: ClassVar[str] = "next-token-flip"

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "is_binary", self.at == "last")

    def reference(self, outputs: Tensor) -> Tensor:
        return _distributions(outputs).argmax(dim=-1)

    def change(self, reference: Tensor, outputs: Tensor) -> Tensor:
        return (self.reference(outputs) != reference).double()


@RESPONSES.register("label-flip")
@dataclass(frozen=True)
class LabelFlip(Response):
    """The share of tokens whose label changes: for models that give a label to every token."""

    at = "every"
    bounds = (0.0, 1.0)
    reads_ranks: ClassVar[bool] = True
    name: ClassVar[str] = "label-flip"

    def reference(self, outputs: Tensor) -> Tensor:
        return _distributions(outputs).argmax(dim=-1)

    def change(self, reference: Tensor, outputs: Tensor) -> Tensor:
        return (self.reference(outputs) != reference).double()


@RESPONSES.register("other-label-flip")
@dataclass(frozen=True)
class OtherLabelFlip(LabelFlip):
    """1 if the label of any token changes other than the one that moved, else 0."""

    at = "others"
    over: ClassVar[str] = "largest"
    is_binary = True
    name: ClassVar[str] = "other-label-flip"


@RESPONSES.register("continuation-flip")
@dataclass(frozen=True)
class ContinuationFlip(Response):
    """1 if anything changes in what a language model writes next, the most likely token each time; else 0.

    Arguments:
        length: how many tokens it writes.
    """

    length: int = 8
    at = "continuation"
    is_binary = True
    bounds = (0.0, 1.0)
    reads_ranks: ClassVar[bool] = True
    name: ClassVar[str] = "continuation-flip"

    def __post_init__(self) -> None:
        object.__setattr__(self, "length", checks.whole("length", self.length, least=1))

    def reference(self, outputs: Tensor) -> Tensor:
        return outputs.reshape(len(outputs), -1)

    def change(self, reference: Tensor, outputs: Tensor) -> Tensor:
        return (self.reference(outputs) != reference).any(dim=1).double()

    def describe(self) -> str:
        return self.name if self.length == 8 else f"{self.name}:{self.length}"


@RESPONSES.register("continuation-distance")
@dataclass(frozen=True)
class ContinuationDistance(ContinuationFlip):
    """The edit distance between what a language model writes next, before and after, divided by its length.

    The fewest tokens that must be inserted, deleted or replaced to turn one into the other (Levenshtein), from 0 to 1.
    """

    is_binary = False
    name: ClassVar[str] = "continuation-distance"

    def change(self, reference: Tensor, outputs: Tensor) -> Tensor:
        written = self.reference(outputs)
        pairs = zip(reference.tolist(), written.tolist(), strict=True)
        distances = [edit_distance(before, after) / max(len(after), 1) for before, after in pairs]
        return torch.tensor(distances, dtype=torch.float64)


def edit_distance(first: Sequence[float], second: Sequence[float]) -> int:
    """The fewest insertions, deletions and replacements that turn one sequence into the other (Levenshtein 1966).

    >>> edit_distance([1, 2, 3, 4], [2, 3, 4, 5])
    2
    """
    row = list(range(len(second) + 1))  # distances of the beginning of ``first`` so far to each beginning of ``second``
    for number, one in enumerate(first, 1):
        before, row[0] = row[0], number
        for place, other in enumerate(second, 1):
            before, row[place] = row[place], min(row[place] + 1, row[place - 1] + 1, before + (one != other))
    return row[-1]


@RESPONSES.register("kl")
@dataclass(frozen=True)
class KullbackLeibler(TokenResponse):
    """KL(p || p') = sum_y p(y) log(p(y) / p'(y)) in nats, p the softmax of the clean logits, p' of the jostled ones."""

    name: ClassVar[str] = "kl"

    def reference(self, outputs: Tensor) -> Tensor:
        return _distributions(outputs)

    def change(self, reference: Tensor, outputs: Tensor) -> Tensor:
        before, after = (each.double().log_softmax(dim=-1) for each in (reference, _distributions(outputs)))
        return (before.exp() * (before - after)).sum(dim=-1).clamp(min=0)


@RESPONSES.register("total-variation")
@dataclass(frozen=True)
class TotalVariation(TokenResponse):
    """(1/2) sum_y |p'(y) - p(y)|, from 0 to 1: the largest change of the probability of any set of next tokens."""

    bounds = (0.0, 1.0)
    name: ClassVar[str] = "total-variation"

    def reference(self, outputs: Tensor) -> Tensor:
        return _distributions(outputs)

    def change(self, reference: Tensor, outputs: Tensor) -> Tensor:
        before, after = (each.double().softmax(dim=-1) for each in (reference, _distributions(outputs)))
        return ((after - before).abs().sum(dim=-1) / 2).clamp(max=1)


@RESPONSES.register("surprisal")
@dataclass(frozen=True)
class Surprisal(TokenResponse):
    """|log p'(y) - log p(y)| in nats: how much more or less y surprises, the token that the clean model predicts."""

    name: ClassVar[str] = "surprisal"

    def reference(self, outputs: Tensor) -> Tensor:
        logs = _distributions(outputs).double().log_softmax(dim=-1)
        best = logs.max(dim=-1)
        return torch.stack([best.indices.double(), best.values], dim=-1)  # (..., 2)

    def change(self, reference: Tensor, outputs: Tensor) -> Tensor:
        logs = _distributions(outputs).double().log_softmax(dim=-1)
        chosen = reference[..., :1].long()
        return (logs.gather(-1, chosen)[..., 0] - reference[..., 1]).abs()


def _distributions(outputs: Tensor) -> Tensor:
    """Logits (batch, vocabulary) or (batch, tokens, vocabulary) of at least two tokens."""
    if outputs.dim() not in (2, 3) or outputs.shape[-1] < 2 or not outputs.is_floating_point():
        raise UsageError(
            f"the model's outputs have shape {tuple(outputs.shape)}; this response compares distributions over the "
            "next token, logits (batch, tokens, vocabulary)"
        )
    return outputs


def logits_of(outputs: Tensor) -> Tensor:
    """Outputs as (batch, classes); one number for each input is one logit."""
    if outputs.dim() == 1:
        return outputs[:, None]
    if outputs.dim() != 2 or outputs.shape[1] == 0:
        raise UsageError(
            f"the model's outputs have shape {tuple(outputs.shape)}; this response needs (batch, classes), "
            "(batch, 1) or (batch,); for features of other shapes use absolute-change, relative-change or angle"
        )
    return outputs


def _margin(logits: Tensor, chosen: Tensor) -> Tensor:
    """The margin (batch,) of class ``chosen`` (a sign for a single logit)."""
    if logits.shape[1] == 1:
        return chosen * logits[:, 0]
    column = chosen.long()[:, None]
    others = logits.scatter(1, column, -torch.inf).amax(dim=1)
    return logits.gather(1, column)[:, 0] - others
