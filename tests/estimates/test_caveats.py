"""Results say where their intervals promise nothing, and a grid that is ended early has intervals for that."""

import numpy as np
import pytest
import torch

import jostle
from jostle.base.estimate import Interval
from jostle.base.progress import State
from jostle.estimates.request import Request
from jostle.estimates.tallies import BINARY, REAL, GridTally
from jostle.intervals import anytime, fixed
from jostle.sampling import Grid, Trials
from jostle.tokens import Coordinates, Inputs


def model(x):
    return x @ torch.tensor([[1.0, -1.0], [0.5, 0.5], [2.0, 1.0]], dtype=x.dtype)


def inputs(count):
    return np.random.default_rng(0).normal(size=(count, 3))


def tallied(changes, support, average="macro"):
    """The estimate of a grid with these changes: a list of (tokens, 1) arrays, one for each input."""
    request = Request.build(tokens="coordinates", perturbation="gaussian-noise:1", level=0.95, average=average)
    most = max(len(part) for part in changes)
    tally = GridTally(request, Grid(1), Inputs(np.zeros((len(changes), most)), Coordinates()), support, 0.95)
    for owner, part in enumerate(changes):
        count = len(part)
        trials = Trials(np.full(count, owner), np.arange(count), np.zeros(count, dtype=np.int64))
        tally.add(trials, np.asarray(part, dtype=float).reshape(-1))
    return tally


def test_real_changes_are_asymptotic_and_few_are_too_few():
    ask = {"tokens": "coordinates", "perturbation": "gaussian-noise:1", "response": "logit-change", "plan": Grid(2)}
    few = jostle.measure(model, inputs(20), **ask)
    assert few.population.caveat == "asymptotic, too few: 20 independent values, 200 are needed"
    assert "not promised: asymptotic, too few" in str(few)
    assert few.to_dict()["population"]["caveat"] == few.population.caveat
    assert "asymptotic, too few at 3 of 3 positions" in few.profile.method
    many = jostle.measure(model, inputs(400), **ask)
    assert many.population.caveat == many.dataset.caveat == "asymptotic"
    assert not many.notes
    assert "95% for the inputs given (asymptotic)\n" in str(many)
    assert "for the population the inputs came from (asymptotic)\n" in str(many)
    assert many.profile.method == "inputs as clusters, Student's t, asymptotic"
    assert many.to_dict()["dataset"]["caveat"] == "asymptotic"


def test_flips_are_always_promised():
    found = jostle.measure(model, inputs(5), tokens="coordinates", perturbation="gaussian-noise:1", plan=Grid(1))
    assert not found.dataset.caveat
    assert not found.population.caveat
    assert not found.notes
    assert "asymptotic" not in str(found)


def test_one_large_change_takes_the_promise_away():
    rng = np.random.default_rng(1)
    changes = [rng.normal(1.0, 0.1, 4) for _ in range(300)]
    assert tallied(changes, REAL).estimate().population.caveat == "asymptotic"
    changes[7][2] = 50.0
    caveat = tallied(changes, REAL).estimate().population.caveat
    assert caveat.startswith("asymptotic, too few: one of 300 values has ")


def test_draws_of_until_say_it_too():
    ask = {"tokens": "coordinates", "perturbation": "gaussian-noise:1", "response": "logit-change"}
    found = jostle.measure(model, inputs(50), plan=jostle.Until(half_width=1e-6, max_passes=150), **ask)
    assert found.dataset.caveat.startswith("asymptotic, too few")
    found = jostle.measure(model, inputs(500), plan=jostle.Until(half_width=1e-6, max_passes=5000), **ask)
    assert found.dataset.caveat == "asymptotic"


def test_a_population_of_unequal_lengths_needs_many_inputs():
    rng = np.random.default_rng(2)

    def texts(count, lengths):
        return [(rng.random(length) < 0.1).astype(float) for length in rng.choice(lengths, count)]

    few = tallied(texts(50, [3, 9]), BINARY, "micro").estimate()
    assert few.population.caveat == "asymptotic, too few: 50 independent values, 200 are needed"
    assert not few.dataset.caveat
    assert not tallied(texts(300, [3, 9]), BINARY, "micro").estimate().population.caveat
    assert not tallied(texts(50, [9]), BINARY, "micro").estimate().population.caveat
    long = [*texts(300, [3, 9]), np.ones(500)]
    assert "of the variance" in tallied(long, BINARY, "micro").estimate().population.caveat


def test_an_early_end_of_a_grid_has_a_confidence_sequence():
    rng = np.random.default_rng(3)
    every = [(rng.random(4) < 0.3).astype(float) for _ in range(60)]
    tally = tallied(every, BINARY)
    whole = tally.estimate()
    tally.per_input[40:] = np.nan  # as if somebody had ended it after 40 inputs
    early = tally.estimate()
    assert early.population.method == "inputs as clusters, confidence sequence, betting"
    assert early.dataset.method.startswith("40 of 60 inputs, inputs as clusters, confidence sequence")
    means = np.asarray([part.mean() for part in every[:40]])
    assert (early.population.low, early.population.high) == anytime.bounded_ends(
        *fixed.histogram(means), 0.95, (0.0, 1.0)
    )
    assert early.population.half_width > whole.population.half_width


def test_ctrl_c_during_a_grid_gives_an_interval_that_may_be_looked_at_any_time():
    def stop(state: State) -> None:
        if state.share > 0.2:
            raise KeyboardInterrupt

    with pytest.raises(jostle.Interrupted) as caught:
        jostle.measure(
            model, inputs(300), tokens="coordinates", perturbation="gaussian-noise:1", plan=Grid(1), progress=stop,
            batch_size=16,
        )  # fmt: skip
    assert "confidence sequence" in caught.value.result.population.method


@pytest.mark.slow
@pytest.mark.parametrize("rate", ["even", "uneven"])
def test_who_stops_a_grid_when_it_misses_seldom_succeeds(rate):
    """Looks after every fifth input, and a stop at the first miss: the hardest stopping rule there is."""
    rng, runs, held = np.random.default_rng(4), 300, 0
    for _ in range(runs):
        rates = rng.beta(0.5, 0.5, 100) if rate == "uneven" else np.full(100, 0.5)
        means = rng.binomial(4, rates) / 4
        looks = [anytime.bounded_ends(*fixed.histogram(means[:end]), 0.95, (0.0, 1.0)) for end in range(5, 100, 5)]
        held += all(low <= 0.5 <= high for low, high in looks)
    assert held / runs >= 0.95 - 3 * np.sqrt(0.95 * 0.05 / runs)


def test_a_caveat_is_read_back():
    interval = Interval(0.1, 0.2, 0.95, "population", "made up", caveat="asymptotic, too few: 3 values")
    assert Interval.from_dict("population", interval.to_dict()) == interval
    assert "caveat" not in Interval(0.1, 0.2, 0.95, "dataset", "made up").to_dict()


def test_clusters_of_several_sizes_hide_the_largest_one():
    """Large clusters flip, and hold nearly all inputs: 5 clusters of a heavy tail miss that, so they must say so."""
    rng, misses = np.random.default_rng(1), 0
    for _ in range(100):
        sizes = np.ceil(rng.pareto(0.7, size=5))
        flips = np.asarray(sizes > 20, dtype=float)
        misses += fixed.bounded_ratio(flips, sizes, 0.95, (0.0, 1.0))[1] < 0.95
        residuals = sizes * (flips - fixed.weighted_mean(flips, sizes))
        assert bool(fixed.ratio_caveat(sizes, residuals, is_bounded=True)) == (len(np.unique(sizes)) > 1)
    assert misses > 20


def test_clusters_of_texts_say_what_they_do_not_promise():
    ask = {"tokens": "coordinates", "perturbation": "gaussian-noise:1", "plan": Grid(2)}
    alone = jostle.measure(model, inputs(6), **ask, cluster=[0, 0, 1, 1, 2, 2])
    assert not alone.population.caveat
    unequal = jostle.measure(model, inputs(6), **ask, cluster=[0, 0, 0, 1, 1, 2])
    assert unequal.population.caveat == "asymptotic, too few: 3 independent values, 200 are needed"
    assert unequal.notes == [f"the coverage of the interval for the population the inputs came from is not promised: "
                             f"{unequal.population.caveat}"]  # fmt: skip
    assert "came from (asymptotic)" in str(unequal)
    real = jostle.measure(model, inputs(6), **ask, cluster=[0, 0, 0, 1, 1, 2], response="margin")
    assert sum("population" in note for note in real.notes) == 1  # the one of single inputs is not repeated


def test_changed_texts_say_what_they_do_not_promise():
    def shouting(texts):
        return torch.tensor([[sum(map(str.isupper, text)) - 2.5, 0.0] for text in texts])

    unequal = jostle.change_texts(shouting, ["It is late", "Go now"], change="case")
    assert unequal.population.caveat == "asymptotic, too few: 2 independent values, 200 are needed"
    assert "texts came from (asymptotic)" in str(unequal)
    assert "texts given (asymptotic)" not in str(unequal)
    equal = jostle.change_texts(shouting, ["Go on", "Go now"], change="case")
    assert not equal.population.caveat
    real = jostle.change_texts(shouting, ["Go on", "Go now"], change="typo", draws=3, response="margin")
    assert "texts given (asymptotic)" in str(real)
    assert "texts came from (asymptotic)" in str(real)


def test_real_changes_inside_a_model_and_at_their_worst_are_asymptotic():
    net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Linear(4, 2))
    x = torch.tensor(inputs(20))
    inside = jostle.depth(net, x, site="0", response="logit-change", plan=Grid(2))
    assert "for the inputs given (asymptotic)" in str(inside)
    assert "note: the coverage of the interval for the population" in str(inside)
    assert "asymptotic" not in str(jostle.depth(net, x, site="0", plan=Grid(2)))
    worst = jostle.worst_case(net, x, tokens="coordinates", radius=0.5, response="logit-change", draws=2, steps=2)
    assert worst.at().largest.interval.caveat == "asymptotic, too few: 20 independent values, 200 are needed"
    assert "interval over inputs (asymptotic)" in str(worst)
    flips = jostle.worst_case(net, x, tokens="coordinates", radius=0.5, draws=2, steps=2)
    assert "asymptotic" not in str(flips)
