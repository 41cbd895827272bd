"""Word sensitivity against the length of the input: random features, deep ones, and attention."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from jostle import figures
from jostle.figures import Series
from jostle.studies.catalogue import register
from jostle.studies.evidence import (
    over_seeds,
    paired,
    scaled,
)
from jostle.studies.records import Records
from jostle.studies.schema import IfGiven, Struct
from jostle.studies.settings import Settings
from jostle.studies.study import Cell, Context, Drawing, Study
from jostle.studies.verdict import Expectation, beyond, is_above, is_below, is_less, within
from jostle_papers.p2402_02969.features import (
    DeepRandomFeatures,
    DrawnFeatures,
    WordSensitivity,
    create,
    sensitivity_at,
    wide_change,
)
from jostle_papers.p2402_02969.features import word_sensitivity as search
from jostle_papers.p2402_02969.texts import NO_TEXT, REAL, REVIEW_DIM, labelled_words

ATTENTION = ("raf", "raf-relu", "raf-linear", "raf-qk")
RF, DRF, ANY = "rf", "drf", "any"
_MARGIN = 0.1  # of an exponent of n
_HIGH = 1.0  # features move by their own norm
_CLAIMED = 3  # of what is expected of attention; the size of ReLU attention is no part of the claim
_NAMES = {"isotropic": "isotropic words", "shared-mean": "words with a shared mean", "reviews": "words of reviews"}

BySeed = dict[int, float]


@dataclass(frozen=True, kw_only=True)
class WordSettings(Settings):
    """How much is measured.

    Arguments:
        seeds: each draws new words and new weights.
        words: ``isotropic``, ``shared-mean``, ``reviews``.
        dims: d of the maps of one layer.
        lengths: n.
        review_lengths: n of reviews, whose d is the largest of ``dims`` up to 384.
        deep_dim, deep_lengths, depths: of deep random features.
        positions: number of words of an input that are searched, evenly spread; the ascent runs at the ``kept`` best.
        kept, starts, steps, draws: of the search in attention features.
        few_starts, few_steps, few_draws: of the search in random features, which have no preferred direction.
    """

    words: tuple[str, ...] = ("isotropic", "shared-mean", "reviews")
    dims: tuple[int, ...] = (96, 192, 384)
    lengths: tuple[int, ...] = (10, 20, 40, 80, 160, 320)
    review_lengths: tuple[int, ...] = (10, 20, 40, 80, 160)
    deep_dim: int = 96
    deep_lengths: tuple[int, ...] = (10, 20, 40, 80)
    depths: tuple[int, ...] = (2, 4, 8)
    positions: int = 16
    kept: int = 2
    starts: int = 8
    steps: int = 80
    draws: int = 64
    few_starts: int = 3
    few_steps: int = 40
    few_draws: int = 16


@dataclass(frozen=True)
class WordCell(Cell):
    """A map on words of one kind."""

    map: str
    words: str
    dim: int
    n: int
    seed: int


@dataclass(frozen=True)
class DeepCell(Cell):
    """Deep random features."""

    map: str
    words: str
    depth: int
    dim: int
    n: int
    seed: int


@dataclass(frozen=True, kw_only=True)
class WordRecord(Struct):
    """How far the features of one input move; the fields are those of ``features.WordSensitivity``.

    Arguments:
        upper: an upper bound, of random features of one layer.
    """

    value: float
    average: float
    largest: float
    constructed: float | None
    absolute: float
    position: int
    upper: IfGiven[float | None] = None


WordRecords = Records[WordSettings, WordCell | DeepCell, WordRecord]
Read = Callable[[WordRecord], float]


@register
class WordSensitivityStudy(Study[WordSettings, WordCell | DeepCell, WordRecord]):
    """sup over one word's changes of the relative change of features, as n grows."""

    name = "2402.02969/word-sensitivity"
    title = "Word sensitivity of random features and of attention, against the length of the input"
    claim = (
        "The word sensitivity of random features falls like 1/sqrt(n), also of deep ones of 2 to 8 layers; that of "
        "softmax attention stays high for all n (at small scale words of reviews, n up to 160 and d = 384); with ReLU "
        "in the place of softmax it falls faster."
    )
    source = "Eq. 3.4 and the experiments of the released code, sensitivity.py"
    version = 2
    scales = {
        "smoke": WordSettings(
            seeds=3, words=("isotropic", "shared-mean"), dims=(8,), lengths=(4, 8), review_lengths=(), deep_dim=4,
            deep_lengths=(4, 8), depths=(2,), positions=2, kept=1, starts=2, steps=3, draws=4, few_steps=3, few_draws=4,
        ),
        "small": WordSettings(seeds=8),
        "paper": WordSettings(
            seeds=5, dims=(192, 384, 768), lengths=(10, 20, 50, 100, 150, 200, 250), deep_dim=768,
            review_lengths=(10, 20, 50, 100, 150, 200, 250), deep_lengths=(50, 60, 70, 80), depths=(2, 4, 8),
            positions=250, kept=3, starts=12, steps=200,
        ),
    }  # fmt: skip
    deviations = (
        NO_TEXT,
        REAL,
        "The supremum over positions is over evenly spread ones, and those where a closed-form change moves most are "
        "searched by gradient; the released code looks at position 0 only. Every number is a lower bound.",
        "The ball is centred on the word, several starts are made and the best iterate is kept; the released code's "
        "ball is centred on a jittered start, from which it takes the last iterate.",
        "Random features depend on words of norm sqrt(d) through these norms only, so they are measured once, at one "
        "position: all positions and all kinds of words have the same law. Deep ones too are drawn exactly in law, "
        "without their matrices.",
        "The released ranges of n (90 to 150 for RF, 50 to 80 for DRF) are too short for an exponent; small scale has "
        "10 to 320 and 10 to 80.",
        "Version 1 had no deep features of 8 layers. Its list of expectations was longer, and all of them agreed: the "
        "claim is now about the largest d and real words; the same of other words and dimensions is beyond it.",
    )

    def cells(self, settings: WordSettings, seeds: Sequence[int]) -> list[WordCell | DeepCell]:
        return [
            *(
                WordCell(name, words, dim, n, seed)
                for words in settings.words
                for dim in _dims(settings, words)
                for name in ATTENTION
                for n in (settings.review_lengths if words == "reviews" else settings.lengths)
                for seed in seeds
            ),
            *(WordCell(RF, ANY, dim, n, seed) for dim in settings.dims for n in settings.lengths for seed in seeds),
            *(
                DeepCell(DRF, ANY, depth, settings.deep_dim, n, seed)
                for depth in settings.depths
                for n in settings.deep_lengths
                for seed in seeds
            ),
        ]

    def measure(self, cell: WordCell | DeepCell, settings: WordSettings, context: Context) -> WordRecord:
        n, dim, seed = cell.n, cell.dim, cell.seed
        kind = "isotropic" if cell.words == ANY else cell.words
        words, _ = labelled_words(kind, 2, num_tokens=n, dim=dim, seed=seed, folder=context.data)
        if cell.map in ATTENTION:
            found = search(
                create(cell.map, num_tokens=n, dim=dim, seed=seed),
                words[seed % 2],  # of reviews one of each class
                positions=range(0, n, max(1, n // settings.positions)),
                screen=settings.kept,
                starts=settings.starts,
                steps=settings.steps,
                draws=settings.draws,
                seed=seed,
            )
            return _record(found)
        few = {"starts": settings.few_starts, "steps": settings.few_steps, "draws": settings.few_draws}
        if isinstance(cell, DeepCell):
            deep = DeepRandomFeatures(num_tokens=n, dim=dim, depth=cell.depth, seed=seed, lazy=True)
            return _record(sensitivity_at(deep.one_word(words[0], 0), 1.0, n, seed=seed, **few))
        one_word = DrawnFeatures(words[:1].float(), 0, seed=seed).one_word()  # float32: 350 MB at n = 150, d = 768
        upper = one_word.upper_bound(math.sqrt(dim))
        return _record(sensitivity_at(one_word, 1.0, n, seed=seed, **few), upper)

    def figures(self, records: WordRecords) -> list[Drawing]:
        settings = records.settings
        return [_draw_against_length(records, words, _dims(settings, words)[-1]) for words in settings.words] + [
            _draw_averages(records, settings.words[-1])
        ]

    def expectations(self, records: WordRecords) -> list[Expectation]:
        settings = records.settings
        claimed: list[Expectation] = []
        asked: list[Expectation] = []
        for dim in settings.dims:
            fall = over_seeds(_slopes(records, map=RF, dim=dim))
            expected = within(f"exponent of n in the word sensitivity of RF, d = {dim}", fall, -0.5, _MARGIN)
            (claimed if dim == settings.dims[-1] else asked).append(expected)
        for depth in settings.depths:
            fall = over_seeds(_slopes(records, map=DRF, depth=depth))
            claimed.append(is_below(f"exponent of n of DRF with {depth} layers", fall, -0.5 + _MARGIN))
        for words in settings.words:
            found = _expect_of_attention(records, words, _dims(settings, words)[-1])
            if words == settings.words[-1]:  # the real ones, where there are some
                claimed += found[:_CLAIMED]
                asked += found[_CLAIMED:]
            else:
                asked += found
        return [*claimed, *map(beyond, [*asked, *_further(records)])]


def _expect_of_attention(records: WordRecords, words: str, dim: int) -> list[Expectation]:
    """Softmax high for all n and ReLU falling faster, at the largest d, where n < d as the theorem asks; then sizes."""
    part = records.where(words=words, dim=dim)
    last = part.distinct("n")[-1]
    where = f"{words} words, d = {dim}"
    softmax, relu = (part.where(map=name, n=last).by("seed", _value) for name in ("raf", "raf-relu"))
    slopes = {name: _slopes(part, map=name) for name in ("raf", "raf-relu")}
    return [
        is_above(f"word sensitivity of RAF at n = {last}, {where}", over_seeds(softmax), _HIGH),
        is_above(f"exponent of n of RAF, {where}", over_seeds(slopes["raf"]), -0.5 + 2 * _MARGIN),
        is_less(f"exponent of n of ReLU-RAF - that of RAF, {where}", slopes["raf-relu"], slopes["raf"]),
        is_less(f"word sensitivity of ReLU-RAF - that of RAF at n = {last}, {where}", relu, softmax),
    ]


def _further(records: WordRecords) -> list[Expectation]:
    """Averages, closed forms and further maps."""
    settings, found = records.settings, []
    for words in settings.words:
        dim = _dims(settings, words)[-1]
        part = records.where(words=words, dim=dim)
        last = part.distinct("n")[-1]
        where = f"{words} words, d = {dim}, n = {last}"
        ends = {name: part.where(map=name, n=last) for name in ATTENTION}
        wide, _ = wide_change(last)
        average = over_seeds(ends["raf"].by("seed", _average))
        found += [
            is_below(f"RAF under random changes, over RF's {wide:.3f}, {where}", scaled(average, 1 / wide), 1.0),
            is_above(
                f"share of the worst change of RAF that a closed form reaches, {where}",
                over_seeds(ends["raf"].by("seed", _constructed_share)),
                0.5,
            ),
            within(
                f"log of W_Q W_K^T over W, word sensitivity, {where}",
                paired(_logs(ends["raf-qk"]), _logs(ends["raf"])),
                0.0,
                0.25,
            ),
            is_less(
                f"word sensitivity of linear attention - that of RAF, {where}",
                ends["raf-linear"].by("seed", _value),
                ends["raf"].by("seed", _value),
            ),
        ]
    for n in (settings.lengths[0], settings.lengths[-1]):
        part = records.where(map=RF, dim=settings.dims[-1], n=n)
        wide, _ = wide_change(n)
        average = scaled(over_seeds(part.by("seed", _average)), 1 / wide)
        found.append(within(f"RF under random changes, over the limit of many features, n = {n}", average, 1.0, 0.05))
    return found


def _dims(settings: WordSettings, words: str) -> tuple[int, ...]:
    """The dimensions of these words."""
    return settings.dims if words != "reviews" else (max(dim for dim in settings.dims if dim <= REVIEW_DIM),)


def _record(found: WordSensitivity, upper: float | None = None) -> WordRecord:
    return WordRecord(
        value=found.value,
        average=found.average,
        largest=found.largest,
        constructed=found.constructed,
        absolute=found.absolute,
        position=found.position,
        upper=upper,
    )


def _value(record: WordRecord) -> float:
    return record.value


def _average(record: WordRecord) -> float:
    return record.average


def _constructed_share(record: WordRecord) -> float:
    """The share of the largest change that a closed form reaches."""
    assert record.constructed is not None, "every map of attention suggests a direction"
    return record.constructed / record.value


def _logs(part: WordRecords) -> BySeed:
    return {seed: math.log(value) for seed, value in part.by("seed", _value).items()}


def _slopes(records: WordRecords, **values: Any) -> BySeed:
    """The exponent of n by seed: the slope of log S over log n."""
    part = records.where(**values)
    lengths = np.log(part.distinct("n"))
    return {
        seed: float(np.polyfit(lengths, np.log(part.where(seed=seed).column(_value)), 1)[0])
        for seed in part.distinct("seed")
    }


def _series(name: str, part: WordRecords, read: Read = _value) -> Series:
    """Mean over seeds against n, with Student's interval of 95 %."""
    lengths = part.distinct("n")
    means = [over_seeds(part.where(n=n).by("seed", read)) for n in lengths]
    ends = [mean.ends(0.95) for mean in means]
    return Series(
        name, lengths, [mean.value for mean in means], [max(low, 1e-3) for low, _ in ends], [high for _, high in ends]
    )


def _draw_against_length(records: WordRecords, words: str, dim: int) -> Drawing:
    part = records.where(words=words, dim=dim)
    series = [_series(name, part.where(map=name)) for name in ATTENTION]
    series.append(_series(RF, records.where(map=RF, dim=dim)))
    series += [_series(f"drf {depth}", records.where(map=DRF, depth=depth)) for depth in records.settings.depths]
    return Drawing(
        f"length-{words}",
        figures.curves(
            series, x_label="words n", y_label=f"word sensitivity (at least), d = {dim}", log_x=True, log_y=True
        ),
        f"Word sensitivity against the number of words, {_NAMES.get(words, words)} of dimension {dim}: attention with "
        "softmax (raf), also with factorised weights (raf-qk), ReLU and none (raf-linear); random features (rf), also "
        f"deep ones (drf, dimension {records.settings.deep_dim}). Mean over seeds with 95 % intervals; both axes "
        "logarithmic.",
        "A line for each map: those of random features fall and lie lowest, that of softmax attention stays level.",
    )


def _draw_averages(records: WordRecords, words: str) -> Drawing:
    dim = _dims(records.settings, words)[-1]
    part = records.where(words=words, dim=dim)
    series = [
        Series(f"{name} {kind}", line.x, line.y)
        for name, cells in (("raf", part.where(map="raf")), (RF, records.where(map=RF, dim=dim)))
        for kind, line in (("worst", _series(name, cells)), ("random", _series(name, cells, _average)))
    ]
    return Drawing(
        "averages",
        figures.curves(
            series, x_label="words n", y_label=f"relative change of features, d = {dim}", log_x=True, log_y=True
        ),
        f"The worst change found and the average over random changes of the same length, {words} words, softmax "
        "attention and random features.",
        "Two lines of random features close together, and two of attention far apart.",
    )
