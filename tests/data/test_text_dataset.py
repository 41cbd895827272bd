import numpy as np
import pytest
import torch

from jostle.base.errors import UsageError
from jostle.data import TextDataset


def numbered(labels, classes=3, width=1, **fields):
    """Texts that say which row they are."""
    texts = tuple(tuple(f"text {part} of row {row}" for part in "ab"[:width]) for row in range(len(labels)))
    return TextDataset("made-up", texts, torch.tensor(labels), classes, **fields)


def rows_of(dataset):
    return [int(texts[0].split()[-1]) for texts in dataset.texts]


def test_subsets_are_those_of_datasets_of_images():
    from jostle.data import Dataset

    labels = torch.arange(40) % 3
    texts, numbers = numbered(labels.tolist()), Dataset("made-up", torch.arange(40)[:, None], labels, 3)
    for options in (
        {},
        {"n": 7},
        {"n": 9, "seed": 4},
        {"n": 9, "balanced": True},
        {"n": 10, "seed": 0, "balanced": True},
    ):
        some, same = texts.subset(**options), numbers.subset(**options)
        assert rows_of(some) == same.inputs[:, 0].tolist()
        assert torch.equal(some.labels, same.labels)
        assert (some.name, some.classes, some.split) == ("made-up", 3, "train")


@pytest.mark.parametrize("rows", [slice(1, 3), np.array([4, 0, 4])])
def test_taking_rows_keeps_texts_and_labels_together(rows):
    dataset = numbered([0, 1, 2, 1, 0], split="test", note="a note").take(rows)
    wanted = np.arange(5)[rows].tolist()
    assert rows_of(dataset) == wanted
    assert dataset.labels.tolist() == [[0, 1, 2, 1, 0][row] for row in wanted]
    assert (dataset.split, dataset.note) == ("test", "a note")


def test_relabelling_keeps_the_texts():
    dataset = numbered([0, 1, 2, 1], width=2)
    merged = dataset.relabelled([1, 0, 1], "merged")
    assert (merged.labels.tolist(), merged.classes, merged.name) == ([1, 0, 1, 0], 2, "merged")
    assert merged.texts == dataset.texts
    assert merged.width == 2


@pytest.mark.parametrize("new_labels", [[0, 1], [0, 1, -1], [0, 1, 0.5]])
def test_bad_new_labels(new_labels):
    with pytest.raises(
        UsageError, match="must give a whole number of at least 0 for each of the 3 classes of 'made-up'"
    ):
        numbered([0, 1, 2]).relabelled(new_labels, "merged")


@pytest.mark.parametrize(
    ("texts", "labels", "message"),
    [
        ((), [], "'made-up' holds no examples"),
        (("bare",), [0], r"texts\[0\]='bare' must be a tuple of one or two texts, for example \('a text',\)"),
        ((("a",), ["b"]), [0, 1], r"texts\[1\]=\['b'\] must be a tuple"),
        ((("a",), ("b", 3)), [0, 1], r"texts\[1\]=\('b', 3\) must be a tuple"),
        ((("a", "b", "c"),), [0], "must be a tuple of one or two texts"),
        (((),), [0], "must be a tuple of one or two texts"),
        ((("a",), ("b", "c")), [0, 1], r"texts\[1\] has 2 texts where texts\[0\] has 1"),
        ((("a",), ("b",)), [0], r"one whole-number label for each text, got 2 texts, labels \(1,\)"),
        ((("a",), ("b",)), [0.0, 1.0], "labels .* of torch.float"),
        ((("a",), ("b",)), [0, 2], "labels from 0 to 2; with classes=2 they must lie in 0 to 1"),
        ((("a",), ("b",)), [0, -1], "labels from -1 to 0"),
    ],
)
def test_what_does_not_fit_is_one_line(texts, labels, message):
    with pytest.raises(UsageError, match=message) as caught:
        TextDataset("made-up", texts, torch.tensor(labels), 2)
    assert "\n" not in str(caught.value)


def test_a_long_text_is_not_printed_whole():
    with pytest.raises(UsageError) as caught:
        TextDataset("made-up", ("word " * 10_000,), torch.tensor([0]), 2)
    assert len(str(caught.value)) < 200


def test_whoever_takes_texts_for_numbers_is_told_what_to_do():
    with pytest.raises(
        UsageError, match=r"'made-up' holds texts, not numbers; encode them first: jostle.data.encode\("
    ):
        _ = numbered([0]).inputs


def test_empty_texts_emoji_and_repeats_are_texts():
    texts = (("",), ("   ",), ("\U0001f600",), ("same",), ("same",))
    assert TextDataset("odd", texts, torch.zeros(5, dtype=torch.int64), 1).texts == texts
