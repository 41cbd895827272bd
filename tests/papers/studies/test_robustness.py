"""Accuracy on corrupted images within a study, and correlations across networks."""

import math

import numpy as np
import pytest
import torch
from scipy import stats
from torch import nn

from jostle import data, studies
from jostle.base.errors import UsageError
from jostle.corruptions import corrupt
from jostle.studies import Context
from jostle.studies.evidence import rank_correlation
from jostle_papers import trained
from jostle_papers.trained import CorruptedImages, TrainingCell, questions
from jostle_papers.trained.records import CorruptedAccuracy
from tests.papers.studies.made_up import trained_record


@pytest.fixture(autouse=True)
def _no_other_places(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("JOSTLE_DATA", raising=False)


@pytest.fixture(autouse=True)
def float32():
    """As the runner has it."""
    torch.set_default_dtype(torch.float32)
    yield
    torch.set_default_dtype(torch.float64)


def context(folder, **changes):
    return Context(folder=folder, report=lambda state: None, **changes)


class Brightness(nn.Module):
    """Class 1 for bright images, of ten classes."""

    def __init__(self):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(()))

    def forward(self, images):
        brightness = self.gain * images.mean(dim=(1, 2, 3))
        return nn.functional.pad(torch.stack([-brightness, brightness], dim=1), (0, 8), value=-9.0)


def grey_levels(count):
    """Images of one grey each, labelled so that ``Brightness`` is always right."""
    levels = torch.linspace(-0.9, 0.9, count)
    return data.Dataset("levels", levels.view(-1, 1, 1, 1).repeat(1, 3, 32, 32), (levels > 0).long(), classes=10)


def asked(corruptions, images, count, tmp_path, **changes):
    return questions.ask_corrupted_accuracy("end", corruptions, count, images, 0, context(tmp_path, **changes))


def test_accuracy_by_severity_and_corruption_is_counted_by_hand(tmp_path):
    corruptions = CorruptedImages(names=("brightness", "contrast"), severities=(1, 5))
    images, model = grey_levels(20), Brightness()
    answer = asked(corruptions, images, 10, tmp_path).ask(model)
    assert answer.images == 10
    assert answer.clean == 1.0
    for severity in (1, 5):
        for name in ("brightness", "contrast"):
            moved = corrupt(images.inputs[:10], name, severity, 0)
            right = (model(moved).argmax(dim=1) == images.labels[:10]).float().mean().item()
            assert answer.accuracy[severity][name] == pytest.approx(right)
    assert answer.mean(["contrast"]) == 1.0  # contrast moves no grey across the middle
    assert answer.mean(["brightness"], [5]) < answer.mean(["brightness"], [1])


def test_the_key_says_all_that_decides_the_answer(tmp_path):
    images = grey_levels(20)
    kinds = [
        CorruptedImages(names=("fog",), severities=(1,)),
        CorruptedImages(names=("snow",), severities=(1,)),
        CorruptedImages(names=("fog",), severities=(2,)),
        CorruptedImages(names=("fog",), severities=(1,), source=trained.OFFICIAL),
    ]
    keys = {asked(kind, images, count, tmp_path).key for kind in kinds for count in (5, 10)}
    assert len(keys) == 8


def test_published_files_are_read_where_they_are_asked_for(tmp_path):
    place = tmp_path / "CIFAR-10-C"
    place.mkdir()
    pixels = np.lib.format.open_memmap(place / "fog.npy", "w+", np.uint8, (50_000, 32, 32, 3))  # black: right
    pixels[10_000:10_020] = 255  # at severity 2: wrong
    pixels.flush()
    np.save(place / "labels.npy", np.zeros(50_000, np.uint8))

    def answer(name):
        corruptions = CorruptedImages(names=(name,), severities=(1, 2), source=trained.OFFICIAL)
        return asked(corruptions, grey_levels(20), 20, tmp_path, data=tmp_path).ask(Brightness())

    assert answer("fog").accuracy == {1: {"fog": 1.0}, 2: {"fog": 0.0}}
    with pytest.raises(UsageError, match=r"snow\.npy"):
        answer("snow")


def test_a_study_follows_it_over_training(tmp_path):
    study = studies.get("2403.06925/figure-9")
    settings = study.scales["smoke"]
    record = study.measure(TrainingCell("vit-small", 0), settings, context(tmp_path / "cell"))
    assert len(record.measured_epochs) == settings.max_epochs + 1
    assert all(set(epoch.corrupted.accuracy) == {1, 2} for epoch in record.measured_epochs)
    assert record.corrupted == record.measured_epochs[-1].corrupted
    assert record.measured_epochs[0].corrupted.images * 5 == record.corrupted.images == 50


def test_the_share_of_accuracy_kept(tmp_path):
    cells = [TrainingCell("a", seed) for seed in range(2)]
    answers = [
        (0.8, {1: {"fog": 0.4, "snow": 0.6}, 2: {"fog": 0.2, "snow": 0.4}}),
        (0.0, {1: {"fog": 0.0, "snow": 0.0}, 2: {"fog": 0.0, "snow": 0.0}}),
    ]
    made = {
        cell.key: trained_record(corrupted=CorruptedAccuracy(images=5, clean=clean, accuracy=accuracy))
        for cell, (clean, accuracy) in zip(cells, answers, strict=True)
    }
    records = studies.Records(cells, made, trained.TrainingSettings(), "small")
    kept = trained.accuracy_kept(records, "a")
    assert kept[0] == pytest.approx(0.5)
    assert math.isnan(kept[1])
    assert trained.corrupted_accuracy(records, "a", ["fog"], [2])[0] == pytest.approx(0.2)


def test_rank_correlation_is_spearmans():
    random = np.random.default_rng(0)
    first, second = random.normal(size=(2, 12))
    second[3] = second[4]  # a tie
    assert rank_correlation(first, second).value == pytest.approx(stats.spearmanr(first, second).statistic)
    names = {f"network {i}": value for i, value in enumerate(first)}
    reverse = {name: -names[name] for name in reversed(names)}
    assert rank_correlation(names, reverse).value == pytest.approx(-1.0)
    low, high = rank_correlation(names, reverse).ends(0.95)
    assert low == -1.0 < high < -0.9
    assert rank_correlation(first, second, unit="networks").method == "Bonett and Wright, 12 networks"


@pytest.mark.parametrize("correlation", [0.0, 0.5, 0.8])
def test_rank_correlation_covers(correlation):
    random = np.random.default_rng(1)
    truth = 6 / np.pi * np.arcsin(correlation / 2)  # of normal numbers
    cover, trials = 0, 800
    for _ in range(trials):
        first, noise = random.normal(size=(2, 10))
        second = correlation * first + math.sqrt(1 - correlation**2) * noise
        low, high = rank_correlation(first, second).ends(0.9)
        cover += low <= truth <= high
    standard_error = math.sqrt(0.9 * 0.1 / trials)
    assert cover / trials > 0.9 - 0.02 - 4 * standard_error  # asymptotic: up to 0.02 short at ten things
    assert cover / trials < 0.9 + 0.04 + 4 * standard_error


@pytest.mark.parametrize(
    ("first", "second", "doubt"),
    [
        ([1.0, 2.0, 3.0, 4.0], [1.0, 2.0, 3.0, 4.0], "at least 5"),
        ([1.0, 1.0, 1.0, 1.0, 1.0], [1.0, 2.0, 3.0, 4.0, 5.0], "the same for all"),
        ([1.0, 2.0, 3.0, 4.0, math.nan], [1.0, 2.0, 3.0, 4.0, 5.0], "NaN"),
    ],
)
def test_no_correlation_where_there_is_none_to_find(first, second, doubt):
    assert doubt in rank_correlation(first, second).doubt


def test_correlated_values_must_match():
    with pytest.raises(UsageError, match="one to one"):
        rank_correlation([1.0] * 5, [1.0] * 6)
    with pytest.raises(UsageError, match="same things"):
        rank_correlation({"a": 1.0}, {"b": 1.0})
