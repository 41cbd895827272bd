"""Plans: which triples (input, token, draw) are tried, in which order, when to stop, and which share a batch.

``Grid`` tries every input and every token a fixed number of times, the papers' protocol. ``Until`` draws triples at
random until the interval is narrow enough. ``DefaultPlan`` is the rule that chooses between the two. ``Batching`` cuts
trials into batches.

Which trials share a batch: any of them, or, for text, those of about the same length.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from jostle.base import checks
from jostle.base.errors import UsageError
from jostle.base.randomness import Stream
from jostle.base.registry import Registry
from jostle.base.specs import written
from jostle.perturbations import Perturbation
from jostle.responses import Response
from jostle.tokens import Batch, Inputs

Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Trials:
    """Triples (input, token, draw) in the order in which they are counted.

    Arguments:
        inputs, tokens, draws: (count,) each. The noise of a trial is a function of its triple and the seed.
        weights: (count,) what a change counts, if trials were not drawn uniformly; None if all count the same.
    """

    inputs: Integers
    tokens: Integers
    draws: Integers
    weights: NDArray[np.float64] | None = None

    def __len__(self) -> int:
        return len(self.inputs)

    def __getitem__(self, part: slice | Integers) -> "Trials":
        weights = None if self.weights is None else self.weights[part]
        return Trials(self.inputs[part], self.tokens[part], self.draws[part], weights)


@dataclass(frozen=True)
class Grid:
    """Try all N x T x draws triples: paper 1 (2403.06925), Section 5, which uses 5 draws.

    Inputs are visited in a random order drawn in advance, so that the result after an interruption is an estimate from
    a random part of the inputs.

    Arguments:
        draws: how often each token of each input is jostled; a deterministic perturbation takes one.
    """

    draws: int = 5

    def __post_init__(self) -> None:
        object.__setattr__(self, "draws", checks.whole("draws", self.draws, least=1))

    def order(self, inputs: Inputs, seed: int) -> Integers:
        """The order in which inputs are visited."""
        return Stream(seed, "order").permutation(len(inputs))

    def blocks(self, inputs: Inputs, chosen: Integers, block: int) -> Iterator[Trials]:
        """Trials of the ``chosen`` inputs, a few whole inputs at a time, about ``block`` trials, token by token."""
        tokens, counts = inputs.num_tokens, inputs.token_counts
        if inputs.padding is not None and counts is not None:
            tokens = round(float(counts.mean()))  # many columns of texts are padding
        step = max(1, block // (tokens * self.draws))
        for start in range(0, len(chosen), step):
            yield self._trials(inputs, chosen[start : start + step])

    def _trials(self, inputs: Inputs, chosen: Integers) -> Trials:
        if inputs.mask is None:
            owner = np.repeat(chosen, inputs.num_tokens)
            tokens = np.tile(np.arange(inputs.num_tokens), len(chosen))
        else:
            row, tokens = np.nonzero(inputs.mask[chosen])
            owner = chosen[row]
        draws = np.tile(np.arange(self.draws), len(owner))
        return Trials(np.repeat(owner, self.draws), np.repeat(tokens, self.draws), draws)

    def describe(self) -> str:
        """A spec that makes this plan again."""
        return f"grid:draws={self.draws}"


_FIRST_LOOK = 64
_FINEST = 1e-9  # a half width for which 10^17 passes would be needed
_GROWTH = 0.04


@dataclass(frozen=True)
class Until:
    """Draw (input, token, noise) independently until the interval is narrow enough, or a difference is decided.

    Each trial takes an input uniformly with replacement, one of its tokens uniformly, and fresh noise, so the changes
    are independent draws whose mean is the sensitivity on this dataset; their number depends on neither N nor T. The
    interval is valid at every stopping time. It is looked at after 64 draws and then at draw numbers that grow by 4 %,
    whatever the batch size: the same seed stops at the same draw.

    Arguments:
        half_width: stop when the interval is at most this wide to each side on average: high - low <= 2 half_width.
        relative: stop when (high - low) / 2 <= relative * value. Give this or ``half_width``.
        decided: in ``compare`` and ``sweep``, stop when the sign of every difference between two models is decided, see
            ``intervals.sign``: which one is more sensitive takes far fewer draws than how sensitive each is. Give this
            instead of ``half_width`` or ``relative``.
        at_least: with ``decided``, the smallest difference of interest: a pair is done too when its difference is shown
            to be smaller. Without it, equal models are compared until ``max_passes``.
        max_passes: stop before a model has answered more inputs than this; the result says that this ended it.
        adaptive: whether flips of one model may be sought where they are likely, after a pilot that predicts that this
            saves passes, see ``sampling.adaptive``. It saves most where flips are rare: to ±10 % at a sensitivity of
            0.0005 about 6 to 9 times the passes, at 0.05 none, and then draws stay uniform. Draws for several models,
            for the population and for other responses than flips are always uniform.
    """

    half_width: float | None = None
    relative: float | None = None
    max_passes: int = 1_000_000
    adaptive: bool = True
    decided: bool = False
    at_least: float | None = None

    def __post_init__(self) -> None:
        for name, flag in (("adaptive", self.adaptive), ("decided", self.decided)):
            if not isinstance(flag, bool):
                raise checks.wrong(name, flag, "true or false")
        if (self.half_width is not None) + (self.relative is not None) + self.decided != 1:
            raise UsageError(
                "Until needs exactly one of half_width=, relative= and decided=True, for example Until(half_width=0.01)"
            )
        if self.at_least is not None and not self.decided:
            raise UsageError(f"at_least={self.at_least} needs decided=True: it says which differences are of interest")
        rules = {"half_width": self.half_width, "relative": self.relative, "at_least": self.at_least}
        for name, value in rules.items():
            if value is not None:
                object.__setattr__(self, name, checks.number(name, value, above=0))
                if value < _FINEST:
                    raise UsageError(f"{name}={value} is finer than can be measured; give at least {_FINEST}")
        object.__setattr__(self, "max_passes", checks.whole("max_passes", self.max_passes, least=1))

    @property
    def is_relative(self) -> bool:
        """Whether the interval must be narrow in relation to the value."""
        return self.relative is not None

    def trials(self, inputs: Inputs, seed: int, start: int, stop: int, average: str = "macro") -> Trials:
        """Trials number ``start`` .. ``stop`` - 1 of the endless sequence of this seed.

        Inputs are drawn uniformly; with ``average="micro"`` in proportion to their tokens, which makes tokens uniform.
        """
        number = np.arange(start, stop)
        zeros = np.zeros(stop - start)
        uniforms = Stream(seed, "until").uniforms(number, zeros, zeros, size=2)
        if average == "micro" and inputs.token_counts is not None:
            share = np.cumsum(inputs.token_counts) / inputs.token_counts.sum()
            chosen = np.searchsorted(share, uniforms[:, 0], side="right").clip(max=len(inputs) - 1)
        else:
            chosen = (uniforms[:, 0] * len(inputs)).astype(np.int64)
        counts = inputs.num_tokens if inputs.token_counts is None else inputs.token_counts[chosen]
        nth = (uniforms[:, 1] * counts).astype(np.int64)
        return Trials(chosen, inputs.nth_token(chosen, nth), number)

    @staticmethod
    def looks(start: int = 0) -> Iterator[tuple[int, int]]:
        """(previous look, this look) in numbers of draws, from the look at ``start`` on."""
        while True:
            step = max(_FIRST_LOOK, math.ceil(_GROWTH * start / _FIRST_LOOK) * _FIRST_LOOK)
            yield start, start + step
            start += step

    def is_met(self, value: ArrayLike, low: ArrayLike, high: ArrayLike) -> NDArray[np.bool_]:
        """Whether an interval is narrow enough to stop, element by element."""
        aim = self.half_width if self.half_width is not None else (self.relative or 0.0) * np.abs(value)
        return np.asarray(np.subtract(high, low) <= 2 * aim)

    def share_done(self, value: float, low: float, high: float) -> float:
        """About which share of the needed draws has been made: widths shrink with the square root of the draws."""
        aim = self.half_width if self.half_width is not None else (self.relative or 0.0) * abs(value)
        width = (high - low) / 2
        return 1.0 if width <= aim else float(aim / width) ** 2

    def least_draws(self, low: float, high: float, level: float) -> float:
        """About how many draws the exact interval of this level takes to meet the rule, at the best rate in a range.

        From b^2 p (1 - p) / n = half_width^2, or relative^2 p^2, with b standard errors to each side, and from the
        draws that even p = 0 takes.

        >>> [round(plan.least_draws(0.0, 0.5, 0.97)) for plan in (Until(half_width=0.01), Until(relative=0.1))]
        [210, 471]

        Arguments:
            low, high: between them is the rate of flips.
            level: of the interval that the rule looks at.
        """
        tail = (1 - level) / 2
        reach = float(special.ndtri(tail)) ** 2
        if self.half_width is None:
            return reach * (1 - high) / (high * (self.relative or 1.0) ** 2)
        variance = min(low * (1 - low), high * (1 - high))
        return max(reach * variance / self.half_width**2, -math.log(tail) / (2 * self.half_width))

    def horizon(self, p: NDArray[np.float64], level: float) -> NDArray[np.float64]:
        """The number of draws at which sampling is expected to stop if the proportion is p.

        From b^2 p (1 - p) / n = half_width^2, where b is the boundary of the tuned mixture in standard errors (3.03
        at level 0.95), and from the draws that even p = 0 takes.
        """
        log_threshold = -math.log1p(-level)
        tuning = 2 * log_threshold + math.log1p(2 * log_threshold)
        boundary = (1 + 1 / tuning) * (math.log1p(tuning) + 2 * log_threshold)
        variance = np.maximum(p * (1 - p), 1e-12)
        if self.half_width is None:  # a decision takes about as many draws as +-30 %, or more, or fewer
            return np.minimum(boundary * variance / ((self.relative or 0.3) * np.maximum(p, 1e-12)) ** 2, 1e12)
        return np.maximum(boundary * variance / self.half_width**2, 0.65 * log_threshold / self.half_width)

    def describe(self) -> str:
        """A spec that makes this plan again."""
        numbers = {"half_width": self.half_width, "relative": self.relative, "at_least": self.at_least}
        rules = [f"{name}={written(value)}" for name, value in numbers.items() if value is not None]
        rules = ["decided=true", *rules] if self.decided else rules
        off = [] if self.adaptive else ["adaptive=false"]
        return "until:" + ",".join([*rules, f"max_passes={self.max_passes}", *off])


Plan = Grid | Until
PLANS: Registry[type[Plan]] = Registry("plan")
PLANS.register("grid")(Grid)
PLANS.register("until")(Until)

_PASSES_OF_CHECKS = 100  # that a model answers before the first trial: see TokenFunction.check_steady and check_text


@dataclass(frozen=True)
class DefaultPlan:
    """The plan where none is given: exact if that is cheap, else sampled to a precision.

    A perturbation without randomness on at most ``most_tokens`` tokens is tried on every token, ``Grid(1)``: the answer
    is then exact. Everything else, and what would take more than ``max_passes``, is sampled by ``Until``.

    Arguments:
        half_width: the precision of flips.
        relative: the precision of other responses.
        max_passes: the most inputs that a model answers.
        most_tokens: the most tokens of all inputs together that are tried exhaustively.
        adaptive: as for ``Until``.
    """

    half_width: float = 0.01
    relative: float = 0.05
    max_passes: int = 1_000_000
    most_tokens: int = 10_000
    adaptive: bool = True

    def __post_init__(self) -> None:
        Until(half_width=self.half_width, max_passes=self.max_passes)
        Until(relative=self.relative)
        checks.whole("most_tokens", self.most_tokens, least=0)

    def choose(self, inputs: Inputs, perturbation: Perturbation, response: Response) -> Plan:
        """The plan for these inputs."""
        tokens = len(inputs) * inputs.num_tokens
        is_cheap = tokens <= self.most_tokens and tokens + len(inputs) + _PASSES_OF_CHECKS <= self.max_passes
        if perturbation.is_deterministic and is_cheap:
            return Grid(draws=1)
        if response.is_binary:
            return Until(half_width=self.half_width, max_passes=self.max_passes, adaptive=self.adaptive)
        return Until(relative=self.relative, max_passes=self.max_passes, adaptive=self.adaptive)


_MOST_PADDING = 0.05
_USUAL, _LARGEST = 128, 256
_MOST_BYTES, _FEW_BYTES = 2**25, 2**19
# The outputs of a layer should fit in a cache: with 4,400 tokens at once an encoder of hidden width 3072 took 24 %
# longer for a text than with 1,100; one of width 1024 took as long, and networks of width 64 take 40 % less.
TOKENS_ON_CPU = 1024
_MOST_TOKENS = 8192
_TOKEN_BYTES = 2**20 * 12
_FREE_PADDING, _MOST_FREE = 2**28, 512
_LANE, _MOST_SPARE, _PADDING_A_COLUMN = 16, 4, 64


def inputs_at_once(widest: int) -> int:
    """The batch size where none is given: 128, fewer if a layer's output would exceed 32 MiB, 256 for tiny layers.

    It depends on the model alone and on no clock, so that the same call gives the same bits on every machine. Measured
    on an MLP, a CNN, a ResNet and a ViT: sizes from 64 to 128 are within 8 % of the best, 512 takes up to 1.6 times as
    long.

    >>> inputs_at_once(2_000), inputs_at_once(150_000), inputs_at_once(3_000_000)
    (256, 128, 11)

    Arguments:
        widest: bytes of the largest output of a layer for one input; 0 if it is not known.
    """
    if 0 < widest * _LARGEST <= _FEW_BYTES:
        return _LARGEST
    return max(1, min(_USUAL, _MOST_BYTES // max(widest, 1)))


def tokens_at_once(widest: float) -> int:
    """For texts, the most tokens in a batch on a CPU, from the bytes of the largest output for one token."""
    return TOKENS_ON_CPU if not widest else int(np.clip(_TOKEN_BYTES // widest, TOKENS_ON_CPU // 2, _MOST_TOKENS))


def padding_for_free(widest: float) -> int:
    """For texts, how many tokens a model reads in the time that one more batch takes, whatever it holds.

    From the bytes of the largest output for one token: time a token grows with the square of a model's width, time a
    batch does not. At 1,024 bytes (an encoder of width 64) it is 256 tokens.

    >>> padding_for_free(1024), padding_for_free(12_288), padding_for_free(0)
    (256, 1, 0)
    """
    return int(min(_FREE_PADDING / widest**2, _MOST_FREE)) if widest else 0


def columns_to_spare(free_padding: int) -> int:
    """For texts, how many columns of padding a model that attends reads more quickly than none, up to a whole lane.

    On a CPU torch's attention takes 16 columns at a time and the rest one by one: for a width of 31 twice as long as
    for 32. An encoder of width 64 took 13 % longer for 31 columns than for 32, and as long for 28; one of twice that
    width gains a column or two, and large ones, whose time goes into other layers, nothing.

    >>> columns_to_spare(256), columns_to_spare(64), columns_to_spare(1)
    (4, 1, 0)
    """
    return min(_MOST_SPARE, free_padding // _PADDING_A_COLUMN)


class Batching:
    """Cuts trials into batches.

    Texts of about the same length share a batch, so that at most 5 % of its tokens are padding, or as many as cost
    less than another batch would, and a batch is cut to its longest text; it may then be smaller than ``batch_size``.
    Padding that saves time does not count.
    The change of a trial does not depend on its batch beyond rounding, and changes are counted in the order in which
    trials were drawn.

    Attributes:
        trims: whether batches of texts are cut to their longest text.
        free_padding: tokens of padding that cost less than another batch.
        spare_columns: texts that are so few columns short of a multiple of 16 keep as many, see ``columns_to_spare``.

    Arguments:
        inputs: what trials are about.
        batch_size: the most trials in a batch; None for 128.
        most_tokens: for texts, the most tokens in a batch of more than one.
    """

    def __init__(self, inputs: Inputs, batch_size: int | None, most_tokens: float = np.inf) -> None:
        self.inputs, self.batch_size, self.most_tokens = inputs, batch_size or inputs_at_once(0), most_tokens
        self.trims = inputs.padding is not None
        self.free_padding = self.spare_columns = 0

    def order(self, chosen: Integers) -> Integers:
        """The order in which these inputs are best evaluated: (len(chosen),) places in ``chosen``."""
        if self.inputs.padding is None or not self.trims:
            return np.arange(len(chosen))
        return np.argsort(self.inputs.padding.lengths[chosen], kind="stable")

    def cuts(self, chosen: Integers) -> Iterator[slice]:
        """Slices of ``chosen``, a batch each; for texts, ``chosen`` is sorted by ``order``."""
        start = 0
        while start < len(chosen):
            stop = min(start + self.batch_size, len(chosen))
            if self.inputs.padding is not None and self.trims:
                stop = start + self._even(chosen[start:stop])
            yield slice(start, stop)
            start = stop

    def _even(self, chosen: Integers) -> int:
        """How many of these inputs, from the first on, can share a batch with little padding; at least 1."""
        padding = self.inputs.padding
        assert padding is not None
        first, stop = padding.first[chosen], padding.stop[chosen]
        width = self._kept(np.maximum.accumulate(stop) - np.minimum.accumulate(first))
        computed = width * np.arange(1, len(chosen) + 1)  # tokens, padding included, of the first 1, 2, ...
        padded = computed - np.cumsum(self._kept(stop - first))
        is_even = padded <= np.maximum(_MOST_PADDING * computed, self.free_padding)
        return int(np.flatnonzero(is_even & (computed <= max(self.most_tokens, computed[0])))[-1]) + 1

    def batch(self, chosen: Integers) -> tuple[Batch, int]:
        """These inputs without the columns that are padding in all of them, and the first column that is left.

        Columns that save time are left in, see ``spare_columns``.
        """
        if self.inputs.padding is None or not self.trims:
            return self.inputs.batch(chosen), 0
        first, stop = self.inputs.padding.window(chosen)
        more = int(self._kept(np.asarray(stop - first))) - (stop - first)
        after = min(more, self.inputs.padding.width - stop)
        first -= more - after
        return self.inputs.batch(chosen, (first, stop + after)), first

    def _kept(self, widths: Integers) -> Integers:
        """How many columns a batch has whose texts take up ``widths`` columns."""
        padding = self.inputs.padding
        assert padding is not None
        whole = -(-widths // _LANE) * _LANE
        return np.where((whole - widths <= self.spare_columns) & (whole <= padding.width), whole, widths)
