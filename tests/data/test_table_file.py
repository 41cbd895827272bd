"""Tables in csv files: numbers, words, labels; large files are read row by row."""

import numpy as np
import pytest
import torch

import jostle
from jostle.base.errors import UsageError
from jostle.data import table_file
from jostle.data.table_file import TableFile, is_table, load_table

ROWS = "length,width,species\n5.1,3.5,setosa\n7,3.2,virginica\n4.9,3,setosa\n"


@pytest.fixture
def flowers(tmp_path):
    path = tmp_path / "flowers.csv"
    path.write_text(ROWS)
    return path


@pytest.fixture
def large(monkeypatch):
    """Every file is a large one."""
    monkeypatch.setattr(table_file, "LARGE", 0)


def test_a_table_and_its_labels(flowers):
    table, labels, notes = load_table(flowers, label="species")
    assert table.names == ("length", "width")
    assert table.inputs.tolist() == [[5.1, 3.5], [7.0, 3.2], [4.9, 3.0]]
    assert labels.tolist() == [0, 1, 0]
    assert "setosa" in notes[0]
    assert len(load_table(flowers, label="species", limit=2)[0]) == 2
    assert load_table(flowers, label="species", names=("virginica", "setosa"))[1].tolist() == [1, 0, 1]


def test_words_are_categories_of_a_frame(flowers):
    pytest.importorskip("pandas", reason="pandas is not installed")
    table, labels, _ = load_table(flowers)
    assert labels is None
    assert table.columns[2].categories == ("setosa", "virginica")
    frame = table.framed(table.inputs[:2])
    assert frame["species"].tolist() == ["setosa", "virginica"]


@pytest.mark.usefixtures("large")
def test_a_large_file_is_read_row_by_row_and_gives_the_same_numbers(flowers, monkeypatch):
    table, labels, _ = load_table(flowers, label="species")
    assert isinstance(table, TableFile)
    assert torch.stack([table[row] for row in range(3)]).tolist() == [[5.1, 3.5], [7.0, 3.2], [4.9, 3.0]]
    assert labels.tolist() == [0, 1, 0]
    assert len(table[:2]) == 2
    choices = {"tokens": "columns", "perturbation": "gaussian-noise:std=1", "plan": jostle.Grid(4)}
    model = lambda x: x[:, 0] - 5.5 + 0.1 * x[:, 1]  # noqa: E731
    m = jostle.measure(model, table, **choices)
    monkeypatch.setattr(table_file, "LARGE", 10**9)
    whole = jostle.measure(model, load_table(flowers, label="species")[0], **choices)
    assert m.profile.names == whole.profile.names == ("length", "width")
    assert (m.profile.values == whole.profile.values).all()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a,b\n1,2\n3\n", "row 2 has 1 columns where the line of names has 2"),
        ("a,b\n1,2\n3,\n", "column 'b' has 1 missing or infinite values (first: row 1)"),
        ("a,b\n", "holds no rows below its line of names"),
        ("label\n1\n", "holds labels and no other column"),
        ("a,a\n1,2\n", "has two columns of one name"),
    ],
)
def test_bad_tables_are_one_line(tmp_path, text, said):
    path = tmp_path / "t.csv"
    path.write_text(text)
    with pytest.raises(UsageError) as caught:
        load_table(path)
    assert said in str(caught.value)


@pytest.mark.usefixtures("large")
def test_words_of_a_large_file_are_one_line(flowers):
    with pytest.raises(UsageError, match=r"row 1, column 'species': 'setosa' is no number"):
        load_table(flowers)


def test_what_is_a_table(flowers, tmp_path):
    assert is_table(flowers)
    texts = tmp_path / "texts.csv"
    texts.write_text("text,stars\na good film,5\n")
    assert not is_table(texts)
    with pytest.raises(UsageError, match="unknown column of"):
        load_table(flowers, label="specie")
    assert np.isfinite(load_table(flowers, label="species")[0].inputs.numpy()).all()
