"""How often intervals cover, simulated: write docs/results/coverage.json and the table of docs/coverage.md from it.

Changes are made up, and counted by the code that counts those of networks. Takes some minutes; settings that are
recorded are not simulated again unless ``--again`` is given.
"""

import argparse
import functools
import json
import math
import re
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from stopping import Case, cases

from jostle.base.estimate import Interval
from jostle.base.files import write_text
from jostle.estimates.draws import UntilTally
from jostle.estimates.request import Request
from jostle.estimates.result import MeanChange
from jostle.estimates.tallies import BINARY, REAL, TERNARY, GridTally, Support
from jostle.sampling import Grid, Trials, Until
from jostle.tokens import Coordinates, Inputs

ROOT = Path(__file__).resolve().parent.parent
RECORD, PAGE = ROOT / "docs" / "results" / "coverage.json", ROOT / "docs" / "coverage.md"
MARKED = re.compile(r"(<!-- coverage: written by tools/coverage.py -->\n).*?(<!-- end of coverage -->)", re.DOTALL)
LEVEL, TOKENS = 0.95, 8

Floats = NDArray[np.float64]
Generator = np.random.Generator


@dataclass(frozen=True)
class Count:
    """How often an interval covered.

    Arguments:
        interval: which one: ``dataset``, ``population`` or ``a position``.
        runs, covered: simulated measurements, and how many of their intervals held the truth.
        promised, kept: how many of the results promise their coverage, and how many of these held the truth.
    """

    interval: str
    runs: int
    covered: int
    promised: int
    kept: int


@dataclass(frozen=True)
class Outcome:
    """Of one simulated measurement: whether an interval held the truth, and whether its coverage was promised."""

    interval: str
    covered: bool
    promised: bool


@dataclass(frozen=True)
class World:
    """What inputs are like.

    Arguments:
        rates: numbers of a random input, (inputs,): its chance to flip, or its mean change.
        mean: of a random input.
        change: real changes from such numbers; None for flips.
        factor: the mean change of an input, over its number.
    """

    rates: Callable[[Generator, int], Floats]
    mean: float
    change: Callable[[Generator, Floats], Floats] | None = None
    factor: float = 1.0

    @property
    def support(self) -> Support:
        """The values of a change."""
        return BINARY if self.change is None else REAL

    def mean_of(self, rates: Floats) -> float:
        """The mean change of inputs with these numbers."""
        return float(rates.mean()) * self.factor

    def draw(self, rng: Generator, rates: Floats) -> Floats:
        """One change for each number."""
        return (rng.random(rates.shape) < rates).astype(float) if self.change is None else self.change(rng, rates)


def _alike(value: float) -> Callable[[Generator, int], Floats]:
    """The same number for all inputs."""
    return lambda _, count: np.full(count, value)


def _rare(rng: Generator, means: Floats) -> Floats:
    """Changes of 0.01, and of 10 in one of a hundred."""
    return np.where(rng.random(means.shape) < 0.01, 10.0, 0.01) * means


FLIPS = {
    "all inputs alike, rate 0.02": World(_alike(0.02), 0.02),
    "rates Beta(0.1, 4.9)": World(lambda rng, n: rng.beta(0.1, 4.9, n), 0.02),
    "rates Beta(0.5, 0.5)": World(lambda rng, n: rng.beta(0.5, 0.5, n), 0.5),
    "2 % of the inputs always flip": World(lambda rng, n: (rng.random(n) < 0.02).astype(float), 0.02),
    "rate 0.0005": World(_alike(0.0005), 0.0005),
}
REALS = {
    "normal changes": World(_alike(1.0), 1.0, lambda rng, m: rng.normal(m, 1.0)),
    "exponential changes": World(_alike(1.0), 1.0, lambda rng, m: rng.exponential(m)),
    "exponential, inputs differ (gamma)": World(
        lambda rng, n: rng.gamma(0.5, 2.0, n), 1.0, lambda rng, m: rng.exponential(m)
    ),
    "lognormal changes": World(
        _alike(1.0), math.exp(0.5), lambda rng, m: m * rng.lognormal(0.0, 1.0, m.shape), math.exp(0.5)
    ),
    "rare large changes": World(_alike(1.0), 0.1099, _rare, 0.1099),
}


def request(average: str = "macro") -> Request:
    """What is asked."""
    return Request.build(tokens="coordinates", perturbation="gaussian-noise:1", level=LEVEL, average=average)


def grid_of(inputs: int, draws: int, support: Support, average: str = "macro") -> GridTally:
    """An empty tally of a grid."""
    held = Inputs(np.zeros((inputs, TOKENS)), Coordinates())
    return GridTally(request(average), Grid(draws), held, support, LEVEL)


def trials_of(owners: NDArray[np.int64], lengths: NDArray[np.int64], draws: int) -> Trials:
    """All tokens of these inputs, whose lengths these are, so many draws each."""
    owner = np.repeat(owners, lengths * draws)
    token = np.concatenate([np.repeat(np.arange(length), draws) for length in lengths])
    return Trials(owner, token, np.tile(np.arange(draws), int(lengths.sum())))


def outcomes(found: MeanChange, dataset: float, population: float, position: float | None = None) -> list[Outcome]:
    """What one result says of its truths."""

    def of(name: str, interval: Interval, truth: float) -> Outcome:
        return Outcome(name, truth in interval, not interval.caveat)

    every = [of("dataset", found.dataset, dataset), of("population", found.population, population)]
    if position is not None:
        profile = found.profile
        is_in = bool(profile.low[0] <= position <= profile.high[0])
        every.append(Outcome("a position", is_in, "asymptotic" not in profile.method))
    return every


def whole_grid(world: World, inputs: int, draws: int) -> Callable[[Generator], list[Outcome]]:
    """A grid to its end."""
    trials = trials_of(np.arange(inputs), np.full(inputs, TOKENS), draws)

    def run(rng: Generator) -> list[Outcome]:
        rates = world.rates(rng, inputs)
        tally = grid_of(inputs, draws, world.support)
        tally.add(trials, world.draw(rng, rates[trials.inputs]))
        dataset = world.mean_of(rates)
        return outcomes(tally.estimate(), dataset, world.mean, dataset)

    return run


def watched_grid(world: World, inputs: int) -> Callable[[Generator], list[Outcome]]:
    """A grid that is ended at the first look, after every fifth input, at which an interval misses the truth."""

    def run(rng: Generator) -> list[Outcome]:
        rates = world.rates(rng, inputs)
        tally = grid_of(inputs, 1, world.support)
        held = {"dataset": True, "population": True}
        promised = True
        for start in range(0, inputs - 5, 5):
            owners = np.arange(start, start + 5)
            trials = trials_of(owners, np.full(5, TOKENS), 1)
            tally.add(trials, world.draw(rng, rates[trials.inputs]))
            for each in outcomes(tally.estimate(), float(rates.mean()), world.mean):
                held[each.interval] &= each.covered
                promised &= each.promised
        return [Outcome(name, is_held, promised) for name, is_held in held.items()]

    return run


def unequal_lengths(inputs: int, is_heavy: bool) -> Callable[[Generator], list[Outcome]]:
    """Micro-averages of texts whose lengths differ, the longer the more sensitive."""

    def population(rng: Generator, count: int) -> tuple[NDArray[np.int64], Floats]:
        spread = 1.5 if is_heavy else 0.4
        lengths = np.clip(np.round(rng.lognormal(1.0, spread, count)), 1, 10**4 if is_heavy else 12).astype(np.int64)
        return lengths, np.minimum(lengths / 100, 1.0)

    lengths, rates = population(np.random.default_rng(1), 2_000_000)
    truth = float((lengths * rates).sum() / lengths.sum())

    def run(rng: Generator) -> list[Outcome]:
        lengths, rates = population(rng, inputs)
        held = Inputs(np.zeros((inputs, int(lengths.max()))), Coordinates())
        tally = GridTally(request("micro"), Grid(1), held, BINARY, LEVEL)
        trials = trials_of(np.arange(inputs), lengths, 1)
        tally.add(trials, (rng.random(len(trials)) < rates[trials.inputs]).astype(float))
        dataset = float((lengths * rates).sum() / lengths.sum())
        return outcomes(tally.estimate(), dataset, truth)

    return run


def grid_difference(inputs: int) -> Callable[[Generator], list[Outcome]]:
    """Two models on the same noise, one flips half as often as the other."""
    trials = trials_of(np.arange(inputs), np.full(inputs, TOKENS), 1)

    def run(rng: Generator) -> list[Outcome]:
        rates = rng.beta(0.1, 4.9, inputs)
        uniform = rng.random(len(trials))
        changes = (uniform < rates[trials.inputs]).astype(float) - (uniform < rates[trials.inputs] / 2)
        tally = grid_of(inputs, 1, TERNARY)
        tally.add(trials, changes)
        return outcomes(tally.estimate(), float(rates.mean()) / 2, 0.01)

    return run


def until(world: World, plan: Until, inputs: int, most: int | None = None) -> Callable[[Generator], list[Outcome]]:
    """Random draws until the rule is met, or until there are so many."""

    def run(rng: Generator) -> list[Outcome]:
        rates = world.rates(rng, inputs)
        held = Inputs(np.zeros((inputs, TOKENS)), Coordinates())
        tally = UntilTally(request(), plan, held, world.support, LEVEL)
        for start, stop in plan.looks():
            stop = stop if most is None else min(stop, most)
            owner, token = rng.integers(inputs, size=stop - start), rng.integers(TOKENS, size=stop - start)
            trials = Trials(owner, token, np.arange(start, stop))
            changes = world.draw(rng, rates[owner])
            is_met = bool(tally.met(trials, changes, np.array([len(trials)]))[0])
            tally.add(trials, changes)
            if is_met:
                tally.settle()
                break
            if most is not None and stop >= most:
                break
        dataset = world.mean_of(rates)
        return outcomes(tally.estimate(), dataset, world.mean, dataset)

    return run


def settings() -> Iterator[tuple[str, int, Callable[[Generator], list[Outcome]]]]:
    """What is simulated, how often, and how."""
    for name, world in FLIPS.items():
        for inputs, draws in ((5, 1), (50, 5), (400, 1)):
            yield f"flips, Grid({draws}), {inputs} inputs, {name}", 1000, whole_grid(world, inputs, draws)
        yield f"flips, Grid(1) of 200 inputs, watched and interrupted, {name}", 400, watched_grid(world, 200)
        if world.mean >= 0.01:
            plan = Until(half_width=0.02)
            yield f"flips, Until(half_width=0.02), 5,000 inputs, {name}", 2000, until(world, plan, 5000)
            plan = Until(relative=0.3)
            yield f"flips, Until(relative=0.3), 5,000 inputs, {name}", 2000, until(world, plan, 5000)
        plan = Until(half_width=1e-6)
        yield f"flips, ended after 500 draws, 5,000 inputs, {name}", 2000, until(world, plan, 5000, 500)
    for inputs in (5, 50, 400):
        yield f"difference of flips, Grid(1), {inputs} inputs", 1000, grid_difference(inputs)
        yield f"flips, micro, lengths 1 to 12, {inputs} inputs", 500, unequal_lengths(inputs, False)
        yield f"flips, micro, heavy-tailed lengths, {inputs} inputs", 200, unequal_lengths(inputs, True)
    for name, world in REALS.items():
        for inputs, draws in ((5, 2), (40, 1), (400, 2), (2000, 1)):
            yield f"{name}, Grid({draws}), {inputs} inputs", 1000, whole_grid(world, inputs, draws)
        plan = Until(relative=0.1)
        yield f"{name}, Until(relative=0.1), 20,000 inputs", 400, until(world, plan, 20_000, 40_000)


def simulate(run: Callable[[Generator], list[Outcome]], runs: int, seed: int) -> list[Count]:
    """Count the outcomes of so many simulated measurements."""
    rng = np.random.default_rng(seed)
    every = [outcome for _ in range(runs) for outcome in run(rng)]
    counts = []
    for name in dict.fromkeys(outcome.interval for outcome in every):
        own = [outcome for outcome in every if outcome.interval == name]
        kept = [outcome.covered for outcome in own if outcome.promised]
        counts.append(Count(name, len(own), sum(outcome.covered for outcome in own), len(kept), sum(kept)))
    return counts


def stopped(case: Case) -> list[Count]:
    """The counts of a case of ``stopping``; all of its intervals promise their coverage."""
    return [Count(name, runs, covered, runs, covered) for name, runs, covered in case.count()]


def holds(count: Count) -> bool:
    """Whether results that promise their coverage keep it, up to three standard errors of the simulation."""
    if count.promised < 20:
        return True
    return count.kept / count.promised >= LEVEL - 3 * math.sqrt(LEVEL * (1 - LEVEL) / count.promised)


def table(record: dict[str, list[Count]]) -> str:
    """All settings, a row for each interval."""
    lines = [
        "| changes and plan | interval | runs | covered | promised by | covered where promised | |",
        "|---|---|---:|---:|---:|---:|---|",
    ]
    for setting, counts in record.items():
        for count in counts:
            kept = f"{count.kept / count.promised:.3f}" if count.promised >= 20 else "-"
            cells = [
                setting, count.interval, str(count.runs), f"{count.covered / count.runs:.3f}",
                f"{count.promised / count.runs:.0%}", kept, "" if holds(count) else "**below**",
            ]  # fmt: skip
            lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Simulate what is not recorded, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--again", action="store_true", help="simulate everything anew")
    parser.add_argument("--only", default="", metavar="WORDS", help="of that, settings with these words in their name")
    given = parser.parse_args()
    known = json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.exists() else {}
    counted: list[tuple[str, Callable[[], list[Count]]]]
    counted = [(case.name, functools.partial(stopped, case)) for case in cases()]
    counted += [
        (setting, functools.partial(simulate, run, runs, number))
        for number, (setting, runs, run) in enumerate(settings())
    ]
    now = {setting for setting, _ in counted}  # others are settings of earlier versions
    record = {name: [Count(**count) for count in counts] for name, counts in known.items() if name in now}
    for setting, count in counted:
        if given.only in setting and (given.again or setting not in record):
            record[setting] = count()
            plain = {name: [asdict(each) for each in counts] for name, counts in record.items()}
            write_text(RECORD, json.dumps(plain, indent=1) + "\n")
        text = PAGE.read_text(encoding="utf-8")  # an interrupted run leaves a page of what it has
        write_text(PAGE, MARKED.sub(lambda found: found[1] + table(record) + found[2], text))


if __name__ == "__main__":
    main()
