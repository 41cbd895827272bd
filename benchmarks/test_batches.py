"""Does the rule for the size of batches find a good one? CPU time with it over the best of several sizes.

The rule (``inputs_at_once`` and ``tokens_at_once`` in ``jostle.sampling.plans``) looks at the widths of a model and at
no clock, so that the same call gives the same bits on every machine. This is what a measured trial could gain.
"""

import statistics
import time

import pytest

import jostle
from benchmarks.networks import NETWORKS, available, trained
from benchmarks.records import record

ROUNDS, SIZES = 3, (32, 64, 128, 256, 512)
PASSES = {"vit": 2500, "resnet": 1500}

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.mark.parametrize("name", list(NETWORKS))
def test_the_rule_against_the_best_size(name: str) -> None:
    if name not in available():
        pytest.skip(f"the data of {name} is not here")
    model, inputs = trained(name)
    plan = jostle.Until(half_width=1e-5, max_passes=PASSES.get(name, 5000))

    def seconds(size: int | None) -> float:
        started = time.process_time()
        jostle.measure(
            model,
            inputs,
            tokens=NETWORKS[name].tokens,
            perturbation=jostle.GaussianNoise(1.0),
            plan=plan,
            engine="serial",
            batch_size=size,
        )
        return time.process_time() - started

    seconds(None)
    rounds = [{size: seconds(size) for size in (None, *SIZES)} for _ in range(ROUNDS)]
    times = {size: statistics.median(each[size] for each in rounds) for size in (None, *SIZES)}
    best = min(SIZES, key=lambda size: times[size])
    numbers = {"rule_over_best": times[None] / times[best], "best": float(best)}
    record(f"batches-{name}", numbers | {f"at_{size}": times[size] / times[best] for size in SIZES})
    print(f"\n{name}: the rule takes {numbers['rule_over_best']:.2f} times the time of the best size, {best}")
