"""Reports in a real browser, at the width of a desk and of a phone."""

import re

import numpy as np
import pytest
import torch

import jostle
from jostle.estimates.request import Request
from jostle.perturbations import GaussianNoise
from jostle.report import Page, Passage, Section, Token, recover, write
from jostle.report.images import image_examples
from jostle.report.measurement import measurement_page
from jostle.tokens import Patches

EVIL = "<script>alert('x')</script><img src=x onerror=\"alert(1)\">"
DEVICES = ["desktop", "phone"]


class Corner(torch.nn.Module):
    """Class 1 where the first patch is bright."""

    def __init__(self, bound):
        super().__init__()
        self.bound = bound

    def forward(self, images):
        above = images[:, 0, :4, :4].sum(dim=(1, 2)) - self.bound
        return torch.stack([-above, above], dim=1)


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """A comparison of two models with awkward names on images, with examples; and where its page is."""
    images = torch.randn(40, 1, 16, 16, generator=torch.Generator().manual_seed(0))
    models = {f"vit {EVIL}": Corner(2.0), "cnn": Corner(8.0)}
    request = Request.build(tokens=Patches(4), perturbation=GaussianNoise(3.0))
    found = jostle.compare(models, images, tokens=Patches(4), perturbation=GaussianNoise(3.0), plan="grid:4")
    names = dict.fromkeys(models, (EVIL, f"bright {EVIL}"))
    shown = image_examples(
        models, images, request, np.arange(40.0), [EVIL] * 40, count=3, draws=10, classes=names
    )  # fmt: skip
    texts = Section(
        "Texts", passages=[Passage([Token(EVIL, 0.5, f"flips to {EVIL}")], EVIL)], legend=[Token(EVIL, 0.5)]
    )
    page = measurement_page(
        found, inputs=EVIL, examples=[*shown.sections, texts], notes=[EVIL], command=f"jostle compare {EVIL}"
    )
    path = tmp_path_factory.mktemp("report") / "report.html"
    write(page, path)
    return found, path


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("device", DEVICES)
def test_a_report_is_readable_and_its_numbers_are_those_of_the_record(report, opened, looked_at, device, dark):
    _, path = report
    page = opened(path.as_uri(), device, dark)
    width = page.evaluate("document.documentElement.clientWidth")
    assert page.evaluate("document.documentElement.scrollWidth") <= width  # nothing is cut on the right
    record = recover(path)["result"]
    shown = page.locator("#s-how-often tbody tr").all()
    for row, measured in zip(shown, record["measurements"], strict=True):
        cells = row.locator("th, td")
        assert measured["name"] in cells.nth(0).inner_text()
        assert f"{measured['value']:.4f}" in cells.nth(1).inner_text()
        ends = measured["dataset"]
        assert f"[{ends['low']:.4f}, {ends['high']:.4f}]" in cells.nth(2).inner_text()
    assert page.locator("svg:visible").count() == 1  # the differences: wide, or made for a phone
    text = page.locator("svg:visible text").first.bounding_box()
    assert text["height"] >= 9  # pixels: letters that can be read
    assert page.locator("#s-where .squares").count() == 2
    assert page.locator("#s-close-calls .over i").count() == 2 * 16
    paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (sum(map(int, re.findall(r"\d+", paper)[:3])) < 200) == dark
    page.screenshot(path=looked_at("page"), full_page=True)


def test_tables_are_sorted_by_mouse_and_keyboard(report, opened):
    page = opened(report[1].as_uri())
    rows = page.locator("#s-how-often tbody tr th")
    head = page.locator("#s-how-often thead th").nth(1)
    values = {m.name: m.value for m in report[0].measurements.values()}
    ascending = sorted(values, key=values.get)
    head.locator("button").click()
    assert rows.all_inner_texts() == ascending
    assert head.get_attribute("aria-sort") == "ascending"
    head.locator("button").focus()
    page.keyboard.press("Enter")
    assert rows.all_inner_texts() == ascending[::-1]
    assert head.get_attribute("aria-sort") == "descending"


def test_pointing_at_a_square_tells_its_number_and_what_it_flips_to(report, opened):
    found, path = report
    page = opened(path.as_uri())
    first = found["cnn"].profile
    square = page.locator("#s-where .map").nth(1).locator("i").first
    square.hover()
    value, low, high = (f"{part[0]:.4f}" for part in (first.values, first.low, first.high))
    assert square.get_attribute("title").endswith(f"{value} [{low}, {high}], {first.counts[0]} trials")
    assert page.evaluate("(one) => getComputedStyle(one).outlineStyle", square.element_handle()) == "solid"
    hints = page.locator("#s-close-calls .over i").evaluate_all("(all) => all.map((one) => one.title)")
    assert any(f"most to bright {EVIL}" in hint for hint in hints)


def test_what_people_name_stays_text(report, opened):
    page = opened(report[1].as_uri())
    assert page.locator("script").count() == 2  # the data and our own
    assert page.locator("img[onerror]").count() == 0
    assert page.locator("h3, .name", has_text=EVIL).count() >= 1
    assert EVIL in page.locator(".passage").first.inner_text()
    assert EVIL in page.locator("pre").inner_text()
    assert page.title() == "Jostle one token: does the prediction hold?"


@pytest.mark.parametrize("device", DEVICES)
def test_contents_lead_to_their_sections(report, opened, device):
    page = opened(report[1].as_uri(), device)
    page.locator("nav a", has_text="Close calls").click()
    assert page.evaluate("location.hash") == "#s-close-calls"
    top = page.locator("#s-close-calls").bounding_box()["y"]
    page.wait_for_timeout(700)  # a page scrolls smoothly
    assert page.locator("#s-close-calls").bounding_box()["y"] <= max(top, 0) + 900


def test_a_page_of_nothing_loads(opened, tmp_path):
    write(Page("T", "", [Section("A")]), tmp_path / "page.html")
    assert opened((tmp_path / "page.html").as_uri()).locator("h2").inner_text() == "A"
