import re
import subprocess
import sys
import xml.etree.ElementTree as ET

import matplotlib
import pytest

from jostle.base.errors import UsageError
from jostle.figures import Series, curves, save, svg
from jostle.figures.output import prefix_ids

IDS = re.compile(r'\bid="([^"]+)"')
REFERENCES = re.compile(r'url\(#([^)]+)\)|href="#([^"]+)"')


def figure(name="vit", last=2.0):
    return curves(
        [Series(name, [1, 2], [0.5, last], [0.4, last - 0.1], [0.6, last + 0.1]), Series("cnn", [1, 2], [1, 1])],
        x_label="step",
        y_label="flip rate",
    )


def test_the_same_figure_gives_the_same_text_whatever_the_settings():
    with matplotlib.rc_context({"svg.fonttype": "path", "font.size": 20, "svg.hashsalt": "other"}):
        other = svg(figure())
    assert svg(figure()) == other


def test_the_same_figure_gives_the_same_text_in_another_process():
    script = "from jostle.figures import *; print(svg(curves([Series('a', [1, 2], [3, 4])], x_label='x', y_label='y')))"
    here = svg(curves([Series("a", [1, 2], [3, 4])], x_label="x", y_label="y"))
    there = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert there.strip() == here


def test_rendering_twice_gives_the_same_text():
    one = figure()
    assert svg(one) == svg(one)


def test_svg_is_one_bare_element():
    text = svg(figure())
    assert text.startswith("<svg ")
    assert text.endswith("</svg>")
    assert "<style" not in text  # it would apply to the whole page
    assert "<metadata" not in text
    assert set(re.findall(r"https?://[^\"]*", text)) == {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}
    ET.fromstring(text)


def test_every_reference_has_its_id_and_every_id_is_used():
    text = svg(figure())
    ids, references = IDS.findall(text), {a or b for a, b in REFERENCES.findall(text)}
    assert len(ids) == len(set(ids)) > 0
    assert set(ids) == references


def test_different_figures_share_no_ids():
    assert not set(IDS.findall(svg(figure()))) & set(IDS.findall(svg(figure(last=1.5))))


def test_text_stays_text_and_is_escaped():
    name = '<script>alert("$x$")</script> & id="m"'
    text = svg(figure(name))
    root = ET.fromstring(text)
    words = " ".join(element.text or "" for element in root.iter("{http://www.w3.org/2000/svg}text"))
    assert "<script" not in text
    assert name.replace(" ", "") in words.replace(" ", "")


def test_prefixing_leaves_text_alone():
    assert prefix_ids('<g id="a"><text>url(#a) id="a"</text><use href="#a"/></g>', "p-") == (
        '<g id="p-a"><text>url(#a) id="a"</text><use href="#p-a"/></g>'
    )


@pytest.mark.parametrize(
    ("ending", "start"), [("svg", b"<svg"), ("png", b"\x89PNG"), ("pdf", b"%PDF"), ("PNG", b"\x89PNG")]
)
def test_save_by_ending_twice_the_same(tmp_path, ending, start):
    one, two = tmp_path / f"new/one.{ending}", tmp_path / f"two.{ending}"
    save(figure(), one)
    save(figure(), two)
    assert one.read_bytes().startswith(start)
    assert one.read_bytes() == two.read_bytes()
    assert [path.name for path in one.parent.iterdir()] == [one.name]


def test_save_refuses_other_endings_and_directories(tmp_path):
    with pytest.raises(UsageError, match=r"must end in .svg, .png, .pdf"):
        save(figure(), tmp_path / "one.docx")
    (tmp_path / "one.svg").mkdir()
    with pytest.raises(UsageError, match="is a directory"):
        save(figure(), tmp_path / "one.svg")
    assert [path.name for path in tmp_path.iterdir()] == ["one.svg"]


def test_no_pyplot_and_no_torch_are_imported():
    script = "import sys, jostle.figures; print('matplotlib.pyplot' in sys.modules, 'torch' in sys.modules)"
    seen = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert seen.split() == ["False", "False"]
