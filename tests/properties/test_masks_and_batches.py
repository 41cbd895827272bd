"""Random shapes, masks and batch sizes: what may be jostled, and what the result may depend on."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import jostle
from tests.properties.checked import FEW, MODEST


@st.composite
def masked_inputs(draw):
    """Whole-number inputs (N, T, dim) and a mask (N, T) with at least one token an input."""
    count, tokens, dim = draw(st.integers(1, 9)), draw(st.integers(1, 6)), draw(st.integers(1, 3))
    numbers = draw(hnp.arrays(np.int64, (count, tokens, dim), elements=st.integers(-8, 8)))
    mask = draw(hnp.arrays(bool, (count, tokens)))
    mask[np.arange(count), draw(hnp.arrays(np.int64, count, elements=st.integers(0, tokens - 1)))] = True
    return torch.from_numpy(numbers).double(), torch.from_numpy(mask)


def exact_model(x):
    """Sums of whole numbers: no rounding, so no dependence on the order of summation."""
    weights = torch.arange(1, x[0].numel() + 1, dtype=torch.float64)
    total = (x.flatten(1) * weights).sum(dim=1)
    return torch.stack([total, x.flatten(1).sum(dim=1) * 3, -total], dim=1)


@MODEST
@given(masked_inputs(), st.integers(1, 3), st.integers(1, 20))
def test_masked_tokens_never_change_and_every_other_is_counted(case, draws, batch_size):
    inputs, mask = case
    touched = torch.zeros(mask.shape, dtype=torch.int64)

    def model(x, index, mask):
        moved = (x != inputs[index]).any(dim=2)
        assert not (moved & ~mask).any()
        assert (moved.sum(dim=1) <= 1).all()
        touched.index_add_(0, index, moved.long())
        return exact_model(x)

    m = jostle.measure(
        model,
        {"x": inputs, "index": torch.arange(len(inputs)), "mask": mask},
        tokens=jostle.Rows(key="x"),
        perturbation="gaussian-noise:1",
        plan=jostle.Grid(draws),
        batch_size=batch_size,
    )
    assert torch.equal(touched, mask * draws)
    assert m.trials == int(mask.sum()) * draws
    assert m.profile.counts.tolist() == (mask.sum(dim=0) * draws).tolist()


@FEW
@given(masked_inputs(), st.integers(1, 40), st.sampled_from(["flip", "margin", "logit-change"]))
def test_until_never_draws_a_masked_token(case, seed, response):
    inputs, mask = case
    plan = jostle.Until(half_width=0.3, max_passes=300)
    m = jostle.measure(
        exact_model,
        inputs,
        tokens="rows",
        perturbation="gaussian-noise:1",
        response=response,
        plan=plan,
        mask=mask,
        seed=seed,
    )
    assert m.profile.counts.sum() == m.trials > 0
    assert (m.profile.counts[~mask.any(dim=0).numpy()] == 0).all()
    assert m.passes <= 300


@MODEST
@given(
    masked_inputs(),
    st.sampled_from([1, 2, 4]),
    st.sampled_from(["flip", "margin", "logit-change"]),
    st.lists(st.integers(1, 200), min_size=2, max_size=2, unique=True),
)
def test_the_batch_size_changes_no_bit(case, draws, response, batch_sizes):
    inputs, mask = case
    vocabulary = torch.arange(7 * inputs.shape[2]).reshape(7, -1).double() - 9
    one, two = (
        jostle.measure(
            exact_model,
            inputs,
            tokens="rows",
            perturbation=jostle.UniformToken(vocabulary),
            response=response,
            plan=jostle.Grid(draws),
            mask=mask,
            batch_size=size,
        )
        for size in batch_sizes
    )
    assert one.value == two.value
    assert one.per_input.tolist() == two.per_input.tolist()
    assert (one.trials, one.passes) == (two.trials, two.passes)
    assert (one.profile.counts == two.profile.counts).all()
    np.testing.assert_array_equal(one.profile.values, two.profile.values)
    # Weights of 1/3 and the like are summed block by block, so the ends may differ in their last digits.
    assert (one.low, one.high) == pytest.approx((two.low, two.high), rel=1e-9, abs=1e-9)
