"""What a measurement costs over plain inference in ideal batches: of 128, of the same inputs, sorted by length
(for a grid, of each input as often as it has tokens).

``Until`` for some thousand passes and ``Grid(1)`` on some inputs, with all checks, clean passes and intervals.
Also without the short cuts of jostle, readers and quicker products of matrices, to show what they save; and what the
products alone save. Ratios of CPU times a pass, medians of interleaved rounds. For texts, also where the time goes.
"""

import functools
import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import pytest
import torch

import jostle
from benchmarks import rivals
from benchmarks.networks import NETWORKS, available, trained
from benchmarks.records import record
from jostle.base import products
from jostle.sampling import TrialEvaluation, readers
from jostle.sampling.text_checks import Move
from jostle.tokens import TokenFunction
from jostle.tokens import model as token_model

ROUNDS, SECONDS = 5, 1.2  # of three rounds the median was still 5 % up or down, on a busy machine

pytestmark = pytest.mark.usefixtures("one_thread")


@contextmanager
def _without_short_cuts() -> Iterator[None]:
    with readers.switched_off(), products.switched_off():
        yield


@pytest.mark.parametrize("name", list(NETWORKS))
def test_overhead_over_ideal_batches(name: str) -> None:
    if name not in available():
        pytest.skip(f"the data of {name} is not here")
    model, inputs = trained(name)

    def plain(passes: int, count: int | None = None) -> float:
        """Without ``count``, of random inputs; with it, of the tokens of the first inputs."""
        with torch.inference_mode():
            started = time.process_time()
            rivals.clean(model, inputs[:count], 0.0, passes, by_token=count is not None)
            return (time.process_time() - started) / passes

    def measured(plan: jostle.Until | jostle.Grid, count: int) -> float:
        started = time.process_time()
        noise = jostle.GaussianNoise(1.0)
        found = jostle.measure(
            model, inputs[:count], tokens=NETWORKS[name].tokens, perturbation=noise, plan=plan, engine="serial"
        )
        return (time.process_time() - started) / found.passes

    plain(512)
    passes = int(min(max(SECONDS / plain(512), 2000), 12_000))
    some = passes // 45
    until = jostle.Until(half_width=1e-5, max_passes=passes)
    measured(until, len(inputs))  # everybody has run once before any clock starts
    numbers = {}
    for label, way in (("", nullcontext), ("_without_short_cuts", _without_short_cuts)):
        with way():
            rounds = [
                (plain(passes), measured(until, len(inputs)), plain(passes, some), measured(jostle.Grid(1), some))
                for _ in range(ROUNDS)
            ]
        numbers[f"until{label}"] = statistics.median(row[1] / row[0] for row in rounds) - 1
        numbers[f"grid{label}"] = statistics.median(row[3] / row[2] for row in rounds) - 1
    numbers |= {"microseconds_a_plain_pass": 1e6 * statistics.median(row[0] for row in rounds), "passes": passes}
    record(f"ideal-{name}", numbers)
    print(f"\n{name}: " + ", ".join(f"{key} {value:+.2f}" for key, value in numbers.items()))


@pytest.mark.parametrize("name", list(NETWORKS))
def test_what_quicker_products_save(name: str) -> None:
    """CPU time of a measurement with torch's usual products of matrices over that with the quicker ones."""
    if name not in available():
        pytest.skip(f"the data of {name} is not here")
    model, inputs = trained(name)

    def measured() -> float:
        started = time.process_time()
        jostle.measure(
            model,
            inputs,
            tokens=NETWORKS[name].tokens,
            perturbation=jostle.GaussianNoise(1.0),
            plan=jostle.Until(half_width=1e-5, max_passes=4 * len(inputs)),
            engine="serial",
        )
        return time.process_time() - started

    rounds = []
    for _ in range(ROUNDS):
        quick = measured()
        with products.switched_off():
            rounds.append(measured() / quick)
    record(f"products-{name}", {"times_as_fast": statistics.median(rounds[1:])})


@pytest.mark.parametrize("name", ["encoder", "decoder"])
def test_where_the_time_of_texts_goes(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """CPU time of parts of ``Until``, over that of plain inference for as many passes, medians of some rounds.

    ``model``: the model itself, on the batches of the measurement; ``change``: of a token inside of it; ``checks``:
    before the first draw.
    """
    if name not in available():
        pytest.skip(f"the data of {name} is not here")
    model, inputs = trained(name)
    spent: dict[str, float] = defaultdict(float)
    parts = {"whole": (token_model, "call"), "change": (Move, "__call__")}
    parts |= {"texts": (TrialEvaluation, "check"), "steady": (TokenFunction, "check_steady")}
    for part, (owner, attribute) in parts.items():
        monkeypatch.setattr(owner, attribute, _timed(getattr(owner, attribute), spent, part))
    passes, rounds = 12_000, list[dict[str, float]]()
    plan = jostle.Until(half_width=1e-5, max_passes=passes)
    for _ in range(ROUNDS + 1):
        spent.clear()
        with torch.inference_mode():
            started = time.process_time()
            rivals.clean(model, inputs, 0.0, passes)
            plain = time.process_time() - started
        started = time.process_time()
        with _without_short_cuts():
            jostle.measure(
                model,
                inputs,
                tokens=NETWORKS[name].tokens,
                perturbation=jostle.GaussianNoise(1.0),
                plan=plan,
                engine="serial",
            )
        whole = time.process_time() - started
        found = {"model": spent["whole"] - spent["change"], "change": spent["change"]}
        found |= {"checks": spent["texts"] + spent["steady"], "all": whole}
        rounds.append({part: value / plain for part, value in found.items()})
    numbers = {part: statistics.median(row[part] for row in rounds[1:]) for part in rounds[0]}
    record(f"parts-{name}", numbers)
    print(f"\n{name}: " + ", ".join(f"{key} {value:.3f}" for key, value in numbers.items()))


def _timed(function: Callable[..., Any], spent: dict[str, float], part: str) -> Callable[..., Any]:
    """The same function, which adds its CPU time to a part."""

    @functools.wraps(function)
    def wrapped(*positional: Any, **named: Any) -> Any:
        started = time.process_time()
        try:
            return function(*positional, **named)
        finally:
            spent[part] += time.process_time() - started

    return wrapped
