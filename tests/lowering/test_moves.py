import numpy as np
import pytest
import torch
from scipy import stats

import jostle
from jostle.base.errors import UsageError
from jostle.lowering import UnalignedSquares
from jostle.lowering.moves import TokenMover, read_batch
from jostle.tokens import Inputs
from jostle.tokens.sources import ONLY

NOISE = jostle.GaussianNoise(1.5)
CASES = {  # a view, a perturbation, a shape
    "patches": (jostle.Patches(4), NOISE, (3, 8, 12)),
    "squares": (UnalignedSquares(3), NOISE, (2, 7, 9)),
    "rows": (jostle.Rows(), NOISE, (6, 5)),
    "coordinates": (jostle.Coordinates(), jostle.SignFlip(), (9,)),
    "sphere": (jostle.Rows(), jostle.Sphere(2.0), (6, 5)),
    "vocabulary": (jostle.Coordinates(), jostle.UniformToken([5.0, 7.0]), (9,)),
    "replacement": (jostle.Rows(), jostle.ReplaceBy(3.5), (6, 5)),
}


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def moved_positions(view, before, after):
    """(inputs, tokens): which tokens changed, by cutting both batches into tokens."""
    tokens = view.num_tokens(tuple(before.shape[1:]))
    cut = [view.grid(batch).reshape(len(batch), tokens, -1) for batch in (before, after)]
    return (cut[0] != cut[1]).any(dim=2)


@pytest.mark.parametrize("case", CASES)
def test_one_token_moves_as_the_perturbation_says_and_the_rest_stays_bit_for_bit(case):
    view, perturbation, shape = CASES[case]
    before = torch.randn(50, *shape)
    kept = before.clone()
    after = TokenMover(view, perturbation).move({ONLY: before})[ONLY]
    assert torch.equal(before, kept)
    is_moved = (before != after).flatten(1)
    size = before[0].numel() // view.num_tokens(shape) if case != "squares" else 2 * 9
    assert (is_moved.sum(dim=1) == size).all()
    step = (after - before).flatten(1)[is_moved].view(50, size)
    new = after.flatten(1)[is_moved].view(50, size)
    if case == "coordinates":
        assert torch.equal(new, -before.flatten(1)[is_moved].view(50, size))
    elif case == "sphere":
        torch.testing.assert_close(step.norm(dim=1), torch.full((50,), 2.0))
    elif case == "vocabulary":
        assert set(new.flatten().tolist()) == {5.0, 7.0}
    elif case == "replacement":
        assert (new == 3.5).all()
    else:
        values = step.flatten() / 1.5
        assert abs(values.mean()) < 4 / len(values) ** 0.5
        assert abs(values.square().mean() - 1) < 4 * (2 / len(values)) ** 0.5
    if case != "squares":
        assert (moved_positions(view, before, after).sum(dim=1) == 1).all()


@pytest.mark.parametrize("case", ["patches", "squares", "rows"])
def test_every_token_is_chosen_equally_often(case):
    view, _, shape = CASES[case]
    before, counts = torch.zeros(20_000, *shape), torch.zeros(view.num_tokens(shape))
    after = TokenMover(view, NOISE).move({ONLY: before}, generator=generator())[ONLY]
    corners = view.grid(after).reshape(len(before), len(counts), -1)
    counts = (corners != 0).all(dim=2).sum(dim=0)  # only the chosen square has noise in every pixel
    assert counts.sum() == len(before)
    assert stats.chisquare(counts.numpy()).pvalue > 1e-4


def test_padding_never_moves_and_the_other_tokens_move_equally_often():
    lengths = torch.tensor([1, 3, 6]).repeat(4000)
    mask = torch.arange(6) < lengths[:, None]
    mask[2::3, 1] = False  # a hole in the middle
    before = torch.zeros(len(lengths), 6, 2)
    batch = {"inputs_embeds": before, "attention_mask": mask.long()}
    after = TokenMover(jostle.Rows(), NOISE).move(batch, generator=generator())
    moved = moved_positions(jostle.Rows(), before, after["inputs_embeds"])
    assert not (moved & ~mask).any()
    assert (moved.sum(dim=1) == 1).all()
    assert after["attention_mask"] is batch["attention_mask"]
    assert moved[0::3, 0].all()
    for kind, open_tokens in ((1, [0, 1, 2]), (2, [0, 2, 3, 4, 5])):
        assert stats.chisquare(moved[kind::3].sum(dim=0)[open_tokens].numpy()).pvalue > 1e-4


def test_a_mask_of_all_tokens_is_no_mask():
    x = torch.randn(8, 6, 2)
    mover = TokenMover("rows", NOISE)
    plain, masked = (mover.move({ONLY: x}, mask, generator())[ONLY] for mask in (None, torch.ones(8, 6)))
    assert torch.equal(plain, masked)


@pytest.mark.parametrize(
    ("batch", "view"),
    [
        ({"x": (4, 3, 2), "mask": (4, 3)}, jostle.Rows()),
        ({"inputs_embeds": (4, 3, 2), "attention_mask": (4, 3), "position_ids": (4, 3)}, jostle.Rows()),
        ({"left": (4, 3, 2), "right": (4, 5), "real": (4, 3)}, jostle.Rows(key="left", mask_key="real")),
        ({"left": (4, 3, 2), "mask": (4, 3), "attention_mask": (4, 3)}, jostle.Rows()),
    ],
)
def test_entry_and_mask_are_those_of_a_measurement(batch, view):
    tensors = {name: torch.randn(shape) for name, shape in batch.items()}
    for name in {"mask", "attention_mask", "real"} & batch.keys():
        tensors[name] = (torch.randn(batch[name]) > 0).long()
        tensors[name][:, 0] = 1
    mover, inputs = TokenMover(view, NOISE), Inputs(tensors, view)
    assert mover.key(tensors) == inputs.key
    assert (mover._own_mask(tensors).bool().numpy() == inputs.mask).all()


def test_the_whole_input_moves_but_its_padding_does_not():
    mask = torch.tensor([[1, 1, 0], [1, 0, 0]])
    before = torch.randn(2, 3, 4)
    after = TokenMover("whole", NOISE).move({"x": before, "mask": mask})["x"]
    assert torch.equal((after != before).all(dim=2), mask.bool())
    assert torch.equal((after == before).all(dim=2), ~mask.bool())


def test_gradients_reach_the_inputs():
    """Embeddings are trained, too: every number but the replaced token's passes its gradient on."""
    x = torch.randn(5, 6, 2, requires_grad=True)
    after = TokenMover("rows", jostle.ReplaceBy(0.0)).move({ONLY: x})[ONLY]
    after.sum().backward()
    assert torch.equal(x.grad, (after != 0).to(x.dtype))
    x.grad = None
    TokenMover("rows", NOISE).move({ONLY: x})[ONLY].sum().backward()
    assert torch.equal(x.grad, torch.ones_like(x))


def test_channels_stay_last_in_memory():
    x = torch.randn(4, 3, 8, 8)
    last = x.to(memory_format=torch.channels_last)
    mover = TokenMover("patches:4", NOISE)
    plain, arranged = mover.move({ONLY: x}, None, generator())[ONLY], mover.move({ONLY: last}, None, generator())[ONLY]
    assert torch.equal(plain, arranged)
    assert arranged.stride() == last.stride() != plain.stride()


@pytest.mark.parametrize(
    ("spec", "dtype"),
    [("gaussian-noise:1", torch.bfloat16), ("sphere:1", torch.float32), ("uniform-token:9", torch.int64)],
)
def test_the_type_of_the_tokens_is_kept(spec, dtype):
    before = torch.zeros(8, 5, dtype=dtype)
    assert TokenMover("coordinates", spec).move({ONLY: before})[ONLY].dtype == dtype


def test_random_numbers_come_from_torch():
    x, mover = torch.zeros(20, 6, 2), TokenMover("rows", NOISE)
    state = torch.random.get_rng_state()
    first = mover.move({ONLY: x})[ONLY]
    assert not torch.equal(torch.random.get_rng_state(), state)
    assert not torch.equal(mover.move({ONLY: x})[ONLY], first)
    torch.random.set_rng_state(state)
    assert torch.equal(mover.move({ONLY: x})[ONLY], first)
    state = torch.random.get_rng_state()
    own = mover.move({ONLY: x}, generator=generator(4))[ONLY]
    assert torch.equal(own, mover.move({ONLY: x}, generator=generator(4))[ONLY])
    assert torch.equal(torch.random.get_rng_state(), state)


@pytest.mark.parametrize(
    ("view", "perturbation", "batch", "mask", "message"),
    [
        ("patches:5", NOISE, torch.zeros(2, 3, 8, 8), None, r"tokens=patches:5 cannot cut inputs of shape \(3, 8, 8\)"),
        ("rows", NOISE, torch.zeros(2, 3, dtype=torch.int64), None, "needs real-valued tokens, but they are int64"),
        ("rows", "sign-flip", torch.zeros(2, 3, dtype=torch.int64), None, "needs real-valued tokens"),
        ("rows", "uniform-token:5", torch.zeros(2, 3, 4), None, "vocabulary of UniformToken has tokens of 1 numbers"),
        ("rows", NOISE, torch.zeros(2, 3, 4), torch.ones(2, 4), r"the mask has shape \(2, 4\), expected \(2, 3\)"),
        ("rows", NOISE, torch.zeros(2, 3, 4), torch.eye(2, 3) > 5, "2 of 2 inputs are all masked"),
        ("rows", NOISE, torch.zeros(2, 3, 4), "all", "mask of type str must be a tensor or an array"),
        ("rows", NOISE, torch.zeros(2, 3, 4), [[1], [1, 2]], "mask of type list must be a tensor or an array"),
        (
            "rows",
            NOISE,
            {"x": torch.zeros(2, 3, 4), "mask": torch.ones(2, 4)},
            None,
            r"the mask has shape \(2, 4\), expected \(2, 3\)",
        ),
        (
            jostle.Rows(mask_key="own"),
            NOISE,
            {"x": torch.zeros(2, 3, 4), "mask": torch.ones(2, 3)},
            None,
            "mask_key='own' is not an entry of the inputs: 'x', 'mask'",
        ),
        ("patches:4", NOISE, torch.zeros(2, 1, 0, 0), None, r"inputs of shape \(1, 0, 0\): they hold no numbers"),
        ("whole", NOISE, torch.zeros(2, 0), None, r"inputs of shape \(0,\): they hold no numbers"),
        ("patches:4", NOISE, torch.zeros(2, 1, 8, 8).byte(), None, r"inputs are uint8, .* inputs.float\(\) / 255"),
        ("patches:4", "sphere:1", torch.zeros(2, 1, 8, 8).byte(), None, "inputs are uint8, as images from 0 to 255"),
        ("rows", NOISE, torch.zeros(2, 3).to(torch.float8_e4m3fn), None, "inputs are torch.float8_e4m3fn"),
        ("rows", NOISE, torch.zeros(2, 3).to_sparse(), None, "inputs must be dense tensors with values"),
        ("rows", NOISE, torch.zeros(2, 3, device="meta"), None, "inputs must be dense tensors with values"),
        ("rows", NOISE, torch.zeros(3, 1, 4), torch.tensor([[1], [0], [1]]), "1 of 3 inputs are all masked .*input 1"),
        ("row", NOISE, torch.zeros(2, 3), None, "unknown token view 'row'; did you mean rows"),
        (jostle.Rows, NOISE, torch.zeros(2, 3), None, "tokens=Rows is a class"),
        (4, NOISE, torch.zeros(2, 3), None, "tokens=4 is not a token view"),
        ("rows", 1.0, torch.zeros(2, 3), None, "perturbation=1.0 is not a perturbation"),
        ("rows", NOISE, {"a": torch.zeros(2, 3), "b": torch.zeros(2, 3)}, None, "which entry of the inputs holds"),
        ("rows", NOISE, torch.zeros(0, 3), None, r"tensors of one length, at least 1, got lengths \[0\]"),
        ("rows", NOISE, {"x": torch.zeros(2, 3), "mask": torch.ones(3, 3)}, None, r"of one length.* \[2, 3\]"),
        ("rows", NOISE, torch.tensor(1.0), None, "of one length, at least 1"),
        ("rows", NOISE, [1.0, 2.0], None, "inputs of type list are no batch"),
        ("rows", NOISE, {"x": [1.0]}, None, "inputs of type dict are no batch: .* under names, and 'x' is not"),
        ("rows", NOISE, {1: torch.zeros(2, 3)}, None, "inputs of type dict are no batch: .* and 1 is not"),
    ],
)
def test_what_cannot_be_jostled_is_one_clear_line(view, perturbation, batch, mask, message):
    with pytest.raises(UsageError, match=message) as caught:
        TokenMover(view, perturbation).move(read_batch(batch), mask)
    assert "\n" not in str(caught.value)


def test_masks_may_be_lists_or_arrays():
    x, mask = torch.zeros(4, 3), [[0, 1, 0]] * 4
    for given in (mask, np.array(mask), torch.tensor(mask)):
        moved = TokenMover("rows", NOISE).move({ONLY: x}, given)[ONLY]
        assert (moved != 0).nonzero()[:, 1].tolist() == [1] * 4


def test_a_first_input_that_is_all_masked_is_counted_among_all():
    mask = torch.tensor([[0, 0, 0], [1, 1, 1], [0, 0, 0]])
    for batch, given in (({ONLY: torch.zeros(3, 3)}, mask), ({"x": torch.zeros(3, 3), "mask": mask}, None)):
        with pytest.raises(UsageError, match=r"2 of 3 inputs are all masked \(first: input 0\)"):
            TokenMover("rows", NOISE).move(batch, given)


def test_a_seed_is_no_generator():
    with pytest.raises(UsageError, match=r"generator=3 must be a torch.Generator, or None after torch.manual_seed"):
        TokenMover("rows", NOISE).move({ONLY: torch.zeros(2, 3)}, generator=3)
