"""Texts of about the same length share a batch, and little of what is computed is padding."""

import numpy as np
import pytest
import torch

from jostle import Embeddings, Grid, Rows, Until, Words
from jostle.sampling.plans import Batching
from jostle.tokens import Inputs

MOST_PADDING = 0.05


def question_lengths(count, seed=0):
    """Tokens of pairs of questions: skewed, most of them around 30, some of them 100."""
    lengths = np.exp(np.random.Generator(np.random.PCG64(seed)).normal(3.3, 0.4, count))
    return np.clip(np.round(lengths), 7, 128).astype(np.int64)


def texts(lengths, side="right", width=None):
    columns = np.arange(width or lengths.max())
    real = columns < lengths[:, None]
    real = real if side == "right" else real[:, ::-1]
    numbers = torch.arange(1, real.size + 1).view(real.shape)
    return Inputs({"input_ids": numbers, "attention_mask": torch.from_numpy(real.astype(np.int64))}, Words())


def batches(batching, chosen):
    """Places in ``chosen``, batch by batch."""
    order = batching.order(chosen)
    return [order[cut] for cut in batching.cuts(chosen[order])]


def share_of_padding(batching, chosen):
    computed = real = 0
    for places in batches(batching, chosen):
        mask = batching.batch(chosen[places])[0]["attention_mask"]
        computed, real = computed + mask.numel(), real + int(mask.sum())
    return 1 - real / computed


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("plan", [Grid(3), Until(half_width=0.1)])
def test_little_of_what_is_computed_is_padding(side, plan):
    inputs = texts(question_lengths(200), side, width=160)
    if isinstance(plan, Grid):
        parts = list(plan.blocks(inputs, plan.order(inputs, 0), block=16 * 128))
    else:
        parts = [
            plan.trials(inputs, 0, start, stop) for start, stop in ((0, 64), (64, 128), (1280, 1344), (1344, 9000))
        ]
    batching, whole = Batching(inputs, 128), Batching(inputs, 128)
    whole.trims = False
    for trials in parts:
        assert share_of_padding(batching, trials.inputs) <= MOST_PADDING
        assert share_of_padding(whole, trials.inputs) > 0.7
    sizes = [len(places) for trials in parts for places in batches(batching, trials.inputs)]
    assert max(sizes) <= 128
    assert np.mean(sizes) > (60 if isinstance(plan, Grid) else 30)


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("batch_size", [1, 7, 500])
def test_every_trial_is_in_one_batch_with_all_its_tokens(side, batch_size):
    inputs = texts(question_lengths(50), side)
    batching, chosen = Batching(inputs, batch_size), np.random.Generator(np.random.PCG64(1)).integers(50, size=400)
    found = batches(batching, chosen)
    assert sorted(np.concatenate(found).tolist()) == list(range(400))
    ids = inputs.ids()
    for places in found:
        batch, first = batching.batch(chosen[places])
        assert len(places) <= batch_size
        for row, text in enumerate(chosen[places]):
            real = inputs.mask[text]
            assert torch.equal(batch["input_ids"][row][batch["attention_mask"][row] == 1], ids[text][real])
            own = np.flatnonzero(real) - first
            assert torch.equal(batch["input_ids"][row, own[0] : own[-1] + 1], ids[text][real])


def test_batches_hold_at_most_so_many_tokens_and_at_least_one_text():
    inputs = texts(np.array([3] * 40 + [10] * 40 + [50] * 3))
    found = batches(Batching(inputs, 16, most_tokens=40), np.arange(83))
    assert [len(places) for places in found] == [13, 13, 13, 1, *[4] * 10, 1, 1, 1]


def test_padding_on_both_sides_is_cut_to_the_columns_in_use():
    real = np.zeros((40, 30), dtype=np.int64)
    for row in range(40):
        real[row, row % 9 : row % 9 + 5 + row % 13] = 1
    inputs = Inputs({"input_ids": torch.ones(40, 30).long(), "attention_mask": torch.from_numpy(real)}, Embeddings())
    batching = Batching(inputs, 16)
    assert inputs.padding.side == "both"
    assert share_of_padding(batching, np.arange(40)) <= MOST_PADDING


def test_inputs_that_are_no_text_keep_their_order_and_their_width():
    inputs = Inputs({"x": torch.randn(20, 6, 2), "mask": torch.arange(6) < torch.arange(20)[:, None] % 6 + 1}, Rows())
    batching, chosen = Batching(inputs, 8), np.arange(19, -1, -1)
    assert [places.tolist() for places in batches(batching, chosen)] == [
        list(range(0, 8)),
        list(range(8, 16)),
        list(range(16, 20)),
    ]
    batch, first = batching.batch(chosen[:3])
    assert (batch["x"].shape, first) == ((3, 6, 2), 0)


def test_padding_that_costs_less_than_a_batch_is_allowed():
    inputs = texts(question_lengths(300))
    chosen = np.arange(300)
    strict, free = Batching(inputs, 128), Batching(inputs, 128)
    free.free_padding = 256
    assert len(batches(free, chosen)) < len(batches(strict, chosen)) / 2
    for places in batches(free, chosen):
        mask = free.batch(chosen[places])[0]["attention_mask"]
        assert mask.numel() - int(mask.sum()) <= max(256, MOST_PADDING * mask.numel())
    assert np.sort(np.concatenate(batches(free, chosen))).tolist() == chosen.tolist()


@pytest.mark.parametrize("side", ["left", "right"])
def test_texts_a_few_columns_short_of_a_whole_lane_keep_that_padding(side):
    inputs = texts(np.arange(1, 70), side, width=70)
    batching, ids = Batching(inputs, 8), inputs.ids()
    batching.spare_columns = 4
    widths = []
    for text in range(69):
        batch, first = batching.batch(np.array([text]))
        widths.append(batch["input_ids"].shape[1])
        own = np.flatnonzero(inputs.mask[text])
        assert torch.equal(batch["input_ids"][0, own - first], ids[text, own])
        assert int(batch["attention_mask"].sum()) == len(own)
    # From 12 on 16 columns, and so on; 65 to 69 would need 80, and there are 70.
    assert widths == [16 * -(-n // 16) if n % 16 in (0, 12, 13, 14, 15) else n for n in range(1, 70)]


def test_texts_that_take_as_long_share_a_batch():
    inputs = texts(np.repeat(np.arange(25, 33), 10), width=64)
    strict, free = Batching(inputs, 128), Batching(inputs, 128)
    free.spare_columns = 4
    assert [len(places) for places in batches(free, np.arange(80))] == [30, 50]  # 25 to 27, and 28 to 32
    assert [len(places) for places in batches(strict, np.arange(80))] == [30, 40, 10]
