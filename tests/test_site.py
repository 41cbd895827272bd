"""The documentation site: every page has its place, every public name is in the reference, and it builds.

It is built as ``make docs`` builds it: offline, and a warning is an error. Then every link of every page is followed.
"""

import html
import importlib.util
import inspect
import os
import pkgutil
import re
import subprocess
import sys
from urllib.parse import unquote, urlparse

import pytest
import yaml

import jostle
from tests.documents import ROOT

CONFIG = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
DOCS = ROOT / "docs"
LINK = re.compile(r"""<(?:a|link|script|img)\b[^>]*?\s(?:href|src)=(?:"([^"]*)"|'([^']*)'|([^\s>]+))""")
SHOWN_ELSEWHERE = {"worst", "lowering"}  # packages whose names are shown under the names of jostle itself
LOADED = re.compile(r"""<(?:link|script|img|iframe)\b[^>]*?\s(?:href|src)=["']?(?:https?:)?//""")


def entries(nav) -> list[str]:
    """All pages that the navigation names."""
    if isinstance(nav, str):
        return [nav]
    parts = nav.values() if isinstance(nav, dict) else nav
    return [page for part in parts for page in entries(part)]


def test_every_page_has_one_place_in_the_navigation():
    """A new page gets a line under ``nav`` in mkdocs.yml."""
    placed = entries(CONFIG["nav"])
    assert len(placed) == len(set(placed))
    assert set(placed) == {path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md")}


def test_every_public_name_is_in_the_reference():
    """Functions and classes by a line of their own, packages by one of their names."""
    text = "\n".join(page.read_text(encoding="utf-8") for page in (DOCS / "api").glob("*.md"))
    named = re.findall(r"^::: (jostle[\w.]+)$", text, re.MULTILINE)
    assert len(named) == len(set(named))
    shown = [pkgutil.resolve_name(name) for name in named]
    for name in set(jostle.__all__) - {"__version__", *SHOWN_ELSEWHERE}:
        thing = getattr(jostle, name)
        is_package = inspect.ismodule(thing)
        assert any(thing is other for other in shown) or (
            is_package and any(other.startswith(f"jostle.{name}.") for other in named)
        ), name


def test_functions_are_not_taken_for_the_files_of_their_names(site):
    """`jostle.measure` is a function in a file that is called as it is: the reference must show the function."""
    pattern = r'doc-object doc-module">\s*<h2 id="([\w.]+)"'
    files = {name for path, text in site.items() if path.parent.name == "api" for name in re.findall(pattern, text)}
    assert "jostle.responses" in files
    wrong = {name for name in files if not inspect.ismodule(pkgutil.resolve_name(name))}
    assert wrong == set()


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The site, built; its pages by path."""
    if importlib.util.find_spec("mkdocstrings_handlers") is None:
        pytest.skip("mkdocs-material and mkdocstrings-python are not installed")
    place = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(place)]  # quiet would not count
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    built = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    assert "WARNING" not in built.stderr
    assert "Documentation built" in built.stderr
    return {path: path.read_text(encoding="utf-8") for path in place.rglob("*.html")}


def test_the_site_is_built_and_every_link_leads_somewhere(site):
    assert len(site) > 100
    names = {path.resolve(): set(re.findall(r"""\sid=["']?([^"'\s>]+)""", text)) for path, text in site.items()}
    broken = []
    for path, text in site.items():
        for found in LINK.finditer(text):
            link = urlparse(html.unescape(found[1] or found[2] or found[3] or ""))
            if link.scheme or link.netloc or path.name == "404.html":
                continue
            target = (path.parent / unquote(link.path)).resolve() if link.path else path.resolve()
            if not target.exists():
                broken.append(f"{path.name}: {link.path}")
            elif link.fragment and target in names and unquote(link.fragment) not in names[target]:
                broken.append(f"{path.name}: {link.path}#{link.fragment}")
    assert broken == []


def test_the_site_loads_nothing_from_other_hosts(site):
    assert [path.name for path, text in site.items() if LOADED.search(text)] == []


def test_examples_of_docstrings_are_blocks_of_code(site):
    """And not quotations within quotations, as Markdown would have it."""
    [page] = [text for path, text in site.items() if path.parts[-2:] == ("api", "measuring.html")]
    assert 'class="gp">' in page  # a prompt, highlighted
    assert not any(re.search(r"<blockquote>\s*<blockquote>", text) for text in site.values())
