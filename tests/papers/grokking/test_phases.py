import itertools

import numpy as np
import pytest

from jostle.base.errors import UsageError
from jostle.studies import from_plain, to_plain
from jostle_papers.p2403_06925.grokking import Trajectory, change_points, lead_times, memorisation, onset, turning_point


def squares(x, y, degree):
    return float(np.square(y - np.polyval(np.polyfit(x, y, degree), x)).sum())


@pytest.mark.parametrize("degree", [0, 1])
@pytest.mark.parametrize("changes", [0, 1, 2, 3])
def test_change_points_against_trying_all_partitions(degree, changes):
    draw = np.random.default_rng(degree + 10 * changes)
    for _ in range(5):
        x = np.sort(draw.choice(100, 14, replace=False)).astype(float)
        y = draw.normal(size=14) + 2 * (x > 40)
        best = min(
            (cuts for cuts in itertools.combinations(range(1, 14), changes) if min(np.diff([0, *cuts, 14])) >= 3),
            key=lambda cuts: sum(squares(x[a:b], y[a:b], degree) for a, b in itertools.pairwise([0, *cuts, 14])),
        )
        assert change_points(x, y, changes, degree=degree) == tuple(x[list(best)])


def test_known_changes_are_found_whatever_the_units():
    x = np.arange(0, 10_000, 100.0)
    y = np.where(x < 3000, x / 3000, np.where(x < 7000, 1 - (x - 3000) / 8000, 0.1))
    y = y + np.random.default_rng(0).normal(scale=0.01, size=len(x))
    found = change_points(x, y, 2)  # the first is a bend, which belongs to both lines, the second a jump
    assert found in ((3000.0, 7000.0), (3100.0, 7000.0))
    assert change_points(x, y) == found  # two by the criterion
    assert change_points(x, 1e6 - 1e3 * y, 2) == found
    assert change_points(x, np.random.default_rng(1).normal(size=len(x))) == ()
    assert change_points(x, 2 * x) == ()  # no rounding is taken for a change


@pytest.mark.parametrize("degree", [0, 1])
def test_where_nothing_changes_the_criterion_seldom_finds_a_change(degree):
    """On noise alone, 200 times; the criterion is not a test of a level, but it must not find phases everywhere."""
    draw = np.random.default_rng(2)
    found = [bool(change_points(np.arange(60.0), draw.normal(size=60), degree=degree)) for _ in range(200)]
    assert np.mean(found) < 0.1


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: change_points([1, 2], [1, 2, 3]), "x and y must be the same number of finite numbers"),
        (lambda: change_points([1, 2, 2], [1, 2, 3]), "y must be finite and x increasing"),
        (lambda: change_points([1, 2, 3], [1, 2, np.nan]), "y must be finite and x increasing"),
        (lambda: change_points([1, 2, 3], [1, 2, 3], 1), "changes=1 of 3 points must be from 0 to 0"),
        (lambda: change_points([1, 2, 3], [1, 2, 3], degree=2), "degree=2 must be 0"),
        (lambda: Trajectory(0, (0, 0), {}), "epochs of a trajectory must increase"),
        (lambda: Trajectory(0, (0, 1), {"a": (1.0,)}), "curve a has 1 values at 2 epochs"),
        (lambda: example().curve("weight_nrom"), "unknown curve 'weight_nrom'; did you mean weight_norm"),
        (lambda: example().at("weight_norm", -1), "epoch=-1 is before the first"),
    ],
)
def test_wrong_use_is_one_clear_line(call, message):
    with pytest.raises(UsageError, match=message):
        call()


def example(**changed):
    """A network that memorises by 500, generalises at 5000, and of which measures turn at 2000, 3500 and 5000."""
    epochs = np.arange(0, 10_001, 100)
    curves = {
        "train_accuracy": np.minimum(1, epochs / 500),
        "test_accuracy": np.where(epochs < 5000, 0.3, 1.0),
        "unmirrored_accuracy": np.where(epochs < 5000, 0.0, 1.0),
        "train_loss": np.exp(-0.001 * epochs) * np.where(epochs < 3500, 1.0, 0.5),
        "joint_sensitivity": np.where(epochs < 2000, epochs / 2000, 1 - (epochs - 2000) / 20_000),
        "weight_norm": np.where(epochs < 5000, 50 - epochs / 1000, 40.0),
    } | changed
    return Trajectory(7, tuple(epochs.tolist()), {name: tuple(map(float, each)) for name, each in curves.items()})


def test_lead_times_of_known_curves():
    network = example()
    assert memorisation(network) == 500
    assert onset(network) == 5000
    leads = lead_times(network)
    assert set(leads) == {"train_loss", "joint_sensitivity", "weight_norm"}
    assert leads["train_loss"] == 1500
    assert leads["joint_sensitivity"] in (2900, 3000)  # a bend, which belongs to both lines


def test_the_window_ends_where_the_network_generalises():
    """What happens long after the onset, or before memorising, is no sign of it."""
    epochs = np.arange(0, 10_001, 100)
    late = np.where(epochs < 2000, 1.0, 2.0) + np.where(epochs > 8000, 100.0, 0.0) + np.where(epochs < 400, 99.0, 0.0)
    assert lead_times(example(weight_norm=late))["weight_norm"] == 3000


def test_mirrored_pairs_are_no_generalisation():
    epochs = np.arange(0, 10_001, 100)
    network = example(test_accuracy=np.where(epochs < 5000, 0.55, 1.0))
    assert onset(network) == 5000
    plain = {name: values for name, values in network.curves.items() if name != "unmirrored_accuracy"}
    assert onset(Trajectory(7, network.epochs, plain)) == 0


def test_networks_that_do_not_generalise_or_memorise_have_no_lead():
    flat = np.zeros(101)
    assert lead_times(example(unmirrored_accuracy=flat)) == {}
    assert onset(example(unmirrored_accuracy=flat)) is None
    assert turning_point(example(train_accuracy=flat), "weight_norm") is None
    assert lead_times(example(train_accuracy=flat)) == {}
    assert turning_point(example(weight_norm=np.linspace(9, 8, 101)), "weight_norm") is None  # one straight line
    at_once = example(train_accuracy=np.where(np.arange(101) < 48, 0.0, 1.0))
    assert turning_point(at_once, "weight_norm") is None  # three points from memorising to generalising


def test_a_trajectory_survives_json():
    network = example()
    assert from_plain(Trajectory, to_plain(network), "trajectory") == network
    assert network.rounded(1).curve("weight_norm")[0] == float(f"{network.curve('weight_norm')[0]:.1g}")
