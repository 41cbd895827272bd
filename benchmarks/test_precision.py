"""CPU time and passes to ±10 % at 95 %, against the papers' grid, a fixed sample and the released protocol.

jostle runs from end to end, checks and clean passes included, and is timed whole. The rates of the others are measured
before and after it in the same process, and extrapolated to the passes that they need: the grid all N x T x 5, the
fixed sample as many as the true S asks for at +-10 %, and N clean ones. Everybody has run once before any clock starts.
If jostle would take too long it is stopped: ``stopped`` is then 1, and its time is less than it needs.

The papers' grid is that of paper 1 (2403.06925) at its own size: T x 5 noisy passes and a clean one of each of its
images, at the rate of the grid measured here. It is held against jostle's time as measured, and against that time with
clean passes of all the papers' images added, as if jostle had been given as many.
"""

import resource
import statistics
import time

import numpy as np
import pytest
import torch

import jostle
from benchmarks import rivals
from benchmarks.networks import NETWORKS, available, trained
from benchmarks.records import record
from jostle.estimates.request import Request
from jostle.sampling.adaptive import Cells, Pilot

TARGETS = (0.0005, 0.005, 0.05)
SECONDS = 150.0  # about the most that one measurement may take
DRAWS = 2**16  # uniform ones, to know the rates of strata
ROUNDS = 2  # of rates, before and after
# Images that paper 1 (2403.06925) perturbs, "about 30 % of the training data" (its Section 5): 4.4 million passes for
# 49 patches of Fashion-MNIST, 4.8 for 64 of CIFAR-10. Its released code takes all 50,000 images of CIFAR-10, but does
# not go through their patches (see ``rivals.released``), so a grid of that size was never made and is not taken here.
PAPER_IMAGES = {"mnist": 18_000, "cifar-10": 15_000}

pytestmark = pytest.mark.usefixtures("one_thread")


def cpu() -> float:
    """CPU seconds of this process and of those it has waited for."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def rate(rival: rivals.Rival, name: str, std: float, passes: int) -> float:
    """CPU seconds a pass."""
    model, inputs = trained(name)
    with torch.inference_mode():
        started = cpu()
        done = rival(model, inputs, std, passes)
        return (cpu() - started) / done


def passes_for(name: str) -> int:
    """A number of passes that takes about a fifth of a second."""
    return int(min(max(0.2 / rate(rivals.clean, name, 1.0, 256), 512), 6000))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", list(NETWORKS))
def test_time_to_a_tenth(name: str, target: float) -> None:
    if name not in available():
        pytest.skip(f"the data of {name} is not here")
    network = NETWORKS[name]
    std = network.stds[TARGETS.index(target)]
    if std is None:
        pytest.skip(f"{name} does not reach a sensitivity of {target}")
    model, inputs = trained(name)
    some = passes_for(name)
    others = {"grid": rivals.grid, "fixed": rivals.fixed, "released": rivals.released, "clean": rivals.clean}

    def measured(most: int) -> jostle.Measurement:
        return jostle.measure(
            model,
            inputs,
            tokens=network.tokens,
            perturbation=jostle.GaussianNoise(std),
            plan=jostle.Until(relative=0.1, max_passes=most),
            engine="serial",  # as the others: further processes save time, but take CPU time to start
        )

    measured(len(inputs) + 2 * some)
    rounds = [{key: rate(rival, name, std, some) for key, rival in others.items()} for _ in range(1 + ROUNDS)][1:]
    started = cpu()
    found = measured(int(SECONDS / rounds[0]["clean"]))
    ours = cpu() - started
    rounds += [{key: rate(rival, name, std, some) for key, rival in others.items()} for _ in range(ROUNDS)]
    rates = {key: statistics.median(each[key] for each in rounds) for key in others}
    value = max(found.value, 1e-6)
    is_stopped = found.stopped != "precision"
    tokens = float((inputs != 0).sum(dim=1).double().mean()) if inputs.dim() == 2 else (inputs.shape[-1] // 4) ** 2
    needed = 1.96**2 * (1 - value) / (value * 0.01)
    grid = len(inputs) * (tokens * 5 + 1)
    released = grid if inputs.dim() == 2 else len(inputs) * 6
    fixed = rates["fixed"] * needed + rates["clean"] * len(inputs)
    numbers = {
        "std": std,
        "sensitivity": found.value,
        "seconds": ours,
        "passes": found.passes,
        "stopped": float(is_stopped),
        "microseconds_a_pass": 1e6 * ours / found.passes,
        "fixed_draws": needed,
        "fixed_over_ours": fixed / ours,
        "ours_over_fixed": ours / fixed,
        "grid_over_ours": rates["grid"] * grid / ours,
        "released_over_ours": rates["released"] * released / ours,
        "released_half_width": 1.96 * ((1 - value) / (value * (released - len(inputs)))) ** 0.5,
    }
    if inputs.dim() == 4:
        images = PAPER_IMAGES[network.dataset]
        paper = rates["grid"] * images * (tokens * 5 + 1)
        numbers["paper_grid_over_ours"] = paper / ours
        numbers["paper_grid_over_ours_and_clean"] = paper / (ours + rates["clean"] * (images - len(inputs)))
    record(f"precision-{name}-{target:g}", numbers)
    print(f"\n{name} at {target:g}: " + ", ".join(f"{key} {value:.4g}" for key, value in numbers.items()))


@pytest.mark.parametrize("name", ["mlp", "vit", "resnet", "encoder", "decoder"])
def test_what_strata_could_save(name: str) -> None:
    """The draws of the best proposals by the rates of many uniform draws, which no pilot can beat.

    By margins and positions, and by margins and slopes; over a sample of known size, clean passes and the price of
    slopes left out.
    """
    if name not in available():
        pytest.skip(f"the data of {name} is not here")
    network, (model, inputs) = NETWORKS[name], trained(name)
    plan = jostle.Until(relative=0.1)
    request = Request.build(tokens=network.tokens, perturbation=jostle.GaussianNoise(network.stds[1]), plan=plan)
    evaluation = request.prepare({"model": model}, inputs)
    function = evaluation.functions[0]
    with function.evaluating():
        function.check_steady(request.response)
        evaluation.choose_batches()
        evaluation.prepare(np.arange(len(inputs)))
        seen = []
        for start in range(0, DRAWS if inputs.dim() == 2 or name == "mlp" else DRAWS // 2, 2**13):
            trials = plan.trials(evaluation.inputs, 1, start, start + 2**13)
            seen.append((trials, evaluation.changes(trials)[0]))
        ways = {"positions": None, "slopes": evaluation.slopes()}
        price = evaluation.price_of_slopes
    numbers = {"flips": float(sum(changes.sum() for _, changes in seen)), "price_of_slopes": price}
    for way, slopes in ways.items():
        pilot = Pilot(Cells(evaluation.inputs, evaluation.margins(), "macro", slopes), plan, request.level)
        for trials, changes in seen:
            pilot.add(trials, changes)
        forecast = pilot.forecast("main")
        fixed = 1.96**2 * (1 - forecast.value) / (forecast.value * 0.01)
        numbers |= {f"by_{way}": forecast.draws / fixed, f"by_{way}_draws": forecast.draws}
    record(f"strata-{name}-0.005", numbers)
    print(f"\n{name}: " + ", ".join(f"{key} {value:.4g}" for key, value in numbers.items()))
