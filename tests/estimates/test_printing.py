import pytest
import torch

import jostle

BITS = torch.randint(2, (40, 7), generator=torch.Generator().manual_seed(0)) * 2.0 - 1.0


@pytest.mark.parametrize(("average", "plan", "has_one"), [("micro", "until:0.1", False), ("micro", "grid:1", True),
                                                          ("macro", "until:0.1", True)])  # fmt: skip
def test_an_interval_that_is_none_is_not_printed_as_one(average, plan, has_one):
    choices = {"tokens": "coordinates", "perturbation": "sign-flip", "average": average, "plan": plan}
    second = str(jostle.measure(lambda x: x.sum(dim=1), BITS, **choices)).splitlines()[1]
    assert ("no interval for the population" in second) != has_one
    assert second.endswith("with average=micro") != has_one
    assert second.startswith("  [") == has_one


def test_an_interval_that_is_none_is_none_when_it_is_read_back(tmp_path):
    choices = {"tokens": "coordinates", "perturbation": "sign-flip", "average": "micro", "plan": "until:0.1"}
    m = jostle.measure(lambda x: x.sum(dim=1), BITS, **choices)
    assert (m.dataset.is_known, m.population.is_known) == (True, False)
    m.save(tmp_path / "m.json")
    record = m.to_dict()
    del record["population"]["is_known"]  # as files were written before the key
    for read in (jostle.load(tmp_path / "m.json"), jostle.Measurement.from_dict(record)):
        assert (read.dataset.is_known, read.population.is_known) == (True, False)
        assert str(read) == str(m)


def test_measurements_and_differences_are_estimates():
    choices = {"tokens": "coordinates", "perturbation": "sign-flip"}
    both = jostle.compare({"a": lambda x: x.sum(dim=1), "b": lambda x: x[:, 0]}, BITS, **choices)
    for estimate in (both["a"], both.difference("a", "b"), both.difference("b", "a")):
        assert isinstance(estimate, jostle.Estimate)
        assert (estimate.low, estimate.high) == (estimate.interval.low, estimate.interval.high)
        assert estimate.interval is estimate.dataset


def test_what_a_console_shows_of_a_result_is_one_line_and_a_comparison_can_be_drawn():
    given = {"tokens": "coordinates", "perturbation": "gaussian-noise:1", "plan": jostle.Grid(1)}
    models = {"a": lambda x: x, "b": lambda x: -x}
    found = jostle.compare(models, torch.ones(3, 2), **given)
    assert repr(found["a"]).startswith("<Measurement of a: flip ")
    assert repr(found).startswith("<Comparison of a: flip ")
    assert "\n" not in repr(found) + repr(found["a"])
    assert found.plot().axes
    assert jostle.compare({"a": models["a"]}, torch.ones(3, 2), **given).plot().axes
