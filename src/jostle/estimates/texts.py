"""``change_texts``: how often a prediction changes when a text is changed as people change texts.

A changed word may become other tokens, and more or fewer of them, so texts are changed before they are encoded. The
result says for each word how often its change flipped the prediction, and which tokens of the unchanged text it has.
"""

import itertools
import json
import math
import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from jostle.base import checks, specs
from jostle.base import progress as progress_bar
from jostle.base.errors import FailureError, UsageError, shown
from jostle.base.estimate import Estimate, Interval, in_seconds, provenance
from jostle.base.files import write_text
from jostle.base.model import call, eval_mode, logits_of
from jostle.base.notebook import in_frame, shaded_text, table_html
from jostle.base.progress import State
from jostle.base.randomness import Stream
from jostle.base.table import Row
from jostle.data import TextDataset
from jostle.estimates.clean import clean_outputs
from jostle.estimates.measure import JostleWarning
from jostle.estimates.per_input import read_clusters
from jostle.estimates.result import Floats
from jostle.integrations import TextNetwork, TextReader, reader_of
from jostle.intervals import fixed
from jostle.responses import RESPONSES, Response
from jostle.sampling.plans import Batching
from jostle.text_changes import TEXT_CHANGES, Span, TextChange
from jostle.tokens import Inputs, TokenFunction, Words

Answer = Callable[[Sequence[str]], Tensor]
_AT_ONCE = 512  # changed texts between two lines of progress
_MOST = 10_000_000  # changes; each takes some hundred bytes
_UNIFORMS = 2  # numbers that a change is made from


def change_texts(
    model: Any,
    texts: Sequence[str],
    *,
    change: TextChange | str,
    response: Response | str = "flip",
    draws: int = 1,
    words: int | None = None,
    tokenizer: str | Path | None = None,
    cluster: Any = None,
    level: float = 0.95,
    seed: int = 0,
    batch_size: int | None = None,
    device: str | None = None,
    progress: progress_bar.Progress = False,
    name: str = "model",
) -> "TextChanges":
    """Change one word of a text, or the wording of a slot, and see whether the prediction changes.

    >>> import torch, jostle
    >>> loud = lambda texts: torch.tensor([[sum(map(str.isupper, text)) - 2.5, 0.0] for text in texts])
    >>> found = jostle.change_texts(loud, ["It is late", "Go now"], change="case")
    >>> print(found.sentence)
    3 of 5 changes changed the prediction

    Arguments:
        model: a network of texts that knows its tokenizer (``jostle.integrations.load("hf:DIR")``), any network with
            ``tokenizer=``, or a callable from a list of texts to outputs (batch, classes).
        texts: as people wrote them.
        change: ``Typo()``, ``Case()``, ``Ocr()``, ``Alternatives(file)`` or ``PromptSlot(variants)`` of
            ``jostle.text_changes``, or a spec: ``"typo"``, ``"case:lower"``, ``"alternatives:synonyms.csv"``,
            ``"slot:Please answer|Answer"``.
        response: what counts as a change of the outputs; a flip by default.
        draws: how often each word is changed; a change without randomness is made once.
        words: at most this many random words of each text; by default all that fit.
        tokenizer: a tokenizer.json or its folder, for a network without one of its own.
        cluster: (texts,) what each text belongs to; the population interval takes clusters for independent.
        level, seed, batch_size, device, progress, name: as for ``measure``.

    Raises:
        UsageError: an argument or a text cannot be used; the message is one line.
    """
    checks.text("name", name)
    started = time.perf_counter()
    made = specs.build(TEXT_CHANGES, change, "change", TextChange)
    said = specs.build(RESPONSES, response, "response", Response)
    checks.sizes(draws=draws, **({} if words is None else {"words": words}))
    level, seed = checks.level(level), checks.whole("seed", seed)
    listed = _read(texts)
    clusters = None if cluster is None else read_clusters(cluster, len(listed))
    size = 128 if batch_size is None else checks.whole("batch_size", batch_size, least=1)
    answerer = Answerer(model, name, tokenizer, size, device)
    prepared = [made.prepare(text) for text in listed]
    drawn = 1 if made.is_deterministic else draws
    trials = _trials([spans for _, spans in prepared], drawn, words, seed)
    if not len(trials):
        raise UsageError(f"change={made.describe()} fits no word of the {len(listed):,} texts")
    clean = [text for text, _ in prepared]
    changed = (_changed(made, prepared[row], place, uniforms) for row, place, uniforms in trials)
    changes = _ask(answerer, clean, changed, [row for row, _, _ in trials], said, progress)
    result = _result(name, made, said, prepared, trials, changes, answerer, drawn, clusters, level, seed)
    for text in result.warnings:
        warnings.warn(text, JostleWarning, stacklevel=2)
    return _timed(result, time.perf_counter() - started)


Trial = tuple[int, int, tuple[float, ...]]  # text, place among its spans, uniform numbers


def _read(texts: Any) -> list[str]:
    listed = [texts] if isinstance(texts, str) or not isinstance(texts, Iterable) else list(texts)
    wrong = [text for text in listed if not isinstance(text, str)]
    if not listed or wrong:
        raise UsageError(
            "texts must be a list of at least one text" + (f", and {shown(wrong[0])} is none" if wrong else "")
        )
    return listed


def _trials(spans: Sequence[Sequence[Span]], draws: int, words: int | None, seed: int) -> list[Trial]:
    asked = draws * sum(len(places) if words is None else min(len(places), words) for places in spans)
    if asked > _MOST:
        raise UsageError(f"these are {asked:,} changes, more than {_MOST:,}: give fewer texts, draws or words")
    found = []
    for row, places in enumerate(spans):
        kept = np.arange(len(places))
        if words is not None and len(places) > words:
            kept = np.sort(Stream(seed, f"texts/words/{row}").permutation(len(places))[:words])
        for place in kept.tolist():
            numbers = np.arange(draws)
            uniforms = Stream(seed, "texts").uniforms(np.full(draws, row), np.full(draws, place), numbers, _UNIFORMS)
            found += [(row, place, tuple(each)) for each in uniforms.tolist()]
    return found


def _changed(change: TextChange, prepared: tuple[str, list[Span]], place: int, uniforms: Sequence[float]) -> str:
    text, spans = prepared
    start, stop = spans[place]
    return text[:start] + change.apply(text[start:stop], uniforms) + text[stop:]


class Answerer:
    """A model that answers texts; it counts them.

    Attributes:
        reader: how the model reads texts; None for a callable of texts.
        passes: texts answered so far.
        warnings: about the model.

    Arguments:
        model, tokenizer, batch_size, device: as for ``change_texts``.
        name: of the model in messages.
    """

    def __init__(
        self, model: Any, name: str, tokenizer: str | Path | None, batch_size: int, device: str | None
    ) -> None:
        checks.function(name, model)
        self.reader: TextReader | None = None
        if isinstance(model, TextNetwork) or tokenizer is not None:
            self.reader = reader_of(model, name=name, tokenizer=tokenizer)
        self.model = model.network if isinstance(model, TextNetwork) else model
        self.name, self.batch_size, self.device = name, batch_size, device
        self.passes, self.warnings = 0, list[str]()

    def __call__(self, texts: Sequence[str]) -> Tensor:
        """Outputs (texts, ...) in float64."""
        self.passes += len(texts)
        if self.reader is not None:
            return self._encoded(texts)
        parts = []
        with eval_mode(self.model), torch.inference_mode():
            for start in range(0, len(texts), self.batch_size):
                some = list(texts[start : start + self.batch_size])
                outputs = logits_of(call(self.model, some, name=self.name), name=self.name)
                if len(outputs) != len(some):
                    raise FailureError(f"{self.name} gave {len(outputs)} outputs for {len(some)} texts")
                parts.append(outputs.detach().cpu().double())
        return torch.cat(parts)

    def _encoded(self, texts: Sequence[str]) -> Tensor:
        assert self.reader is not None
        labels = torch.zeros(len(texts), dtype=torch.int64)
        encoded = self.reader.encode(TextDataset("texts", tuple((text,) for text in texts), labels, classes=1))
        held = Inputs(encoded, Words())
        function = TokenFunction(self.model, held, self.name, self.device)
        return clean_outputs(function, Batching(held, self.batch_size, most_tokens=8192))


def _ask(
    answer: Answerer,
    clean: Sequence[str],
    changed: Iterable[str],
    rows: Sequence[int],
    response: Response,
    progress: progress_bar.Progress,
) -> Floats:
    """The change in each trial; NaN where an output is not finite. A text that came out as it was has no change.

    Texts are made when they are asked about: a word is small, and the text around it is not.
    """
    needed = sorted(set(rows))
    reference = response.reference(answer([clean[row] for row in needed]))
    at = {row: number for number, row in enumerate(needed)}
    changes = np.zeros(len(rows))
    moved = ((place, text) for place, text in enumerate(changed) if text != clean[rows[place]])
    report = progress_bar.reporter(progress, answer.name)
    while some := dict(itertools.islice(moved, _AT_ONCE)):
        places = list(some)
        outputs = answer(list(some.values()))
        known = reference[torch.tensor([at[rows[place]] for place in places])]
        found = response.change(known, outputs).numpy()
        finite = outputs.reshape(len(outputs), -1).isfinite().all(dim=1).numpy()
        changes[places] = np.where(finite, found, np.nan)
        done = places[-1] + 1
        report(State(done / len(rows), answer.passes, f"{done:,} of {len(rows):,} changes"))
    report.close()
    return changes


@dataclass(frozen=True)
class ChangedWord:
    """A place in a text, and what came of changing it.

    Arguments:
        start, stop: its characters in the unchanged text.
        text: these characters.
        draws: how often it was changed.
        change: the mean change; for flips the share of draws that flipped the prediction.
        tokens: numbers of the tokens of the unchanged text that it has a part in, from 0, special tokens not counted;
            empty if the model is a function of texts.
    """

    start: int
    stop: int
    text: str
    draws: int
    change: float
    tokens: tuple[int, ...] = ()


@dataclass(frozen=True, eq=False, kw_only=True)
class TextChanges(Estimate):
    """How often changes of texts change predictions.

    Arguments:
        value, interval: the share of changes (for other responses than flips their mean), over all words of all texts;
            the interval is for the texts given.
        population: the interval for the population that the texts, or clusters of them, came from.
        name, change, response: of the model, and specs.
        changed, trials: x of N.
        texts: the unchanged texts, as the model got them.
        words: for each text its changed words.
        passes, seconds, seed, warnings, provenance: as for a ``Measurement``.
    """

    population: Interval
    name: str
    change: str
    response: str
    changed: float
    trials: int
    texts: tuple[str, ...] = field(repr=False)
    words: tuple[tuple[ChangedWord, ...], ...] = field(repr=False)
    passes: int
    seconds: float
    seed: int
    warnings: list[str]
    provenance: dict[str, str] = field(repr=False)

    kind: ClassVar[str] = "jostle/text-changes"
    version: ClassVar[int] = 1
    tables: ClassVar[tuple[str, ...]] = ("result", "words", "texts")

    @property
    def per_text(self) -> Floats:
        """(texts,) the mean change of each text; NaN for a text that no change fits."""
        return np.asarray([_mean(words) for words in self.words])

    @property
    def sentence(self) -> str:
        """x of N changed."""
        if self.response.startswith("flip"):
            return f"{self.changed:,.0f} of {self.trials:,} changes changed the prediction"
        return f"{self.trials:,} changes, mean {self.response} {self.value:.4g}"

    def by_word(self, least: int = 1) -> dict[str, tuple[float, int]]:
        """For each word, in small letters, the mean change and the number of changes, the most sensitive first."""
        sums: dict[str, list[float]] = {}
        for word in (each for words in self.words for each in words):
            entry = sums.setdefault(word.text.lower(), [0.0, 0.0])
            entry[0] += word.change * word.draws
            entry[1] += word.draws
        kept = {word: (total / count, int(count)) for word, (total, count) in sums.items() if count >= least}
        return dict(sorted(kept.items(), key=lambda item: (-item[1][0], -item[1][1], item[0])))

    def __str__(self) -> str:
        level = f"{self.interval.level:.0%}"
        lines = [
            f"{self.name}: {self.sentence}: {self.value:.4g}   [{self.low:.4g}, {self.high:.4g}]   {level} for the "
            f"texts given{self.interval.mark}",
            f"  [{self.population.low:.4g}, {self.population.high:.4g}] for the population the texts came from"
            f"{self.population.mark}",
            f"  {len(self.texts):,} texts; change={self.change} seed={self.seed}; {self.passes:,} passes, "
            f"{in_seconds(self.seconds)}",
        ]
        top = [
            f"{word} ({share:.2g} of {count})" for word, (share, count) in list(self.by_word().items())[:5] if share > 0
        ]
        if top and self.response.startswith("flip"):
            lines.append(f"  most often: {', '.join(top)}")
        return "\n".join(lines + [f"  warning: {text}" for text in self.warnings])

    def rows(self, of: str = "result") -> list[Row]:
        """The number; or a row for each changed word of each text, or for each text."""
        if of == "result":
            first = self.row(model=self.name, change=self.change, response=self.response)
            return [{**first, "changed": self.changed, "trials": self.trials, "passes": self.passes}]
        if of == "words":
            return word_rows(self.words, self.interval.level, is_flip=self.response.startswith("flip"))
        columns = zip(self.texts, self.per_text.tolist(), self.words, strict=True)
        return [
            {"text": number, "value": value, "trials": sum(word.draws for word in words), "content": content}
            for number, (content, value, words) in enumerate(columns)
        ]

    def _repr_html_(self) -> str:
        """For notebooks: the number, and the texts with their changed words in shades."""
        return in_frame(str(self), table_html(self.rows()), changed_texts_html(self.texts, self.words))

    def to_dict(self) -> dict[str, Any]:
        """Everything, as plain numbers and text for JSON."""
        same = ("name", "change", "response", "changed", "trials", "passes", "seed", "warnings", "provenance", "value")
        ends: dict[str, Any] = {each.target: each.to_dict() for each in (self.interval, self.population)}
        words = [[asdict(word) for word in each] for each in self.words]
        return {
            "kind": self.kind,
            "version": self.version,
            **{key: getattr(self, key) for key in same},
            **ends,
            "seconds": round(self.seconds, 3),
            "texts": list(self.texts),
            "words": words,
        }

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> "TextChanges":
        """What ``to_dict`` wrote."""
        same = ("name", "change", "response", "changed", "trials", "passes", "seed", "warnings", "provenance", "value")
        words = tuple(
            tuple(ChangedWord(**each | {"tokens": tuple(each["tokens"])}) for each in text) for text in record["words"]
        )
        return cls(
            interval=Interval.from_dict("dataset", record["dataset"]),
            population=Interval.from_dict("population", record["population"]),
            texts=tuple(record["texts"]),
            words=words,
            seconds=record["seconds"],
            **{key: record[key] for key in same},
        )

    def save(self, path: str | Path) -> None:
        """Write to a JSON file, whole or not at all; ``jostle.load`` reads it."""
        write_text(path, json.dumps(self.to_dict(), indent=1, allow_nan=False) + "\n")


_SHOWN = 10  # texts in a notebook


def word_rows(words: Sequence[Sequence[ChangedWord]], level: float, *, is_flip: bool) -> list[Row]:
    """A row for each changed word; its interval is for its own draws, and there is none for real-valued changes."""
    rows = []
    for number, each in enumerate(words):
        for word in each:
            ends: list[float | None] = [None, None]
            if is_flip and word.draws:
                ends = [float(end) for end in fixed.clopper_pearson(round(word.change * word.draws), word.draws, level)]
            rows.append(
                {
                    "text": number,
                    "start": word.start,
                    "stop": word.stop,
                    "word": word.text,
                    "value": word.change,
                    "low": ends[0],
                    "high": ends[1],
                    "trials": word.draws,
                }
            )
    return rows


def changed_texts_html(texts: Sequence[str], words: Sequence[Sequence[ChangedWord]]) -> str:
    """Texts with their changed words in shades, those that change most first."""
    top = max((word.change for each in words for word in each), default=0.0)
    order = sorted(range(len(texts)), key=lambda number: -np.nan_to_num(_mean(words[number]), nan=-1.0))
    shown = []
    for number in order[:_SHOWN]:
        pieces, end = list[tuple[str, float, str]](), 0
        for word in sorted(words[number], key=lambda word: word.start):
            if word.start < end:
                continue  # changes of overlapping places: the first one is shown
            hint = f"{word.change:.3g} in {word.draws:,} draw{'' if word.draws == 1 else 's'}"
            pieces += [(texts[number][end : word.start], math.nan, "")]
            pieces += [(texts[number][word.start : word.stop], word.change / (top or 1.0), hint)]
            end = word.stop
        shown.append(shaded_text([*pieces, (texts[number][end:], math.nan, "")], f"text {number}"))
    return "".join(shown)


def _mean(words: Sequence[ChangedWord]) -> float:
    count = sum(word.draws for word in words)
    return sum(word.change * word.draws for word in words) / count if count else math.nan


def _result(
    name: str,
    change: TextChange,
    response: Response,
    prepared: Sequence[tuple[str, list[Span]]],
    trials: Sequence[Trial],
    changes: Floats,
    answerer: Answerer,
    draws: int,
    clusters: Any,
    level: float,
    seed: int,
) -> TextChanges:
    finite = np.isfinite(changes)
    if not finite.any():
        raise FailureError("nothing could be measured: no change has finite outputs")
    words = _words(prepared, trials, changes, answerer)
    means = np.asarray([_mean(each) for each in words])
    sizes = np.asarray([sum(word.draws for word in each) for each in words], dtype=np.float64)
    warned = [] if finite.all() else [f"{int((~finite).sum()):,} changes of {name} have no finite output; left out"]
    return TextChanges(
        value=float(changes[finite].mean()),
        interval=_dataset(changes[finite], response, level, is_exact=draws == 1 and change.is_deterministic),
        population=_population(means, sizes, clusters, response, level),
        name=name,
        change=change.describe(),
        response=response.describe(),
        changed=float(changes[finite].sum()),
        trials=int(finite.sum()),
        texts=tuple(text for text, _ in prepared),
        words=words,
        passes=answerer.passes,
        seconds=0.0,
        seed=seed,
        warnings=[*answerer.warnings, *warned],
        provenance=provenance(),
    )


def _timed(result: TextChanges, seconds: float) -> TextChanges:
    return TextChanges(**{**vars(result), "seconds": seconds})


def _words(
    prepared: Sequence[tuple[str, list[Span]]], trials: Sequence[Trial], changes: Floats, answerer: Answerer
) -> tuple[tuple[ChangedWord, ...], ...]:
    found: dict[tuple[int, int], list[float]] = {}
    for (row, place, _), value in zip(trials, changes.tolist(), strict=True):
        if math.isfinite(value):
            found.setdefault((row, place), []).append(value)
    spans = _token_spans([text for text, _ in prepared], answerer)
    made: list[list[ChangedWord]] = [[] for _ in prepared]
    for (row, place), values in sorted(found.items()):
        text, places = prepared[row]
        start, stop = places[place]
        tokens = tuple(number for number, (a, b) in enumerate(spans[row]) if a < stop and b > start)
        made[row].append(ChangedWord(start, stop, text[start:stop], len(values), float(np.mean(values)), tokens))
    return tuple(map(tuple, made))


def _token_spans(texts: Sequence[str], answerer: Answerer) -> list[list[Span]]:
    """For each text the characters of its tokens; empty if the model is a function of texts."""
    if answerer.reader is None:
        return [[] for _ in texts]
    from jostle.integrations.text_pieces import spans_of

    return spans_of(texts, answerer.reader.tokenizer)


def _dataset(changes: Floats, response: Response, level: float, *, is_exact: bool) -> Interval:
    """For the texts given: all their words were changed, so only the draws are random."""
    value = float(changes.mean())
    if is_exact:
        return Interval(value, value, level, "dataset", "exact: every word that fits, no randomness")
    if response.is_binary:
        low, high = (float(end) for end in fixed.clopper_pearson(changes.sum(), len(changes), level))
        return Interval(low, high, level, "dataset", "draws as strata, Clopper-Pearson")
    variance = float(changes.var(ddof=1)) if len(changes) > 1 else 0.0
    low, high = (float(end) for end in fixed.student(value, variance, len(changes), level))
    caveat = fixed.asymptotic(len(changes), fixed.largest_share(changes - value))
    return Interval(low, high, level, "dataset", "spread over changes as an upper bound, Student's t", caveat=caveat)


def _population(means: Floats, sizes: Floats, clusters: Any, response: Response, level: float) -> Interval:
    """For the population: texts, or clusters of them, are independent, and their words are a ratio of sums."""
    numbers = np.arange(len(means)) if clusters is None else clusters
    seen = np.isfinite(means)
    weights = np.bincount(numbers[seen], weights=sizes[seen]).astype(np.float64)
    sums = np.bincount(numbers[seen], weights=(means * sizes)[seen])
    kept = weights > 0
    what = "texts" if clusters is None else "clusters of texts"
    ratios, weights = sums[kept] / weights[kept], weights[kept]
    if response.is_binary:
        (low, high), bound = fixed.bounded_ratio(ratios, weights, level, (0.0, 1.0)), "Gaffke's bound"
    else:
        (low, high), bound = fixed.student_ratio(ratios, weights, level), "Student's t"
    residuals = weights * (ratios - fixed.weighted_mean(ratios, weights))
    caveat = fixed.ratio_caveat(weights, residuals, is_bounded=response.is_binary)
    return Interval(low, high, level, "population", f"{len(ratios):,} {what}, ratio, {bound}", caveat=caveat)
