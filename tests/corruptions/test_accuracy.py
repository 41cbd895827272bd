import numpy as np
import pytest
import torch
from torch import nn

from jostle.base.errors import FailureError, UsageError
from jostle.corruptions import accuracy_under, corrupt, names
from tests.corruptions.pictures import natural

IMAGES = torch.from_numpy(natural(20, channels=1, height=12, width=12, seed=3)) * 2 - 1
LABELS = torch.arange(20) % 3


def logits_of(answers):
    return nn.functional.one_hot(torch.as_tensor(answers), 3).double()


def brightest_third(x):
    """Which third of the image is brightest: a classifier that corruptions can mislead."""
    return torch.stack([part.mean(dim=(1, 2, 3)) for part in x.split(4, dim=2)], dim=1)


def test_a_perfect_classifier_has_accuracy_1():
    """It knows every image by heart, whatever is done to it: it is asked about them in order."""
    seen = iter([])

    def perfect(x):
        nonlocal seen
        answers = [next(seen, None) for _ in x]
        if answers[0] is None:
            seen = iter(LABELS.tolist())
            answers = [next(seen) for _ in x]
        return logits_of(answers)

    result = accuracy_under(perfect, IMAGES, LABELS, severities=(1, 2, 3, 4, 5), batch_size=20)
    assert result.correct.all()
    assert result.correct.shape == (15, 5, 20)
    low = 0.025 ** (1 / 20)  # Clopper-Pearson, 20 of 20
    for found in (result.mean, result.clean, result.accuracy("fog", 5), result.family("noise")):
        assert (found.value, found.high) == (1.0, 1.0)
        assert found.low == pytest.approx(low)
    assert result.mean_corruption_error().value == 0.0


def test_every_cell_is_the_accuracy_on_the_images_that_corrupt_makes():
    labels = brightest_third(IMAGES).argmax(dim=1)
    chosen = ["gaussian_noise", "contrast", "motion_blur", "spatter"]
    result = accuracy_under(brightest_third, IMAGES, labels, chosen, severities=(5, 1), seed=4, batch_size=7)
    assert (result.names, result.severities) == (tuple(chosen), (5, 1))
    assert result.clean.value == 1.0
    for name in chosen:
        for severity in (5, 1):
            answers = brightest_third(corrupt(IMAGES, name, severity, seed=4)).argmax(dim=1)
            assert result.accuracy(name, severity).value == (answers == labels).double().mean().item()
    assert result.mean.value < 1
    assert result.mean.value == pytest.approx(result.correct.mean())
    again = accuracy_under(brightest_third, IMAGES, labels, chosen, severities=(5, 1), seed=4, batch_size=500)
    assert (again.correct == result.correct).all()


@pytest.mark.parametrize("shape", [(-1,), (-1, 1)])
def test_one_logit_is_two_classes(shape):
    labels = (IMAGES.mean(dim=(1, 2, 3)) > 0).long()
    result = accuracy_under(lambda x: x.mean(dim=(1, 2, 3)).reshape(shape), IMAGES, labels, "contrast", [1])
    assert result.mean.value == 1.0


def test_arrays_and_bytes():
    pixels = ((IMAGES.numpy() + 1) * 127.5).round().astype(np.uint8)
    kinds = set()

    def model(x):
        kinds.add((type(x), x.dtype))
        return brightest_third(x.double())

    result = accuracy_under(model, pixels, LABELS.numpy().astype(np.uint8), ["fog"], [2])
    assert kinds == {(torch.Tensor, torch.uint8)}
    assert len(result.clean_correct) == 20


def test_modules_are_put_in_eval_mode_and_back_part_by_part():
    network = nn.Sequential(nn.Flatten(), nn.Dropout(0.5), nn.Linear(144, 3))
    network[2].eval()
    modes = []
    network.register_forward_hook(lambda *_: modes.append([part.training for part in network.modules()]))
    first, second = (accuracy_under(network, IMAGES, LABELS, "noise", [1]) for _ in range(2))
    assert (first.correct == second.correct).all()
    assert not np.any(modes)
    assert [network.training, network[1].training, network[2].training] == [True, True, False]
    assert all(parameter.grad is None for parameter in network.parameters())

    def fails(*_):
        raise RuntimeError("no")

    network.register_forward_hook(fails)
    with pytest.raises(RuntimeError, match="no"):
        accuracy_under(network, IMAGES, LABELS, "noise", [1])
    assert [network.training, network[2].training] == [True, False]


def test_progress_counts_images():
    states = []
    accuracy_under(brightest_third, IMAGES, LABELS, ["fog", "snow"], [1, 2], progress=states.append)
    assert [state.passes for state in states] == [20, 40, 60, 80, 100]
    assert (states[-1].share, states[-1].unit) == (1.0, "images")


def test_families_and_default():
    result = accuracy_under(brightest_third, IMAGES[:2], LABELS[:2])
    assert (result.names, result.severities) == (tuple(names("common")), (1, 2))
    assert list(result.families()) == ["noise", "blur", "weather", "digital"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"corruptions": []}, "corruptions is empty"),
        ({"corruptions": "nois"}, "unknown corruption or family 'nois'; did you mean noise"),
        ({"corruptions": ["fogg"]}, "unknown corruption 'fogg'"),
        ({"corruptions": "fogg"}, "unknown corruption or family 'fogg'; did you mean fog"),
        ({"corruptions": None}, "corruptions=None must be names or a family"),
        ({"corruptions": ["fog", 3]}, "name=3 must be the name of a corruption"),
        ({"severities": None}, "severities must be a list, got None; write [1, 2]"),
        ({"severities": 1.5}, "severities must be a list, got 1.5; write [1, 2]"),
        ({"severities": "1"}, "severities must be a list, got '1'"),
        ({"seed": None}, "seed=None must be a whole number"),
        ({"value_range": (1, -1)}, "value_range=(1, -1) must be the values"),
        ({"level": "95"}, "level='95' must be a finite number above 0"),
        ({"labels": [[1], [1, 2]]}, "labels must be 20 whole numbers"),
        ({"labels": None}, "labels must be 20 whole numbers"),
        ({"labels": LABELS - 1}, "labels go down to -1; give the class of each image, from 0"),
        ({"labels": LABELS + 1}, "labels go up to 3, but the model answers with 3 classes; give labels from 0"),
        ({"model": lambda x: x.mean(dim=(1, 2, 3))}, "labels go up to 2, but the model answers with a single logit"),
        ({"model": None}, "model of type NoneType cannot be called"),
        ({"severities": []}, "must be from 1 to 5, at least one"),
        ({"severities": [0, 1]}, "clean images are always in the result"),
        ({"severities": [6]}, "severity=6 must be a whole number from 0 to 5"),
        ({"severities": 2}, "severities must be a list, got 2; write [2]"),
        ({"labels": LABELS[:4]}, "labels must be 20 whole numbers"),
        ({"labels": LABELS.double()}, "labels must be 20 whole numbers"),
        ({"images": IMAGES[:0], "labels": LABELS[:0]}, "images are empty"),
        ({"images": IMAGES * 9}, "outside of value_range"),
        ({"level": 95}, "level=95 must be a finite number above 0"),
        ({"batch_size": 0}, "batch_size=0 must be a whole number, at least 1"),
        ({"model": lambda x: x}, "the model answered 20 images with shape (20, 1, 12, 12)"),
        ({"model": lambda x: brightest_third(x) * np.nan}, "not finite"),
    ],
)
def test_wrong_use_is_one_clear_line(changes, message):
    given = {"model": brightest_third, "images": IMAGES, "labels": LABELS, "corruptions": ["fog"], **changes}
    with pytest.raises(UsageError) as caught:
        accuracy_under(**given)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_doubtful_range_is_warned_about_once():
    with pytest.warns(UserWarning, match="none of 20 images has a value below 0") as caught:
        accuracy_under(brightest_third, IMAGES.abs(), LABELS, ["fog", "snow"], [1, 2], batch_size=9)
    assert [warning.filename for warning in caught] == [__file__]


def test_a_model_that_cannot_answer_is_one_clear_line():
    model = nn.Sequential(nn.Flatten(), nn.Linear(144, 3)).float()
    with pytest.raises(FailureError, match=r"the inputs are torch.float64, the model is torch.float32"):
        accuracy_under(model, IMAGES.double(), LABELS, ["fog"], [1])
