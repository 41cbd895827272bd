import pytest
import torch

import jostle
from jostle.base.errors import UsageError
from jostle.lowering import UnalignedSquares


@pytest.mark.parametrize("shape", [(2, 6, 7), (6, 7)])
@pytest.mark.parametrize("released", [False, True])
def test_squares_are_slices_of_the_image(shape, released):
    view, images = UnalignedSquares(3, released), torch.randn(4, *shape)
    rows, columns = (6 - 3, 7 - 3) if released else (6 - 2, 7 - 2)
    assert view.positions(shape) == (rows, columns)
    grid = view.grid(images)
    assert grid.data_ptr() == images.data_ptr()
    for position in range(rows * columns):
        top, left = divmod(position, columns)
        square = images[..., top : top + 3, left : left + 3]
        assert torch.equal(grid[:, top, left], square)
        chosen, places = torch.arange(4), torch.full((4,), position)
        assert torch.equal(view.pick(images, chosen, places), square.flatten(1))
        written = view.put(images.clone(), places, torch.full((4, square[0].numel()), 9.0))
        expected = images.clone()
        expected[..., top : top + 3, left : left + 3] = 9.0
        assert torch.equal(written, expected)


def test_the_released_squares_never_reach_the_last_row_and_column():
    """As drawn by randint(0, 28) for 32 x 32 and a side of 4: corners 0 .. 27."""
    released, whole = UnalignedSquares(4, released=True), UnalignedSquares(4)
    marks = torch.arange(32 * 32).view(1, 32, 32)
    reached = [set(view.grid(marks).flatten().tolist()) for view in (released, whole)]
    assert released.positions((3, 32, 32)) == (28, 28)
    assert reached[0] == set(marks[0, :31, :31].flatten().tolist())
    assert reached[1] == set(marks.flatten().tolist())


def test_a_measurement_takes_them_too():
    """A linear function feels noise in a square by the weights in it; here only the last pixel counts."""
    weights = torch.zeros(6, 6)
    weights[5, 5] = 1.0
    arguments = {"perturbation": "gaussian-noise:1", "response": "logit-change", "plan": "grid:2"}
    images = torch.randn(3, 6, 6)

    def model(x):
        return (x * weights).sum(dim=(1, 2))[:, None]

    assert jostle.measure(model, images, tokens=UnalignedSquares(3, released=True), **arguments).value == 0
    assert jostle.measure(model, images, tokens=UnalignedSquares(3), **arguments).value > 0


def test_description():
    assert UnalignedSquares(4).describe() == "unaligned-squares:4"
    assert UnalignedSquares(4, released=True).describe() == "unaligned-squares:4,released=true"


@pytest.mark.parametrize(
    ("view", "shape", "message"),
    [
        (UnalignedSquares(4), (3, 8), "height 3 and width 8 must be at least 4"),
        (UnalignedSquares(4, released=True), (4, 8), "height 4 and width 8 must be at least 5"),
        (UnalignedSquares(4), (8,), "expected"),
    ],
)
def test_images_that_are_too_small(view, shape, message):
    with pytest.raises(UsageError, match=message):
        view.positions(shape)
