"""A page as one HTML file that loads nothing else, and the data in such a file."""

import base64
import hashlib
import json
import math
import re
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup, escape

from jostle.base.errors import UsageError
from jostle.base.files import parse_json, read_text, write_text
from jostle.figures.output import prefix_ids
from jostle.report.colours import adaptable, dark_figures, heat_style, is_adaptable
from jostle.report.page import HEAT_LEVELS, Page, Section

DATA_ID = "jostle-data"
_BLOCK = re.compile(rf'<script type="application/json" id="{DATA_ID}">(.*?)</script>', re.DOTALL)
CONTENTS_FROM = 4  # a page with this number of sections has a table of contents


def write(page: Page, path: str | Path) -> None:
    """Write ``page`` to an HTML file; the file is complete or absent."""
    write_text(path, render(page))


def render(page: Page) -> str:
    """``page`` as HTML. The same page gives the same text.

    Style, script, figures and data are in the text. A content security policy forbids the page to load anything else
    and to run any other script.
    """
    script, sections = _part("page.js").strip(), _sections(page)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return (
        _environment()
        .from_string(_part("page.html.j2"))
        .render(
            page=page,
            sections=sections,
            anchors={section["content"].title: section["anchor"] for section in reversed(sections)},
            style=Markup(f"{_part('page.css').strip()}\n{heat_style()}\n{dark_figures(page)}".strip()),
            levels=range(HEAT_LEVELS + 1),
            script=Markup(script),
            script_digest=digest,
            data=Markup(json_for_script(dict(page.data))),
            data_id=DATA_ID,
            has_contents=sum(section.is_listed for section in page.sections) >= CONTENTS_FROM,
        )
    )


def _sections(page: Page) -> list[dict[str, Any]]:
    anchors = _anchors([section.title for section in page.sections])
    return [
        {
            "content": section,
            "anchor": anchor,
            "figure": _figure(section.figure_svg, f"figure-{number}-"),
            "narrow": _figure(section.narrow_svg, f"narrow-{number}-"),
            "width": _width(section),
            "is_paper": section.figure_svg is not None and not is_adaptable(section.figure_svg),
        }
        for number, (section, anchor) in enumerate(zip(page.sections, anchors, strict=True), start=1)
    ]


def _figure(drawn: str | None, prefix: str) -> Markup | None:
    # Two copies of one figure need different ids.
    return None if drawn is None else Markup(prefix_ids(adaptable(drawn), prefix))


def _width(section: Section) -> int | None:
    """The width in pixels at which the text of a figure is a little smaller than the page's."""
    found = re.search(r'viewBox="\S+ \S+ ([\d.]+) ', section.figure_svg or "")
    return round(float(found[1]) * 1.58) if found else None


def _anchors(titles: list[str]) -> list[str]:
    """A different id for each title."""
    anchors: list[str] = []
    for title in titles:
        base = "s-" + (re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-") or "section")
        repeats = sum(re.fullmatch(rf"{re.escape(base)}(\.\d+)?", other) is not None for other in anchors)
        anchors.append(f"{base}.{repeats + 1}" if repeats else base)
    return anchors


def prose(text: str) -> Markup:
    """``text`` escaped, with words in `backticks` as code. No line ends before a percent sign or inside an option.

    >>> print(prose("run `a < b`"))
    run <code>a &lt; b</code>
    """
    kept = unbroken(text.replace(" %", "\N{NO-BREAK SPACE}%"))
    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", str(kept)))


def unbroken(text: str) -> Markup:
    """``text`` escaped; browsers would end a line between the hyphens of an option.

    >>> print(unbroken("give --max-passes"))
    give <span class="option">--max-passes</span>
    """
    return Markup(re.sub(r"(?<!\S)--[a-z][a-z-]*", r'<span class="option">\g<0></span>', str(escape(text))))


@cache
def _environment() -> Environment:
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters["prose"] = prose
    environment.filters["unbroken"] = unbroken
    return environment


@cache
def _part(name: str) -> str:
    """A file of this package."""
    return files("jostle.report").joinpath(name).read_text(encoding="utf-8")


def json_for_script(data: Any) -> str:
    r"""``data`` as JSON for a script element; no text in it can end the element.

    >>> json_for_script({"name": "</script>"})
    '{"name":"\\u003c/script\\u003e"}'
    """
    try:
        text = json.dumps(_finite(data), separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError) as error:
        raise UsageError(f"data of the page cannot become JSON ({error}); use numbers, text, lists and dicts") from None
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def recover(path: str | Path) -> Any:
    """The ``data`` of the page that ``write`` put at ``path``."""
    found = _BLOCK.search(read_text(path, "report"))
    if found is None:
        raise UsageError(f"report file {path} holds no data: it has no script element with the id {DATA_ID}")
    try:
        return parse_json(found[1])
    except json.JSONDecodeError as error:
        raise UsageError(f"report file {path} holds damaged data ({error})") from None


def _finite(data: Any) -> Any:
    """``data`` with None in place of NaN and infinity."""
    if isinstance(data, dict):
        return {key: _finite(value) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return [_finite(value) for value in data]
    return None if isinstance(data, float) and not math.isfinite(data) else data
