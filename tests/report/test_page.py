import pytest

from jostle.base.errors import UsageError
from jostle.report import Entry, Section, Table


def test_cells_know_their_text_and_their_key():
    (row,) = Table(["a", "b", "c", "d"], [["vit", -0.0123456, 12345, Entry("12 %", 0.12)]]).entries()
    assert [cell.text for cell in row] == ["vit", "−0.01235", "12,345", "12 %"]
    assert [cell.key for cell in row] == ["vit", -0.0123456, 12345, 0.12]
    assert [cell.is_number for cell in row] == [False, True, True, True]


def test_a_column_of_numbers_may_have_empty_cells_but_no_words():
    rows = [["vit", 1, 1.0, Entry("")], ["cnn", Entry(""), "none", Entry("")]]
    assert Table(["a", "b", "c", "d"], rows).numeric() == [False, True, False, False]
    assert Table(["a", "b"], []).numeric() == [False, False]


def test_a_row_that_does_not_fit_is_refused():
    with pytest.raises(UsageError, match="row 1 of the table has 1 entries for 2 columns"):
        Table(["a", "b"], [["x", 1], ["y"]])


def test_one_paragraph_may_be_given_as_text():
    section = Section("Result", "One paragraph.", notes="One note.")
    assert (section.text, section.notes) == (("One paragraph.",), ("One note.",))


def test_alt_text_falls_back_on_title_and_caption():
    assert Section("Result", caption="Flips.").alt_text == "Result: Flips."
    assert Section("Result", caption="Flips.", alt="A rising line.").alt_text == "A rising line."


def test_a_tone_is_one_of_few():
    assert Entry("AGREES", tone="good").tone == "good"
    with pytest.raises(UsageError, match="unknown tone 'green'"):
        Entry("AGREES", tone="green")
