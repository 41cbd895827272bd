"""The page of a measurement says the numbers of the measurement."""

import pytest
import torch

import jostle
from jostle.report import recover, render, write
from jostle.report.measurement import certainty_sections, measurement_page, percent
from tests.tokens.made_up_texts import Bag, padded, sentences


@pytest.fixture(scope="module")
def comparison():
    given = padded(sentences([3, 9, 4, 14, 5, 7]))
    choices = {"tokens": jostle.Embeddings(), "perturbation": jostle.GaussianNoise(3.0), "plan": jostle.Grid(6)}
    return jostle.compare({"one": Bag(), "two": Bag(seed=4)}, given, **choices)


def test_one_model(comparison, tmp_path):
    m = comparison["one"]
    page = measurement_page(m, inputs="csv:a.csv", notes=["a note"], columns={"accuracy": {"one": "81 %"}})
    html = render(page)
    lead = page.lead.replace("\N{NO-BREAK SPACE}", " ")
    assert f"flips the prediction in {100 * m.value:.1f} % (95 % interval: {100 * m.low:.1f} % to" in lead
    assert page.meaning.startswith(
        f"Of 1,000 inputs in which one token is changed like this, about {1000 * m.value:.0f}"
    )
    assert page.meaning.count(". ") == 1  # two sentences
    for word in ("a note", "81 %", f"{m.value:.4f}", f"{m.trials:,}", "embeddings:after", "gaussian-noise:std=3"):
        assert word in html
    write(page, tmp_path / "page.html")
    assert recover(tmp_path / "page.html")["result"]["value"] == m.value


def test_the_table_of_positions_holds_all_trials(comparison):
    m = comparison["one"]
    [where] = [section for section in measurement_page(m, inputs="x").sections if section.title.startswith("Where")]
    rows = where.table.rows
    assert sum(row[-1] for row in rows) == m.trials
    whole = sum(row[1].key * row[-1] for row in rows) / m.trials
    assert whole == pytest.approx(float(m.profile.values @ m.profile.counts) / m.trials)


def test_several_models(comparison):
    page = measurement_page(comparison, inputs="x")
    assert [section.title for section in page.sections] == ["How often", "Side by side", "Where in the input"]
    assert comparison.difference("one", "two").verdict in render(page)
    least, most = sorted(("one", "two"), key=lambda name: comparison[name].value)
    assert f"the prediction of {most} most often" in page.meaning
    assert f"that of {least} least often" in page.meaning
    decided = comparison.difference("one", "two").direction != 0
    assert ("more than chance explains" in page.meaning) == decided


def test_an_exact_number_is_said_to_be_exact():
    given = padded(sentences([3, 9, 4]))
    m = jostle.measure(Bag(), given, tokens=jostle.Words(), perturbation=jostle.Deletion(), plan="grid:1")
    assert "exactly" in measurement_page(m, inputs="x").lead


def test_results_write_their_pages(comparison, tmp_path):
    comparison["one"].report(tmp_path / "one.html")
    comparison.report(tmp_path / "both.html", inputs="my texts")
    assert recover(tmp_path / "one.html")["result"]["value"] == comparison["one"].value
    assert "my texts" in (tmp_path / "both.html").read_text()


def test_patches_and_other_responses():
    images = torch.randn(6, 1, 8, 8)
    model = lambda batch: batch.flatten(1)[:, :3]  # noqa: E731
    m = jostle.measure(model, images, tokens="patches:4", perturbation="gaussian-noise:1", plan="grid:2")
    assert len(measurement_page(m, inputs="x").sections[-1].maps[0].shares) == 4
    choices = {"tokens": "whole", "perturbation": "gaussian-noise:1", "plan": "grid:2", "response": "margin"}
    page = measurement_page(jostle.measure(model, images, **choices), inputs="x")
    assert [section.title for section in page.sections] == ["How often"]  # one token has no place
    assert "mean margin" in page.lead


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "0 %"), (1.0, "100 %"), (0.996, "99.6 %"), (0.99996, "99.996 %"), (0.00123, "0.12 %"), (0.873, "87 %")],
)
def test_percent(value, text):
    assert percent(value) == text


def test_an_interval_that_is_none_is_not_shown_as_one():
    choices = {"tokens": jostle.Embeddings(), "perturbation": jostle.GaussianNoise(3.0), "average": "micro"}
    given = padded(sentences([3, 9, 4, 14, 5, 7]))
    html = render(measurement_page(jostle.measure(Bag(), given, plan="until:half_width=0.2", **choices), inputs="x"))
    assert "none with average=micro" in html
    assert "[0.0000, 1.0000]" not in html
    assert "none with" not in render(
        measurement_page(jostle.measure(Bag(), given, plan="grid:2", **choices), inputs="x")
    )


@pytest.mark.parametrize(("wrong", "is_explained"), [(1, True), (0, False)])
def test_a_word_that_does_not_occur_is_not_explained(wrong, is_explained):
    inputs = torch.linspace(-3, 3, 20)[:, None]
    labels = (inputs[:, 0] > 0).long()
    labels[:wrong] = 1
    found = jostle.measure(
        lambda x: torch.cat([-x, x], 1), inputs, tokens="coordinates", perturbation="gaussian-noise:1",
        plan=jostle.Grid(20), labels=labels,
    )  # fmt: skip
    (section,) = certainty_sections([found])
    assert any("AUROC is" in paragraph for paragraph in section.text) == is_explained
    assert "by how often" in section.table.caption
    assert not section.notes  # their colour warns, and there is nothing to warn of


def test_nothing_seen_is_not_told_of_more_than_was_tried():
    found = jostle.measure(
        lambda x: torch.cat([-x, x], 1), torch.full((5, 1), 99.0), tokens="coordinates",
        perturbation="gaussian-noise:1", plan=jostle.Grid(4), name="net",
    )  # fmt: skip
    meaning = measurement_page(found, inputs="x").meaning
    assert "In 20 trials, each with one token changed like this, no prediction of net changed." in meaning
    assert "1,000" not in meaning
