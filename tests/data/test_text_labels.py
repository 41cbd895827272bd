"""Labels of a file as the classes of a model, and files without labels."""

from pathlib import Path

import pytest

from jostle.base.errors import UsageError
from jostle.data.text_csv import load_csv, load_options
from jostle.data.text_tables import number_labels


def label(written, names=()):
    return number_labels(written, Path("a.csv"), "stars", names)


def test_names_of_the_model_decide_whatever_their_case():
    assert label(["Bad", "good", "BAD"], ["GOOD", "bad"]) == ([1, 0, 1], 2, "")
    assert label(["Bad", "good", "BAD"])[0] != [1, 0, 1]  # sorted otherwise


def test_numbers_are_numbers_of_classes():
    assert label(["0", "2"], ["a", "b", "c", "d"]) == ([0, 2], 4, "")
    with pytest.raises(UsageError, match="has a label 4, the model has classes 0 to 3"):
        label(["0", "4"], ["a", "b", "c", "d"])


def test_classes_that_nobody_named_take_words_in_their_order():
    assert label(["pos", "neg"], ["LABEL_0", "LABEL_1"]) == ([1, 0], 2, "labels: 0 = neg, 1 = pos")
    assert label(["-1", "1"], ["LABEL_0", "LABEL_1"]) == ([0, 1], 2, "labels: 0 = -1, 1 = 1")
    with pytest.raises(UsageError, match="holds 3 labels, the model has 2 classes"):
        label(["pos", "neg", "so"], ["LABEL_0", "LABEL_1"])


def test_a_word_that_is_no_name_is_an_error_that_lists_the_names():
    with pytest.raises(UsageError, match=r"'stars' holds the label 'neg', the model's classes are bad, good: write"):
        label(["neg", "good"], ["bad", "good"])


def test_texts_without_labels(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("text,label\none,\ntwo,7\n", encoding="utf-8")
    dataset = load_csv(path, label=None)
    assert (dataset.texts, dataset.labels.tolist(), dataset.classes) == ((("one",), ("two",)), [0, 0], 1)
    assert dataset.note == "one file without splits; no labels"
    assert load_options(str(path), "train", {"label": None}).texts == dataset.texts
    with pytest.raises(UsageError, match="row 1, column 'label': empty"):
        load_csv(path)
