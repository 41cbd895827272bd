import pytest
import torch

from jostle.base import specs
from jostle.base.errors import UsageError
from jostle.tokens import VIEWS, Coordinates, Patches, Rows, Whole


def gather(view, batch, position):
    """Token ``position[i]`` of input i."""
    return view.pick(batch, torch.arange(len(batch)), position)


CASES = [
    (Coordinates(), (6,)),
    (Coordinates(), (2, 3)),
    (Rows(), (5, 4)),
    (Rows(), (5,)),
    (Patches(2), (3, 4, 6)),
    (Patches(3), (6, 3)),
    (Whole(), (3, 4, 4)),
    (Whole(), (7,)),
]


@pytest.mark.parametrize(("view", "shape"), CASES)
def test_splitting_and_joining_are_bit_exact_inverses(view, shape):
    batch = torch.randn(4, *shape)
    rebuilt = torch.full_like(batch, torch.nan)
    for position in range(view.num_tokens(shape)):
        where = torch.full((4,), position)
        view.put(rebuilt, where, gather(view, batch, where))
    assert torch.equal(rebuilt, batch)


@pytest.mark.parametrize(("view", "shape"), CASES)
def test_only_the_chosen_token_changes(view, shape):
    batch = torch.randn(8, *shape)
    where = torch.arange(8) % view.num_tokens(shape)
    changed = batch.clone()
    view.put(changed, where, gather(view, changed, where) + 1.0)
    touched = (changed != batch).flatten(1).sum(dim=1)
    size = batch[0].numel() // view.num_tokens(shape)
    assert touched.tolist() == [size] * 8
    for position in range(view.num_tokens(shape)):
        all_there = torch.full((8,), position)
        is_chosen = where == position
        before, after = gather(view, batch, all_there), gather(view, changed, all_there)
        assert torch.equal(before[~is_chosen], after[~is_chosen])
        assert torch.equal(before[is_chosen] + 1.0, after[is_chosen])


def test_patches_are_numbered_row_by_row_and_hold_all_channels():
    image = torch.arange(2 * 4 * 6, dtype=torch.float64).reshape(1, 2, 4, 6)
    token = gather(Patches(2), image, torch.tensor([4]))  # second row of patches, second column
    assert torch.equal(token[0], image[0, :, 2:4, 2:4].flatten())
    assert Patches(2).positions((2, 4, 6)) == (2, 3)


def test_tokens_are_picked_from_channels_last_images():
    image = torch.randn(3, 2, 4, 4).to(memory_format=torch.channels_last)
    where = torch.tensor([0, 1, 3])
    assert torch.equal(gather(Patches(2), image, where), gather(Patches(2), image.contiguous(), where))


def test_tokens_are_picked_from_any_input_in_any_order():
    images, chosen, where = torch.randn(5, 2, 4, 4), torch.tensor([4, 0, 4]), torch.tensor([1, 3, 2])
    expected = torch.stack(
        [gather(Patches(2), images[c : c + 1], w[None])[0] for c, w in zip(chosen, where, strict=True)]
    )
    assert torch.equal(Patches(2).pick(images, chosen, where), expected)


def test_put_is_differentiable():
    with torch.inference_mode():
        Coordinates().put(torch.randn(2, 5), torch.tensor([1, 3]), torch.randn(2, 1))
    batch, token = torch.randn(2, 5), torch.randn(2, 1, requires_grad=True)
    jostled = Coordinates().put(batch.clone(), torch.tensor([1, 3]), token)
    (jostled**2).sum().backward()
    assert torch.allclose(token.grad, 2 * token.detach())


@pytest.mark.parametrize(
    ("view", "shape", "message"),
    [
        (Patches(5), (3, 32, 32), "the side 5 must divide height 32 and width 32"),
        (Patches(4), (32,), "expected (channels, height, width) or (height, width)"),
        (Patches(4), (1, 2, 32, 32), "expected (channels, height, width)"),
        (Rows(), (), "expected (batch, tokens, dim)"),
        (Coordinates(), (), "at least one dimension"),
    ],
)
def test_inputs_that_do_not_fit_are_one_clear_line(view, shape, message):
    with pytest.raises(UsageError, match="tokens=") as error:
        view.num_tokens(shape)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("size", [0, -1, 2.0, True, "4"])
def test_patch_size_must_be_a_positive_whole_number(size):
    with pytest.raises(UsageError, match="size="):
        Patches(size)


@pytest.mark.parametrize("spec", ["patches:4", "patches:4,key=x", "rows:key=x,mask_key=m", "whole", "coordinates"])
def test_views_describe_themselves(spec):
    assert specs.build(VIEWS, spec, "tokens").describe() == spec


def test_every_view_is_registered():
    assert VIEWS.names() == ["columns", "coordinates", "embeddings", "patches", "rows", "whole", "words"]
