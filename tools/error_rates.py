"""Simulate how often verdicts are wrong, and write the tables of docs/verdicts.md between their markers.

Made-up networks without a difference, or with one, are judged by the code that judges studies. Takes some minutes.
"""

import re
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy import special

from jostle.base.files import write_text
from jostle.intervals.seeds import PRIOR, guarded_reach, moderated_reach, welch_reach
from jostle.studies.looks import planned, share_of_error
from jostle.studies.verdict import ALIKE_FACTOR, Expectation, Verdict, decide, is_smaller, overall

Logs = NDArray[np.float64]  # (2, runs, seeds): logarithms of two networks without a difference
World = Callable[[np.random.Generator, int, int], Logs]

PAGE = Path(__file__).resolve().parent.parent / "docs" / "verdicts.md"
MARKED = re.compile(
    r"(<!-- error rates: written by tools/error_rates.py -->\n).*?(<!-- end of error rates -->)", re.DOTALL
)
NOMINAL, LEVEL = 0.025, 0.95
COUNTS = (3, 4, 6, 12)
RUNS = 40_000


def _normal(first: float, second: float) -> World:
    """Normal logarithms, spread so many times the prior."""
    return lambda rng, runs, n: (
        rng.standard_normal((2, runs, n)) * PRIOR.std * np.array([first, second]).reshape(2, 1, 1)
    )


def _drawn(times: float = 1.0) -> World:
    """Spreads drawn from the prior, all of them so many times as large."""

    def draw(rng: np.random.Generator, runs: int, n: int) -> Logs:
        chi = rng.chisquare(PRIOR.freedom, (2, runs, 1))
        return rng.standard_normal((2, runs, n)) * times * PRIOR.std * np.sqrt(PRIOR.freedom / chi)

    return draw


def _skewed(first: float, second: float) -> World:
    """Exponential logarithms, mean 0, with the tail to the right; to the left for a negative factor."""

    def draw(rng: np.random.Generator, runs: int, n: int) -> Logs:
        return (rng.exponential(size=(2, runs, n)) - 1) * PRIOR.std * np.array([first, second]).reshape(2, 1, 1)

    return draw


def _half_skewed(rng: np.random.Generator, runs: int, n: int) -> Logs:
    return np.stack([_skewed(1, 1)(rng, runs, n)[0], _normal(1, 1)(rng, runs, n)[1]])


def _lognormal(rng: np.random.Generator, runs: int, n: int) -> Logs:
    return rng.standard_normal((2, runs, n)) * PRIOR.std * np.exp(0.7 * rng.standard_normal((2, runs, 1)))


def _two_points(rng: np.random.Generator, runs: int, n: int) -> Logs:
    return rng.standard_normal((2, runs, n)) * np.where(rng.random((2, runs, 1)) < 0.8, 0.1, 0.4)


WORLDS: dict[str, World] = {
    "spreads as the prior says (scaled inverse chi-square)": _drawn(),
    "spreads lognormal": _lognormal,
    "spreads 0.1 or 0.4": _two_points,
    "all spread as much as the prior": _normal(1, 1),
    "all spread 2 times as much": _normal(2, 2),
    "all spread 4 times as much": _normal(4, 4),
    "spreads as the prior says, all times 2": _drawn(2),
    "spreads as the prior says, all times 4": _drawn(4),
    "one of the two spreads 2 times as much": _normal(2, 1),
    "one of the two spreads 4 times as much": _normal(4, 1),
    "one of the two spreads 8 times as much": _normal(8, 1),
    "spreads of 4 and 2": _normal(4, 2),
    "both skewed (exponential)": _skewed(1, 1),
    "both skewed, 4 times as much": _skewed(4, 4),
}
# No interval of Student's kind keeps its level where the two sides are skewed in different ways.
LIMITS: dict[str, World] = {
    "one skewed, one normal": _half_skewed,
    "skewed in opposite ways": _skewed(1, -1),
}
Reach = Callable[[Logs], NDArray[np.float64]]


def paired_reach(logs: Logs) -> NDArray[np.float64]:
    """The rule before: Student's t of paired differences."""
    apart, n = logs[0] - logs[1], logs.shape[2]
    reach: NDArray[np.float64] = special.stdtrit(n - 1, (1 + LEVEL) / 2) * apart.std(axis=1, ddof=1) / np.sqrt(n)
    return reach


def in_use(logs: Logs, level: float = LEVEL) -> NDArray[np.float64]:
    """The rule in use, by the code in use."""
    return guarded_reach(logs.var(axis=2, ddof=1), logs.shape[2], level)


REACHES: dict[str, Reach] = {
    "paired t": paired_reach,
    "Welch": lambda logs: welch_reach(logs.var(axis=2, ddof=1), np.full((2, 1), logs.shape[2]), LEVEL),
    "moderated": lambda logs: moderated_reach(logs.var(axis=2, ddof=1), np.full((2, 1), logs.shape[2]), LEVEL, PRIOR),
    "in use": in_use,
}


def error(logs: Logs, reach: Reach) -> float:
    """The share of runs in which the first is found smaller or larger, whichever is more: nominally 0.025."""
    apart, beyond = logs[0].mean(axis=1) - logs[1].mean(axis=1), reach(logs)
    return float(max((apart > beyond).mean(), (apart < -beyond).mean()))


def sizes(runs: int = RUNS) -> list[str]:
    """The table of one comparison without a difference."""
    rng = np.random.default_rng(20_261_117)
    lines = [
        "| networks without a difference | paired t, 3 seeds | Welch, 3 | moderated, 3 | **in use, 3** | in use, 4 | "
        "in use, 6 | in use, 12 |",
        "|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for name, world in {**WORLDS, **LIMITS}.items():
        three = world(rng, runs, 3)
        found = [error(three, reach) for reach in REACHES.values()]
        found += [error(world(rng, runs, n), in_use) for n in COUNTS[1:]]
        lines.append(f"| {name} | " + " | ".join(f"{rate:.4f}" for rate in found) + " |")
    return lines


def powers(runs: int = RUNS) -> list[str]:
    """The table of one comparison with a difference."""
    rng = np.random.default_rng(7)
    ratios = (1.35, 1.65, 2.0, 2.7, 4.5)
    lines = ["| true ratio | " + " | ".join(f"{r:g}" for r in ratios) + " |", "|---|" + "---:|" * len(ratios)]
    for n in COUNTS:
        logs = _drawn()(rng, runs, n)
        apart = logs[0].mean(axis=1) - logs[1].mean(axis=1)
        for name in ("paired t", "in use"):
            found = [float((apart + np.log(ratio) > REACHES[name](logs)).mean()) for ratio in ratios]
            lines.append(f"| {n} seeds, {name} | " + " | ".join(f"{rate:.2f}" for rate in found) + " |")
    return lines


def alike_share(logs: Logs, ratio: float) -> float:
    """How often two networks of this true ratio are found alike: the interval reaches over 1 and is near to it."""
    apart, reach, near = logs[0].mean(axis=1) - logs[1].mean(axis=1) + np.log(ratio), in_use(logs), np.log(ALIKE_FACTOR)
    return float(((np.abs(apart) + reach <= near) & (np.abs(apart) <= reach)).mean())


def alikes(runs: int = RUNS) -> list[str]:
    """The table of two networks that may be alike: a true ratio at the end of what counts as alike, and one of 1."""
    rng = np.random.default_rng(13)
    counts = (3, 6, 12, 24)
    lines = [
        "| networks | " + " | ".join(f"wrong ALIKE, {n} seeds" for n in counts) + " | "
        + " | ".join(f"right ALIKE, {n}" for n in counts) + " |",
        "|---|" + "---:|" * 2 * len(counts),
    ]  # fmt: skip
    for name, world in {**WORLDS, **LIMITS}.items():
        drawn = [world(rng, runs, n) for n in counts]
        found = [alike_share(logs, ratio) for ratio in (1 / ALIKE_FACTOR, 1.0) for logs in drawn]
        lines.append(f"| {name} | " + " | ".join(f"{rate:.4f}" for rate in found) + " |")
    return lines


def claim(rng: np.random.Generator, ratios: Sequence[float], seeds: int = 3) -> list[Expectation]:
    """Expectations that a first network is less sensitive than each of some others, at these true ratios."""
    spread = PRIOR.std * np.sqrt(PRIOR.freedom / rng.chisquare(PRIOR.freedom, len(ratios) + 1))
    logs = rng.standard_normal((len(ratios) + 1, seeds)) * spread[:, None]
    values = [dict(enumerate(np.exp(row).tolist())) for row in logs]
    return [
        is_smaller("s", {seed: ratio * one for seed, one in values[0].items()}, other)
        for ratio, other in zip(ratios, values[1:], strict=True)
    ]


def claims(runs: int = 1_000) -> list[str]:
    """The table of whole claims, judged by ``decide`` and ``overall``."""
    rng = np.random.default_rng(11)
    lines = [
        "| expectations of the claim | wrong AGREES: one ratio is 1, the others far below | wrong DISAGREES: all "
        "ratios are 1 | right AGREES: all ratios are 1/3 |",
        "|---:|---:|---:|---:|",
    ]
    for m in (1, 2, 4, 8):
        cases = (
            (Verdict.AGREES, [1.0] + [0.01] * (m - 1)),
            (Verdict.DISAGREES, [1.0] * m),
            (Verdict.AGREES, [1 / 3] * m),
        )
        rates = [share(rng, ratios, verdict, runs) for verdict, ratios in cases]
        lines.append(f"| {m} | " + " | ".join(f"{rate:.4f}" for rate in rates) + " |")
    return lines


def share(rng: np.random.Generator, ratios: Sequence[float], verdict: Verdict, runs: int) -> float:
    """How often a claim with these true ratios gets this verdict."""
    return sum(overall(decide(claim(rng, ratios), scale="small")) == verdict for _ in range(runs)) / runs


Rule = Callable[
    [Logs], tuple[NDArray[np.bool_], NDArray[np.int64]]
]  # decided (wrongly or not), and with how many seeds


def by_looks(seeds: Sequence[int], shares: Sequence[float]) -> Rule:
    """Looks at these numbers of seeds, each with its share of the error."""

    def decided(logs: Logs) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
        runs = logs.shape[1]
        done, used = np.zeros(runs, dtype=bool), np.full(runs, seeds[-1])
        for n, part in zip(seeds, shares, strict=True):
            seen = logs[:, :, :n]
            apart = np.abs(seen[0].mean(axis=1) - seen[1].mean(axis=1))
            new = ~done & (apart > in_use(seen, 1 - (1 - LEVEL) * part))
            used[new] = n
            done |= new
        return done, used

    return decided


def by_e_process(logs: Logs) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    """After every seed a t e-process of paired differences: normal prior of std 2 on the effect, sigma by right Haar.

    (1 + 4 n)^(-1/2) ((1 + T^2 / (n - 1)) / (1 + T^2 / ((1 + 4 n) (n - 1))))^(n / 2) >= 20: Wang and Ramdas (2023).
    """
    apart = logs[0] - logs[1]
    done, used = np.zeros(len(apart), dtype=bool), np.full(len(apart), apart.shape[1])
    for n in range(3, apart.shape[1] + 1):
        seen = apart[:, :n]
        square = n * seen.mean(axis=1) ** 2 / seen.var(axis=1, ddof=1)
        wide = 1 + 4 * n
        e = wide**-0.5 * ((1 + square / (n - 1)) / (1 + square / (wide * (n - 1)))) ** (n / 2)
        new = ~done & (e >= 1 / (1 - LEVEL))
        used[new] = n
        done |= new
    return done, used


def looks(runs: int = 5_000) -> list[str]:
    """The table of seeds that are added until a comparison is decided."""
    seeds = planned(3)
    shares = [share_of_error(seeds, n) for n in seeds]
    rules: dict[str, Rule] = {
        "3 seeds only": by_looks([3], [1.0]),
        "3, 6, 12, 24 with all of the error each": by_looks(seeds, [1.0] * 4),
        "3 with all of it, then 6 as the last of 2": by_looks([3, 6], [1.0, 2 / 3]),
        "3 with all of it, then 6, 12, 24 of 4": by_looks(seeds, [1.0, *shares[1:]]),
        "**in use: 3, 6, 12, 24 with .1 .2 .3 .4**": by_looks(seeds, shares),
        "t e-process after every seed from 3 to 24": by_e_process,
    }
    effects = (5, 3, 2, 1.5, 1)
    lines = [
        "| rule | wrong either way, nominal .05 | " + " | ".join(f"seeds at {e:g} std" for e in effects) + " |",
        "|---|---:|" + "---:|" * len(effects),
    ]
    for name, rule in rules.items():
        rng = np.random.default_rng(5)
        wrong = float(rule(_normal(2, 2)(rng, runs, seeds[-1]))[0].mean())
        means = []
        for effect in effects:
            logs = _normal(2, 2)(rng, runs, seeds[-1])
            logs[0] += effect * 2 * PRIOR.std * np.sqrt(2)
            done, used = rule(logs)
            means.append(f"{used.mean():.1f} ({done.mean():.0%})")
        lines.append(f"| {name} | {wrong:.4f} | " + " | ".join(means) + " |")
    return lines


def main() -> None:
    """Write the tables."""
    parts = {
        f"One comparison: chance of a wrong verdict in one direction, nominally {NOMINAL} "
        f"({RUNS:,} simulated studies a cell, standard error .0008)": sizes(),
        "One comparison: chance of a right verdict, spreads as the prior says": powers(),
        f"Two networks that may be alike: chance of ALIKE where the true ratio is 1/{ALIKE_FACTOR:g}, which is wrong, "
        f"nominally at most {NOMINAL}; and where it is 1 ({RUNS:,} simulated studies a cell)": alikes(),
        "Whole claims of 3 seeds, all against the same first network (1,000 studies, standard error .005)": claims(),
        "Seeds until decided: error, and the mean number of seeds with the share that is decided, for differences of "
        "so many standard deviations of a seed's difference (5,000 studies, standard error .003)": looks(),
    }
    text = "\n".join(f"**{title}**\n\n" + "\n".join(lines) + "\n" for title, lines in parts.items())
    page = PAGE.read_text(encoding="utf-8")
    if not MARKED.search(page):
        raise SystemExit("docs/verdicts.md has lost its markers")
    write_text(PAGE, MARKED.sub(lambda found: found[1] + text + found[2], page))


if __name__ == "__main__":
    main()
