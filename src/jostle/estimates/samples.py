"""What became of single inputs and single tokens: the trials of a measurement, kept by input and token.

A measurement counts means only. ``measure(..., samples=True)`` also keeps, for each model, how often each token of each
input was jostled and what changed; tables, files and the examples of a notebook are made from that.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from jostle.base.errors import UsageError
from jostle.base.files import write_text
from jostle.base.notebook import map_svg, shaded_text
from jostle.base.table import Row, Tabular, csv_text
from jostle.estimates.request import Request
from jostle.estimates.result import Comparison
from jostle.intervals import fixed
from jostle.sampling import Changes, Trials
from jostle.tokens import Inputs, Patches

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

FORMATS = (".csv", ".jsonl")
_AT_ONCE = 2**20  # trials that are kept one by one before they are summed up
_EXAMPLES = 3  # inputs that a notebook shows


class TrialRecorder:
    """Takes the trials of a run and sums them up by input and token.

    Arguments:
        inputs: of the run.
        request: what is asked.
        models: how many see the same trials.
    """

    def __init__(self, inputs: Inputs, request: Request, models: int) -> None:
        self.inputs, self.request = inputs, request
        self._keys = np.empty(0, dtype=np.int64)  # input x tokens + token
        self._sums = np.empty((models, 3, 0))  # finite trials, sum and sum of squares of their changes
        self._waiting: list[tuple[Integers, Changes]] = []
        self._count = 0

    def add(self, trials: Trials, changes: Changes) -> None:
        """Take trials and their changes, (models, trials); NaN marks a trial that failed."""
        numbers = self.inputs.addresses(trials.inputs, trials.tokens)
        self._waiting.append((trials.inputs * self.inputs.num_tokens + numbers, changes))
        self._count += len(trials)
        if self._count >= _AT_ONCE:
            self._sum_up()

    def _sum_up(self) -> None:
        if not self._waiting:
            return
        keys = np.concatenate([self._keys, *(each for each, _ in self._waiting)])
        changes = np.concatenate([change for _, change in self._waiting], axis=1)
        finite = np.isfinite(changes)
        filled = np.where(finite, changes, 0.0)
        new = np.stack([finite.astype(np.float64), filled, filled**2], axis=1)  # (models, 3, trials)
        known, back = np.unique(keys, return_inverse=True)
        rows = np.concatenate([self._sums, new], axis=2)
        sums = [[np.bincount(back, weights=part, minlength=len(known)) for part in model] for model in rows]
        self._keys, self._sums = known, np.asarray(sums)
        self._waiting, self._count = [], 0

    def samples(self) -> list["Samples"]:
        """What is known of each model."""
        self._sum_up()
        inputs, tokens = np.divmod(self._keys, self.inputs.num_tokens)
        found = []
        for trials, total, squares in self._sums:
            kept = trials > 0
            found.append(
                Samples(
                    inputs=inputs[kept],
                    tokens=tokens[kept],
                    trials=trials[kept].astype(np.int64),
                    sums=total[kept],
                    squares=squares[kept],
                    positions=self.inputs.positions,
                    level=self.request.level,
                    is_flip=self.request.response.is_binary,
                    is_exact=self.request.perturbation.is_deterministic,
                    source=self.inputs,
                )
            )
        return found


@dataclass(frozen=True, eq=False, kw_only=True)
class Samples(Tabular):
    """The trials of one model by input and token. Each interval is for its row alone, with its trials as given.

    Arguments:
        inputs, tokens: (rows,) numbers from 0; of a text, tokens count from its own beginning.
        trials, sums, squares: (rows,) how often this token was jostled, and the sums of the changes and their squares.
        positions: the shape of the position grid, e.g. (7, 7) for patches.
        level: of the intervals: Clopper and Pearson's for flips, Student's t otherwise (none for one trial).
        is_flip, is_exact: whether changes are 0 or 1, and whether one trial says it all.
        source: the inputs, for examples and the texts of tokens.
    """

    inputs: Integers
    tokens: Integers
    trials: Integers
    sums: Floats
    squares: Floats
    positions: tuple[int, ...]
    level: float
    is_flip: bool
    is_exact: bool
    source: Inputs = field(repr=False)

    tables: ClassVar[tuple[str, ...]] = ("tokens", "inputs")

    def __len__(self) -> int:
        return len(self.inputs)

    def __str__(self) -> str:
        return f"{int(self.trials.sum()):,} trials of {len(self):,} tokens in {len(np.unique(self.inputs)):,} inputs"

    def rows(self, of: str = "tokens") -> list[Row]:
        """A row for each token that was jostled, or for each input."""
        return self.token_rows() if of == "tokens" else self.input_rows()

    def token_rows(self, **first: Any) -> list[Row]:
        """A row for each token that was jostled, input by input."""
        value, low, high = self._estimates(self.trials, self.sums, self.squares)
        texts = self._texts()
        columns = (self.inputs, self.tokens, value, low, high, self.trials)
        names = ("input", "token", "value", "low", "high", "trials")
        rows = [dict(zip(names, each, strict=True)) for each in zip(*(c.tolist() for c in columns), strict=True)]
        if texts is None:
            return [{**first, **row} for row in rows]
        return [{**first, **row, "text": texts[row["input"]].get(row["token"])} for row in rows]

    def input_rows(self, **first: Any) -> list[Row]:
        """A row for each input: the mean over its trials."""
        index, back = np.unique(self.inputs, return_inverse=True)
        trials, sums, squares = (
            np.bincount(back, weights=part, minlength=len(index)).astype(np.float64)
            for part in (self.trials, self.sums, self.squares)
        )
        value, low, high = self._estimates(trials.astype(np.int64), sums, squares, self._is_whole(index, back))
        columns = (index, value, low, high, trials.astype(np.int64))
        names = ("input", "value", "low", "high", "trials")
        return [
            {**first, **dict(zip(names, each, strict=True))}
            for each in zip(*(c.tolist() for c in columns), strict=True)
        ]

    def _is_whole(self, index: Integers, back: Integers) -> NDArray[np.bool_]:
        """(inputs,) whether all tokens that may be jostled were."""
        counts = self.source.token_counts
        tokens = np.full(len(index), self.source.num_tokens) if counts is None else counts[index]
        return np.asarray(np.bincount(back, minlength=len(index)) == tokens)

    def _estimates(
        self, trials: Integers, sums: Floats, squares: Floats, is_whole: NDArray[np.bool_] | bool = True
    ) -> tuple[Floats, Floats, Floats]:
        """Means with their intervals; where nothing is random and nothing was left out, the mean is exact."""
        value = sums / np.maximum(trials, 1)
        if self.is_flip:
            low, high = fixed.clopper_pearson(sums, trials, self.level)
        else:
            spread = np.maximum(squares - trials * value**2, 0.0) / np.maximum(trials - 1, 1)
            low, high = (np.where(trials < 2, np.nan, end) for end in fixed.student(value, spread, trials, self.level))
        is_exact = np.broadcast_to(self.is_exact & np.asarray(is_whole), value.shape)
        return value, np.where(is_exact, value, low), np.where(is_exact, value, high)

    def _texts(self) -> dict[int, dict[int, str]] | None:
        """The text of each token of the inputs that were visited; None if it is not known."""
        pieces = self.source.pieces
        if pieces is None:
            return None
        return {
            int(index): {place: piece.text for piece in pieces[index] for place in piece.tokens}
            for index in np.unique(self.inputs)
        }

    def examples_html(self, name: str = "", most: int = _EXAMPLES) -> str:
        """Inputs with many trials as shaded texts, or as pictures below a map; empty for other inputs.

        Arguments:
            name: of the model.
            most: how many are shown.
        """
        if self.source.pieces is None and not _are_pictures(self.source):
            return ""
        return "".join(self._example(index, name) for index in self._most_tried(most))

    def _most_tried(self, most: int) -> Iterator[int]:
        """Inputs with the most trials, of equal ones those that change most."""
        index, back = np.unique(self.inputs, return_inverse=True)
        trials, sums = (np.bincount(back, weights=part) for part in (self.trials, self.sums))
        yield from (int(index[place]) for place in np.lexsort((index, -sums, -trials))[:most])

    def _example(self, index: int, name: str) -> str:
        here = self.inputs == index
        value, *_ = self._estimates(self.trials[here], self.sums[here], self.squares[here])
        tried = dict(
            zip(self.tokens[here].tolist(), zip(value.tolist(), self.trials[here].tolist(), strict=True), strict=True)
        )
        top = 1.0 if self.is_flip else float(value.max(initial=0.0)) or 1.0
        label = f"input {index}{f', {name}' if name else ''}: {int(self.trials[here].sum()):,} trials"
        if self.source.pieces is not None:
            pieces = [_shaded(piece, tried, top) for piece in self.source.pieces[index]]
            return shaded_text(pieces, label)
        shares = np.full(int(np.prod(self.positions)), np.nan)
        hints = [f"patch {place}: not jostled" for place in range(len(shares))]
        for place, (share, count) in tried.items():
            shares[place], hints[place] = share, f"patch {place}: {share:.3g} of {count:,} trials"
        picture = _picture(self.source.batch(np.asarray([index]))[self.source.key][0].double().cpu().numpy())
        return map_svg(shares.reshape(self.positions), hints, picture, top=top, label=label)


def _shaded(piece: Any, tried: dict[int, tuple[float, int]], top: float) -> tuple[str, float, str]:
    found = [tried[place] for place in piece.tokens if place in tried]
    if not found:
        return piece.text, float("nan"), ""
    share, count = max(found)
    return piece.text, share / top, f"{share:.3g} in {count:,} trial{'' if count == 1 else 's'}"


def _are_pictures(inputs: Inputs) -> bool:
    return isinstance(inputs.view, Patches) and len(inputs.shape) in (2, 3)


def _picture(values: Floats) -> Floats:
    """(height, width) or (height, width, 3) between 0 and 1, from (channels, height, width) on any scale."""
    shown = values if values.ndim == 2 else values[:3].transpose(1, 2, 0) if len(values) >= 3 else values[0]
    low, high = float(shown.min()), float(shown.max())
    return (shown - low) / (high - low or 1.0)


def with_samples(found: Comparison, samples: Sequence[Samples]) -> Comparison:
    """The same measurements, each with its samples."""
    kept = zip(found.measurements.items(), samples, strict=True)
    return replace(found, measurements={name: replace(m, samples=each) for (name, m), each in kept})


def check_file(path: Path | None) -> None:
    """Raise unless ``path`` ends in a format that ``write_samples`` knows."""
    if path is not None and path.suffix.lower() not in FORMATS:
        raise UsageError(f"--log-samples {path} must end in {' or '.join(FORMATS)}; its ending decides the format")


def write_samples(path: Path, samples: Sequence[tuple[str, Samples]]) -> None:
    """Write what became of every input and token: a line per input in .jsonl, a row per token in .csv.

    Arguments:
        path: a file that ends in one of ``FORMATS``.
        samples: for each model its name and its trials.
    """
    if path.suffix.lower() == ".csv":
        rows = [row for name, each in samples for row in _flat(name, each)]
        write_text(path, csv_text(rows))
        return
    lines = [json.dumps(line, allow_nan=False) for name, each in samples for line in _nested(name, each)]
    write_text(path, "".join(f"{line}\n" for line in lines))


def _flat(name: str, samples: Samples) -> Iterator[Row]:
    """A row for each token, with the mean and the trials of its input beside it."""
    inputs = {row["input"]: row for row in samples.input_rows()}
    for row in samples.token_rows(model=name):
        whole = inputs[row["input"]]
        yield {**row, "input_value": whole["value"], "input_trials": whole["trials"]}


def _nested(name: str, samples: Samples) -> Iterator[Row]:
    """A line for each input, with its tokens."""
    tokens: dict[int, list[Row]] = {}
    for row in samples.token_rows():
        tokens.setdefault(row.pop("input"), []).append(_plain(row))
    for row in samples.input_rows(model=name):
        yield {**_plain(row), "tokens": tokens[row["input"]]}


def _plain(row: Row) -> Row:
    """Numbers for JSON, which has no NaN."""
    return {key: None if isinstance(value, float) and np.isnan(value) else value for key, value in row.items()}
