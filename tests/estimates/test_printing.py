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
