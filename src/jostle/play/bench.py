"""The bench: models and single inputs, and estimates about one input that become more precise while one watches.

A ``Bench`` knows how an input of its kind is read, shown and cut into tokens; ``pictures`` and ``sentences`` have the
two kinds. ``Bench.watch`` draws noise for one token or for all tokens of one input and yields an ``Update`` after each
block of draws. All models get the same noise.
"""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from jostle.base.errors import UsageError
from jostle.estimates.request import Request
from jostle.integrations import class_names
from jostle.intervals import anytime
from jostle.perturbations import GaussianNoise
from jostle.report.texts import NEW_PREDICTION, NewPrediction
from jostle.responses import logits_of
from jostle.sampling import TrialEvaluation
from jostle.sampling.plans import Trials
from jostle.tokens import TokenView
from jostle.worst.worst import worst_case

Models = Mapping[str, Callable[..., Any]]
Plain = dict[str, Any]  # what JSON can hold

MOST_TEXT, MOST_BYTES, MOST_PIXELS = 2_000, 8_000_000, 20_000_000
_MOST_KEPT = 50  # inputs that people gave; older ones are forgotten
_FIRST_BLOCK, _LARGEST_BLOCK, _MOST_DRAWS = 16, 256, 6_000
_LEVEL = 0.95


@dataclass(frozen=True, eq=False)
class Example:
    """One input of the bench.

    Arguments:
        name: how the page calls it.
        given: as the models take it, a batch of one.
        shown: what the page shows of it: a picture, or a list of pieces of text.
        label: the right class in words; empty if it is not known.
    """

    name: str
    given: Any
    shown: Plain
    label: str = ""


@dataclass(frozen=True)
class Update:
    """What is known after some draws.

    Arguments:
        draws: how many there were.
        rates: for each model its flip rate and the ends of the interval, valid whenever one stops to watch.
        becomes: for each model the class that most flips lead to, in words; empty without a flip.
        maps: for each model the share of flips of each token, None where there was no draw; empty for a single token.
        drawn: one of the jostled inputs, with what each model predicts for it; None for none.
    """

    draws: int
    rates: dict[str, tuple[float, float, float]]
    becomes: dict[str, str] = field(default_factory=dict)
    maps: dict[str, list[float | None]] = field(default_factory=dict)
    drawn: Plain | None = None

    def to_dict(self) -> Plain:
        """As the page takes it."""
        rates = {
            name: {"value": v, "low": low, "high": high, "to": self.becomes.get(name, "")}
            for name, (v, low, high) in self.rates.items()
        }
        return {"draws": self.draws, "rates": rates, "maps": self.maps, "drawn": self.drawn}


class Bench(ABC):
    """Models of one kind and inputs that they take.

    Arguments:
        models: by name.
        examples: inputs that are there from the beginning.
    """

    kind: str
    unit: str  # of the strength of the noise, in words
    strength = 1.0  # with which the page begins

    def __init__(self, models: Models, examples: Sequence[Example]) -> None:
        self.models = dict(models)
        self._classes = {name: class_names(model) for name, model in models.items()}
        self._examples = {str(number): example for number, example in enumerate(examples)}
        self._given: dict[str, Example] = {}
        self._count = 0

    @property
    @abstractmethod
    def tokens(self) -> TokenView:
        """What a token is."""

    @abstractmethod
    def read(self, content: bytes) -> Example:
        """An input that somebody gave; raises a ``UsageError`` of one line if it cannot be used."""

    @abstractmethod
    def noise(self, example: Example, strength: float) -> GaussianNoise:
        """The noise of a strength that the page offers."""

    def class_name(self, model: str, number: int) -> str:
        """A class of a model in words."""
        names = self._classes[model]
        return names[number] if 0 <= number < len(names) else str(number)

    @abstractmethod
    def show(self, batch: Any) -> Plain | None:
        """What the page shows of a jostled input; None if there is nothing to see."""

    def add(self, content: bytes) -> str:
        """Keep an input that somebody gave; returns its number."""
        example = self.read(content)
        self._count += 1
        number = f"given-{self._count}"
        self._given[number] = example
        while len(self._given) > _MOST_KEPT:
            self._given.pop(next(iter(self._given)))
        return number

    def example(self, number: str) -> Example:
        """The input of this number."""
        found = self._examples.get(number) or self._given.get(number)
        if found is None:
            raise UsageError(f"there is no input {number!r} here any more; choose another")
        return found

    def names(self) -> dict[str, str]:
        """The names of all inputs that are there from the beginning, by number."""
        return {number: example.name for number, example in self._examples.items()}

    def describe(self, number: str) -> Plain:
        """An input and what each model predicts for it as it is."""
        example = self.example(number)
        with self._evaluation(example, GaussianNoise(0.0)) as evaluation:
            outputs = [
                function(evaluation.inputs.batch(np.zeros(1, dtype=np.int64))) for function in evaluation.functions
            ]
            grid = list(evaluation.inputs.positions)
            can_move = _can_move(evaluation)
        said = {name: self._said(name, output) for name, output in zip(self.models, outputs, strict=True)}
        return {
            "name": example.name, "label": example.label, "shown": example.shown, "grid": grid,
            "tokens": can_move.tolist(), "models": said,
        }  # fmt: skip

    def watch(self, number: str, token: int | None, strength: float, seed: int = 0) -> Generator[Update]:
        """Draw noise, and tell after each block of draws what is known.

        Arguments:
            number: of the input.
            token: which token is jostled; None for a random one in each draw.
            strength: of the noise, in the unit of the bench.
            seed: of the noise.
        """
        example = self.example(number)
        noise = self.noise(example, strength)
        with self._evaluation(example, noise, seed) as evaluation:
            places = _can_move(evaluation)
            if token is not None and token not in places:
                raise UsageError(f"token {token} cannot be jostled; choose one of {len(places)}")
            tally = _Tally(len(self.models), evaluation.inputs.num_tokens)
            generator = np.random.default_rng(seed)
            done, block = 0, _FIRST_BLOCK
            while done < _MOST_DRAWS:
                drawn = np.arange(done, done + block)
                chosen = generator.choice(places, size=block) if token is None else np.full(block, token)
                trials = Trials(np.zeros(block, dtype=np.int64), chosen.astype(np.int64), drawn)
                tally.add(chosen, np.nan_to_num(evaluation.changes(trials)))
                done += block
                yield self._update(evaluation, trials[np.asarray([block - 1])], tally, token)
                block = min(2 * block, _LARGEST_BLOCK)

    def search(self, number: str, token: int, strength: float) -> Plain:
        """The change of one token, no longer than noise of this strength usually is, that lowers each margin most."""
        example = self.example(number)
        found: Plain = {}
        for name, model in self.models.items():
            if not isinstance(model, nn.Module):
                raise UsageError(f"{name} is not a network of torch, so its worst change cannot be sought by its slope")
        std = self.noise(example, strength).std
        for name, model in self.models.items():
            with self._evaluation(example, GaussianNoise(0.0)) as evaluation:
                dim = max(function.dim for function in evaluation.functions)
            worst = worst_case(
                model, example.given, tokens=self.tokens, radius=float(std * np.sqrt(dim)), relative=False,
                response="flip", positions=[token], starts=4, steps=25, draws=16, name=name,
            )  # fmt: skip
            assert worst.predictions is not None
            assert worst.clean_predictions is not None
            after, before = int(worst.predictions[0, 0, token]), int(worst.clean_predictions[0])
            found[name] = {
                "flips": after != before,
                "to": self.class_name(name, after),
                "length": float(np.linalg.norm(worst.changes[0, 0, token])),
                "drawn": self._worst_shown(example, token, worst.changes[0, 0, token]),
            }
        return found

    def _worst_shown(self, example: Example, token: int, change: NDArray[np.float64]) -> Plain | None:
        """What the page shows of the input with the worst change in it."""
        del example, token, change
        return None

    @contextmanager
    def _evaluation(self, example: Example, noise: GaussianNoise, seed: int = 0) -> Iterator[TrialEvaluation]:
        request = Request.build(tokens=self.tokens, perturbation=noise, response=NewPrediction(), seed=seed)
        evaluation = request.prepare(self.models, example.given)
        with ExitStack() as modes:  # no inference_mode: the caller goes on between two updates
            for function in evaluation.functions:
                modes.enter_context(function.evaluating())
            evaluation.check()
            yield evaluation

    def _update(self, evaluation: TrialEvaluation, last: Trials, tally: "_Tally", token: int | None) -> Update:
        count = int(tally.tried.sum())
        rates, maps, becomes = {}, {}, {}
        for name, row, seen in zip(self.models, tally.flips, tally.becomes, strict=True):
            total = int(row.sum())
            low, high = anytime.bernoulli(total, count, _LEVEL, lambda p: np.full_like(p, 1_000.0))
            rates[name] = (total / count, float(low), float(high))
            if seen:
                becomes[name] = self.class_name(name, seen.most_common(1)[0][0])
            if token is None:
                maps[name] = [float(a / b) if b else None for a, b in zip(row, tally.tried, strict=True)]
        return Update(count, rates, becomes, maps, self._drawn(evaluation, last))

    def _drawn(self, evaluation: TrialEvaluation, last: Trials) -> Plain | None:
        """One jostled input, and what each model predicts for it."""
        moved, tokens = evaluation.moved_tokens(last) if not evaluation.functions[0].site else (np.empty(0), None)
        if not len(moved) or tokens is None:
            return None
        batch = evaluation.jostled(last, tokens)
        said = {
            name: self._said(name, function({key: value.clone() for key, value in batch.items()}))
            for name, function in zip(self.models, evaluation.functions, strict=True)
        }
        return {"shown": self.show(batch[evaluation.inputs.key]), "models": said, "token": int(last.tokens[0])}

    def _said(self, name: str, outputs: Tensor) -> Plain:
        """A prediction in words, its probability, and by how much it is ahead."""
        row = logits_of(outputs.detach().double())[0].cpu()
        shares = torch.stack([-row[0], row[0]]).sigmoid() if len(row) == 1 else row.softmax(dim=0)
        best = shares.topk(2)
        number = int(best.indices[0])
        return {
            "class": self.class_name(name, number),
            "share": float(best.values[0]),
            "margin": float(best.values[0] - best.values[1]),
            "second": self.class_name(name, int(best.indices[1])),
        }


class _Tally:
    """Draws and flips by token so far.

    Arguments:
        models, tokens: how many there are.
    """

    def __init__(self, models: int, tokens: int) -> None:
        self.tried = np.zeros(tokens)
        self.flips = np.zeros((models, tokens))
        self.becomes = [Counter[int]() for _ in range(models)]

    def add(self, tokens: NDArray[np.int64], changes: NDArray[np.float64]) -> None:
        """Count draws.

        Arguments:
            tokens: (draws,) that were jostled.
            changes: (models, draws) of ``NewPrediction``.
        """
        np.add.at(self.tried, tokens, 1)
        for row, seen, change in zip(self.flips, self.becomes, changes, strict=True):
            np.add.at(row, tokens, change > 0)
            seen.update(max(int(one) - NEW_PREDICTION, 0) for one in change[change > 0])


def _can_move(evaluation: TrialEvaluation) -> NDArray[np.int64]:
    """The tokens of the only input that may be jostled."""
    mask = evaluation.inputs.mask
    return np.arange(evaluation.inputs.num_tokens) if mask is None else np.flatnonzero(mask[0])
