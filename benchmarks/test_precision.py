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
from jostle.sampling import TrialEvaluation, Trials
from jostle.sampling.adaptive import DEFENSIVE, Cells, Pilot, needed_draws
from jostle.tokens.views import places

TARGETS = (0.0005, 0.005, 0.05)
SECONDS = 150.0  # about the most that one measurement may take
DRAWS = 2**16  # uniform ones, to know the rates of strata
CANDIDATES = 2**17  # uniform ones that no model is asked about, to know the shares of strata
DISTANCES = 2.0 ** np.arange(-11, 0)  # shares of all draws: where bins of predicted margins end
REPEATS = 24  # draws of each cell that has flipped, to know its rate
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


@pytest.mark.parametrize("name", ["mlp", "cnn", "vit", "resnet", "encoder", "decoder"])
def test_what_strata_could_save(name: str) -> None:
    """The draws of the best proposals by the rates of many uniform draws, which no pilot can beat.

    By margins and positions, and by margins and slopes; over a sample of known size, clean passes and the price of
    slopes left out. Of images also what jostle does not do: strata of single draws, by the margin that gradients
    predict for their noise; the true rate of each cell (input, token) known; and known of each draw if it flips.
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
        rates = rates_of_cells(evaluation, seen)
    numbers = {"flips": float(sum(changes.sum() for _, changes in seen)), "price_of_slopes": price}
    draws = {}
    for way, slopes in ways.items():
        pilot = Pilot(Cells(evaluation.inputs, evaluation.margins(), "macro", slopes), plan, request.level)
        for trials, changes in seen:
            pilot.add(trials, changes)
        forecast = pilot.forecast("main")
        draws[way] = forecast.draws
    if inputs.dim() == 4:
        draws["noise"] = by_noise(evaluation, pilot, seen)
        rate = float(np.mean([changes.mean() for _, changes in seen]))
        draws["cells"] = if_known(pilot, rate, rates)
        draws["flips"] = if_known(pilot, rate, np.ones(len(rates)))
    fixed = 1.96**2 * (1 - forecast.value) / (forecast.value * 0.01)
    for way, needed in draws.items():
        numbers |= {f"by_{way}": needed / fixed, f"by_{way}_draws": needed}
    record(f"strata-{name}-0.005", numbers)
    print(f"\n{name}: " + ", ".join(f"{key} {value:.4g}" for key, value in numbers.items()))


Seen = list[tuple[Trials, np.ndarray]]


def rates_of_cells(evaluation: TrialEvaluation, seen: Seen) -> np.ndarray:
    """(flips,) the rate of the cell of each flip, by further draws: cells in proportion to their rates."""
    found = []
    for trials, changes in seen:
        hit = trials[np.flatnonzero(changes)]
        draws = 2**29 + np.tile(np.arange(REPEATS), len(hit))
        again = Trials(np.repeat(hit.inputs, REPEATS), np.repeat(hit.tokens, REPEATS), draws)
        found.append(evaluation.changes(again)[0].reshape(len(hit), REPEATS).sum(axis=1))
    return np.asarray((np.concatenate(found) + 0.5) / (REPEATS + 1))


def if_known(pilot: Pilot, value: float, rates: np.ndarray) -> float:
    """The draws of the best proposal over cells whose rates are known, from those of cells in which flips happened.

    A proposal in proportion to the root of the rate, and a share of uniform draws: E[root] = S E[1 / root | flip].
    """
    rises = np.sqrt(rates) / (value * np.mean(1 / np.sqrt(rates)))
    weights = np.stack([1 / ((1 - share) * rises + share) for share in DEFENSIVE])
    largest = 1 / np.asarray(DEFENSIVE)
    return float(needed_draws(pilot.plan, pilot.level, value, value * weights.mean(axis=1), largest).min())


def by_noise(evaluation: TrialEvaluation, pilot: Pilot, seen: Seen) -> float:
    """The draws of the best proposal over strata of single draws.

    Strata of (margin + gradient x noise) / slope, which is how far the linear prediction leaves the jostled input from
    a flip, and of margin / slope. ``pilot`` knows slopes.
    """
    gradients = gradients_of(evaluation)
    candidates = pilot.plan.trials(evaluation.inputs, 2, 0, CANDIDATES)
    groups = pilot.cells.by_slope
    assert groups is not None

    def distances(trials: Trials) -> np.ndarray:
        inputs, tokens = torch.from_numpy(trials.inputs), torch.from_numpy(trials.tokens)
        moved, after = evaluation.moved_tokens(trials)
        assert len(moved) == len(trials)
        steep = gradients[inputs, tokens]
        step = (steep * (after - evaluation.inputs.tokens(trials.inputs, trials.tokens))).sum(dim=1)
        return np.asarray((evaluation.margins()[trials.inputs] + step.numpy()) / steep.norm(dim=1).numpy())

    cut = np.split(np.arange(CANDIDATES), CANDIDATES // 2**13)
    spread = np.concatenate([distances(candidates[rows]) for rows in cut])
    ends = np.quantile(spread, DISTANCES)

    def places_of(trials: Trials, found: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return np.searchsorted(ends, found), groups[trials.inputs, trials.tokens].astype(np.int64)

    wanted, flips, draws = np.zeros((3, len(ends) + 1, pilot.flips.shape[1]))
    np.add.at(wanted, places_of(candidates, spread), 1 / CANDIDATES)
    for trials, changes in seen:
        where = places_of(trials, distances(trials))
        np.add.at(draws, where, 1)
        np.add.at(flips, where, changes)
    pilot.flips, pilot.draws = flips, draws
    return pilot.best_chances(wanted, pilot.slope_rates(wanted))[1]


def gradients_of(evaluation: TrialEvaluation) -> torch.Tensor:
    """(N, tokens, dim) the gradient of each clean margin."""
    function, inputs, found = evaluation.functions[0], evaluation.inputs, []
    with torch.inference_mode(mode=False), torch.enable_grad():
        for some in np.array_split(np.arange(len(inputs)), -(-len(inputs) // 64)):
            images = inputs.batch(some)[inputs.key].clone().requires_grad_()
            margins = evaluation.response.margins(function.model(images))
            assert margins is not None
            (gradient,) = torch.autograd.grad(margins.sum(), images)
            found.append(gradient.flatten(1)[:, places(inputs.view, inputs.shape)])
    return torch.cat(found)
