"""A page as HTML, and its data read back."""

import base64
import hashlib
import re
from html.parser import HTMLParser

import pytest

from jostle.base.errors import UsageError
from jostle.figures import Series, curves, svg
from jostle.report import Entry, HeatMap, Page, Passage, Picture, Section, Table, Token, recover, render, write
from jostle.report.html import json_for_script

EVIL = "<script>alert('x')</script><img src=x onerror=\"alert(1)\">"
VOID = {"meta", "link", "img", "br", "hr", "input"}


class Tree(HTMLParser):
    """Every start tag with its attributes, and the text; complains about tags that do not match."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.texts: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    def find(self, name: str) -> list[dict[str, str | None]]:
        return [attributes for tag, attributes in self.tags if tag == name]


def figure(name: str = "vit") -> str:
    return svg(curves([Series(name, [1, 2], [3, 4], [2, 3], [4, 5])], x_label="x", y_label="y"))


def page(name: str = "vit", sections: int = 1) -> Page:
    table = Table([f"{name} column", "value"], [[name, 0.5], ["cnn", Entry("1.0 [0.9, 1.1]", 1.0)]], f"{name} table")
    section = Section(
        f"On {name}", [f"{name} text"], figure(name), f"{name} caption", table, [f"{name} note"], f"{name} alt"
    )
    return Page(
        f"{name} title", f"{name} lead", [section] * sections, {f"{name} key": f"{name} value"}, name, {"a": name}
    )


def test_a_malicious_name_is_only_text():
    tree, plain = Tree(render(page(EVIL))), Tree(render(page("vit")))
    assert [tag for tag, _ in tree.tags if tag in ("script", "img")] == ["script", "script"]
    words = {tag for tag, _ in plain.tags}
    assert {tag for tag, _ in tree.tags} <= words | {"tspan"}
    assert not any(key.startswith("on") for _, attributes in tree.tags for key in attributes)
    text = "\n".join(tree.texts)
    places = ("title", "lead", "text", "caption", "column", "table", "note", "key", "value")
    assert all(f"{EVIL} {place}" in text for place in places)
    (label,) = [a["aria-label"] for a in tree.find("div") if a.get("role") == "img"]
    assert label == f"{EVIL} alt"


def test_nothing_is_fetched():
    text = render(page())
    assert set(re.findall(r"https?://[^\"\s]*", text)) == {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}
    tree = Tree(text)
    addresses = [
        value
        for _, attributes in tree.tags
        for key, value in attributes.items()
        if key.split(":")[-1] in ("src", "href")
    ]
    assert addresses
    assert all(value.startswith(("#", "data:")) for value in addresses)
    assert "@import" not in text
    assert re.findall(r"url\((?!#)", text) == []


def test_the_policy_lets_only_our_script_run():
    text = render(page())
    (policy,) = [a["content"] for a in Tree(text).find("meta") if "http-equiv" in a]
    (script,) = re.findall(r"<script>(.*?)</script>", text, flags=re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert "default-src 'none'" in policy
    assert f"script-src 'sha256-{digest}'" in policy
    assert len(script) < 4096


def test_ids_are_unique_even_with_the_same_figure_and_title_twice():
    tree = Tree(render(page(sections=3)))
    ids = [attributes["id"] for _, attributes in tree.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    references = {a.get("xlink:href", "#")[1:] for a in tree.find("use")}
    references |= {found for _, a in tree.tags for found in re.findall(r"url\(#([^)]+)\)", a.get("clip-path") or "")}
    assert references
    assert references <= set(ids)


@pytest.mark.parametrize(("sections", "has_contents"), [(3, False), (4, True)])
def test_contents_from_four_sections_on_lead_to_them(sections, has_contents):
    tree = Tree(render(page(sections=sections)))
    links = [attributes["href"][1:] for attributes in tree.find("a")]
    assert bool(tree.find("nav")) == has_contents
    assert links == ([a["id"] for a in tree.find("section") if a["id"] != "settings"] if has_contents else [])


def test_contents_leave_out_what_goes_on_with_the_section_before():
    sections = [Section("A"), Section("A, again", is_listed=False), Section("B"), Section("C"), Section("D")]
    tree = Tree(render(Page("T", "", sections)))
    assert [attributes["href"] for attributes in tree.find("a")] == ["#s-a", "#s-b", "#s-c", "#s-d"]
    assert len(tree.find("section")) == 5


def test_titles_that_look_like_numbered_repeats_do_not_clash():
    titles = ["A", "A", "A.2", "a", "", "!", "settings"]
    tree = Tree(render(Page("T", "", [Section(title) for title in titles], {"k": "v"})))
    ids = [attributes["id"] for attributes in tree.find("section")]
    assert len(ids) == len(set(ids)) == 8


def test_cells_carry_sort_keys_and_numbers_their_class():
    tree = Tree(render(page()))
    assert [(a["data-sort"], a.get("class")) for _, a in tree.tags if "data-sort" in a] == [
        ("vit", None), ("0.5", "number"), ("cnn", None), ("1.0", "number"),
    ]  # fmt: skip
    assert [a.get("class") for a in tree.find("th") if a.get("scope") == "col"] == [None, "number"]
    assert [a["scope"] for a in tree.find("th")] == ["col", "col", "row", "row"]


def test_language_headings_and_figures_can_be_read_aloud():
    tree = Tree(render(page(sections=2)))
    assert tree.find("html") == [{"lang": "en"}]
    assert [tag for tag, _ in tree.tags if re.fullmatch(r"h\d", tag)] == ["h1", "h2", "h2", "h2"]
    assert [a["aria-label"] for a in tree.find("div") if a.get("role") == "img"] == ["vit alt", "vit alt"]
    captions = {a["id"] for a in tree.find("p") if a.get("class") == "caption"}
    assert {a["aria-labelledby"] for a in tree.find("table")} == captions


def test_empty_parts_leave_no_elements():
    tree = Tree(render(Page("Title", "", [Section("Only a title")])))
    assert not {tag for tag, _ in tree.tags} & {"figure", "table", "dl", "footer", "nav", "ul"}
    assert [a.get("class") for a in tree.find("p")] == []


def test_light_dark_print_and_phones_are_served():
    text = render(page())
    assert all(f"@media {what}" in text for what in ("(prefers-color-scheme: dark)", "print", "(max-width: 600px)"))


def test_backticks_make_code_of_escaped_text():
    assert "run <code>a &lt; b</code> now" in render(Page("T", "run `a < b` now", []))


def test_no_line_ends_before_a_percent_sign_or_inside_an_option():
    html = render(Page("T", "in 29 % of cases", [Section("A", notes="give --max-passes 9")], command="jostle --x 1"))
    assert "29\N{NO-BREAK SPACE}% of" in html
    assert 'give <span class="option">--max-passes</span> 9' in html
    assert '<code>jostle <span class="option">--x</span> 1</code>' in html
    assert ".option { white-space: nowrap; }" in html


def test_a_map_says_aloud_where_it_is_darkest():
    shown = HeatMap("vit", 2, [0.1, 0.7, None, 0.0], ["row 0", "row 0, column 1: 0.7", "", "x"], caption="all")
    assert shown.alt_text == "vit: all: most at row 0, column 1: 0.7"
    assert 'aria-label="vit: all: most at row 0, column 1: 0.7"' in render(Page("T", "", [Section("A", maps=[shown])]))
    assert HeatMap("vit", 1, [0.0], ["nothing"]).alt_text == "vit"


def test_prose_in_a_cell_stands_below_the_name_of_its_column_on_narrow_screens():
    html = render(Page("T", "", [Section("A", table=Table(["a", "b", "c"], [["x", "short", "words " * 9]]))]))
    assert html.count(" data-long>") == 1
    assert ".stacked :is(td:has(.lines), td[data-long]) { text-align: left; }" in html


def test_a_number_that_names_a_row_is_named_on_narrow_screens():
    html = render(Page("T", "", [Section("A", table=Table(["std", "a", "b"], [[0.5, 1, 2]]))]))
    assert '<th scope="row" class="number" data-sort="0.5" data-column="std">' in html
    assert ".stacked :is(td, th.number)::before { content: attr(data-column);" in html


def test_the_same_page_gives_the_same_text_written_whole(tmp_path):
    write(page(), tmp_path / "new" / "page.html")
    assert (tmp_path / "new" / "page.html").read_text(encoding="utf-8") == render(page())
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["page.html"]


def test_a_directory_is_refused_and_nothing_is_left_behind(tmp_path):
    with pytest.raises(UsageError, match="is a directory"):
        write(page(), tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_page_that_cannot_be_rendered_leaves_the_old_file(tmp_path):
    path = tmp_path / "page.html"
    path.write_text("old", encoding="utf-8")
    with pytest.raises(UsageError, match="JSON"):
        write(Page("T", "", [], data={"a": object()}), path)
    assert path.read_text(encoding="utf-8") == "old"
    assert [found.name for found in tmp_path.iterdir()] == ["page.html"]


def passages(*tokens: Token) -> Tree:
    return Tree(render(Page("t", "", [Section("s", passages=[Passage(tokens, "label")])])))


def test_tokens_are_shaded_by_their_share_and_say_it():
    tree = passages(Token("<s>"), Token(" not", 0.42), Token(" good", 0.001), Token(" at", 0.0, "0 of 9"))
    marks = tree.find("mark")
    assert [(mark["style"], mark["title"]) for mark in marks] == [("--share: 42", "42 %"), ("--share: 1", "1 %")]
    assert [span["title"] for span in tree.find("span")] == ["0 of 9"]
    assert "<s> not good at" in "".join(tree.texts)


def test_the_text_of_a_passage_is_only_text():
    clean, evil = passages(Token("a", 0.5, "b")), passages(Token(EVIL, 0.5, EVIL), Token(EVIL), Token(EVIL, 0.0))
    assert len(evil.find("script")) == len(clean.find("script"))
    assert evil.find("img") == []
    assert "".join(evil.texts).count(EVIL) == 3


@pytest.mark.parametrize("share", [-0.1, 1.5, float("nan")])
def test_a_share_is_a_share(share):
    with pytest.raises(UsageError, match="from 0 to 1"):
        Token("a", share)


def of_cells(*cells: Entry) -> Tree:
    table = Table([str(number) for number in range(len(cells))], [list(cells)])
    return Tree(render(Page("t", "", [Section("", table=table), Section("On a"), Section("On a"), Section("b")])))


def test_a_cell_leads_to_the_first_section_of_that_title():
    tree = of_cells(Entry("see a", link="On a"), Entry("nowhere", link="gone"), Entry("plain"))
    cell_links = [a["href"] for a in tree.find("a")][len(tree.find("li")) :]
    assert cell_links == ["#s-on-a"]
    assert "see a" in tree.texts


def test_lines_of_a_cell_stand_one_below_the_other():
    tree = of_cells(Entry("first: 1\nsecond: `x`"), Entry("alone"))
    assert [a.get("class") for a in tree.find("ul")] == ["lines"]
    assert tree.texts[tree.texts.index("first: 1") + 1 :][:2] == ["second: ", "x"]


def test_a_tone_is_a_colour_beside_the_word():
    tree = of_cells(Entry("AGREES", tone="good"), Entry("UNDECIDED"))
    assert [a["class"] for a in tree.find("span")] == ["tone good"]
    assert {"AGREES", "UNDECIDED"} <= set(tree.texts)


def test_the_parts_of_a_cell_are_only_text():
    tree = of_cells(Entry(f"{EVIL}\n{EVIL}", tone="bad"), Entry(EVIL, link="b"), Entry("x", link=EVIL))
    assert tree.find("img") == []
    assert "".join(tree.texts).count(EVIL) == 3


def test_a_narrow_figure_takes_the_place_of_the_wide_one_on_narrow_screens():
    wide, narrow = figure("wide"), figure("narrow")
    tree = Tree(
        render(Page("T", "", [Section("A", figure_svg=wide, narrow_svg=narrow), Section("B", figure_svg=wide)]))
    )
    cards = [a["class"] for a in tree.find("div") if a.get("role") == "img"]
    assert cards == ["card wide", "card narrow", "card"]
    style = re.search(r"@media \(max-width: 600px\) \{(.*?)\n\}", render(page()), flags=re.DOTALL)
    assert style is not None
    assert ".card.wide { display: none; }" in style[1]
    assert ".card.narrow { display: block; }" in style[1]


PIXEL = "data:image/png;base64,iVBORw0KGgo="


def test_maps_have_a_square_with_a_hint_for_each_value():
    shown = HeatMap(EVIL, 2, [0.0, 0.5, 1.0, None], ["a", EVIL, "c", "d"], ["0", "1", EVIL, ""], PIXEL, EVIL)
    tree = Tree(render(Page("T", "", [Section("A", maps=[Picture(EVIL, PIXEL), shown], scale=("0", EVIL))])))
    assert [(a["class"], a["title"]) for a in tree.find("i") if "title" in a] == [
        ("h0", "a"), ("h10", EVIL), ("h20", "c"), ("none", "d"),
    ]  # fmt: skip
    assert [a["src"] for a in tree.find("img")] == [PIXEL, PIXEL]
    assert "".join(tree.texts).count(EVIL) == 5  # two titles, a text, a caption, an end of the scale


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: HeatMap("m", 1, [0.5], []),
        lambda: HeatMap("m", 1, [1.5], ["a"]),
        lambda: HeatMap("m", 1, [0.5], ["a"], picture="https://elsewhere.example/x.png"),
        lambda: Picture("p", "javascript:alert(1)"),
    ],
)
def test_maps_that_are_none_are_refused(wrong):
    with pytest.raises(UsageError):
        wrong()


def test_figures_follow_the_page_into_the_dark():
    text = render(page())
    assert "fill: var(--cffffff, #ffffff)" in text
    assert "--cffffff: #202327;" in text
    assert "(prefers-color-scheme: dark) { :root {" not in render(Page("T", "", [Section("A")]))
    image = '<svg viewBox="0 0 1 1"><image/><path style="fill: #ffffff"/></svg>'
    assert image in render(Page("T", "", [Section("A", figure_svg=image)]))  # words on an image keep their contrast


def test_meaning_and_command_are_text():
    tree = Tree(render(Page("T", "", [], meaning=f"It {EVIL}", command=f"jostle measure {EVIL}")))
    assert f"It {EVIL}" in "".join(tree.texts)
    assert f"jostle measure {EVIL}" in tree.texts
    assert not tree.find("img")


def test_rows_with_lines_are_stacked_on_narrow_screens_under_the_names_of_their_columns():
    stacked, flat = of_cells(Entry("x"), Entry("a\nb", "a")), of_cells(Entry("x"), Entry("a b"))
    assert [a["data-column"] for _, a in stacked.tags if "data-column" in a] == ["0", "1"]
    assert [a["class"] for a in stacked.find("div") if a.get("role") == "region"] == ["table stacked"]
    assert not any("data-column" in a for _, a in flat.tags)
    assert [a["class"] for a in flat.find("div") if a.get("role") == "region"] == ["table"]


AWKWARD = {"name": "</script><!-- & \u2028 \"'", "numbers": [1, 0.1, None, True], "nested": {"é": ["模"]}}


def test_what_goes_in_comes_out(tmp_path):
    write(Page("Title", "", [], data=AWKWARD), tmp_path / "page.html")
    assert recover(tmp_path / "page.html") == AWKWARD


def test_the_first_block_counts_whatever_the_text_says(tmp_path):
    fake = '<script type="application/json" id="jostle-data">{"fake":1}</script>'
    write(Page(fake, fake, [], data={"real": fake}), tmp_path / "page.html")
    assert recover(tmp_path / "page.html") == {"real": fake}


def test_numbers_json_cannot_hold_become_null(tmp_path):
    write(Page("Title", "", [], data={"a": [float("nan")], "b": (float("inf"), 1.5)}), tmp_path / "page.html")
    assert recover(tmp_path / "page.html") == {"a": [None], "b": [None, 1.5]}


def test_no_text_can_leave_the_block():
    assert not set("<>&\u2028") & set(json_for_script(AWKWARD))


def test_things_json_cannot_hold_are_refused():
    with pytest.raises(UsageError, match="cannot become JSON"):
        json_for_script({"a": object()})


def test_other_files_hold_no_data(tmp_path):
    path = tmp_path / "page.html"
    path.write_text("<p>hello</p>", encoding="utf-8")
    with pytest.raises(UsageError, match="holds no data"):
        recover(path)
    path.write_text('<script type="application/json" id="jostle-data">{"a":</script>', encoding="utf-8")
    with pytest.raises(UsageError, match="damaged"):
        recover(path)
    with pytest.raises(UsageError, match="does not exist"):
        recover(tmp_path / "none.html")
