import pytest
import torch

import jostle
from jostle.base.errors import UsageError
from jostle.probe import MEASURES, Probe, register
from jostle.probe.measures import columns_of, logit_margin
from tests.probe.toys import CHOICES, everything, network, points, same, train


@pytest.mark.parametrize("name", MEASURES.names())
def test_every_registered_measure_gives_finite_numbers_twice_the_same_and_leaves_the_model(name):
    model = network()
    optimizer = train(model, steps=3)
    before = everything(model, optimizer)
    copies = {"tensors": [tensor.clone() for tensor in before["tensors"]], "others": before["others"]}
    probe = Probe(points(30), **CHOICES, every=1, share=None, measures=[name])
    first, second = probe(model, 0), probe(model, 1)
    own = {key: number for key, number in first.items() if key.split(".")[0] == name}
    assert own
    assert all(torch.tensor(number).isfinite() for number in own.values())
    assert first == second
    assert same(everything(model, optimizer), copies)
    assert len(MEASURES.get(name).__doc__) > 40


def test_the_margin_is_the_distance_of_the_two_largest_logits():
    inputs = torch.randn(300, 4)
    expected = sum(sorted(row)[-1] - sorted(row)[-2] for row in inputs.tolist()) / 300
    assert logit_margin(lambda x: x, inputs) == pytest.approx(expected)
    assert logit_margin(lambda x: x[:, 0], inputs) == pytest.approx(inputs[:, 0].abs().mean().item())
    assert logit_margin(lambda x: x[:, :1], inputs) == pytest.approx(inputs[:, 0].abs().mean().item())
    assert logit_margin(lambda x: x, {"x": inputs}) == pytest.approx(expected)
    with pytest.raises(UsageError, match=r"logit-margin needs logits of shape \(batch, classes\), not \(128, 2, 2\)"):
        logit_margin(lambda x: x.reshape(-1, 2, 2), inputs)


def test_sharpness_is_the_landscapes():
    model, data = network().eval(), points(30)
    row = Probe(data, **CHOICES, measures={"flatness": "sharpness"})(model, 0)
    found = jostle.landscape.sharpness(model, data.inputs)
    assert row["flatness.output"] == found.output.value
    assert (row["flatness.prediction.low"], row["flatness.prediction.high"]) == (
        found.prediction.low,
        found.prediction.high,
    )


def test_a_measure_of_ones_own_has_a_name_like_any_other(monkeypatch):
    monkeypatch.setattr(MEASURES, "_things", dict(MEASURES._things))

    @register("gradient-norm")
    def gradient_norm(model, inputs):
        model(inputs).square().mean().backward()
        return sum(parameter.grad.square().sum() for parameter in model.parameters()).sqrt()

    model = network()
    row = Probe(points(30), **CHOICES, measures={"gradient-norm"})(model, 0)
    assert row["gradient-norm"] > 0
    assert all(parameter.grad is None for parameter in model.parameters())


def test_records_become_columns():
    interval = jostle.Interval(0.25, 0.75, 0.95, "dataset", "exact")
    assert columns_of("m", {"a": 1, "b": {"c": torch.tensor(2)}}) == {"m.a": 1.0, "m.b.c": 2.0}
    with pytest.raises(UsageError, match=r"measure 'm\.a' answered with a Interval"):
        columns_of("m", {"a": interval})  # ends without a value
