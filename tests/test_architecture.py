"""What keeps the packages readable: import direction, documented public names, files of one subject."""

import ast
import inspect
import re
import tomllib
from pathlib import Path

import pytest
from importlinter.cli import lint_imports

import jostle

ROOT = Path(__file__).parent.parent
PACKAGE = Path(jostle.__file__).parent
SOURCES = sorted((ROOT / "src").rglob("*.py"))
MOST_LINES_OF_A_FILE = 600
MOST_LINES_OF_A_FUNCTION = 80


def long_functions(source: str) -> list[str]:
    """Functions with more than ``MOST_LINES_OF_A_FUNCTION`` lines, docstrings not counted."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0]
            has_text = ast.get_docstring(node) is not None
            lines = node.end_lineno - node.lineno + 1 - (first.end_lineno - first.lineno + 1 if has_text else 0)
            if lines > MOST_LINES_OF_A_FUNCTION:
                found.append(f"{node.name}: {lines} lines")
    return found


def test_packages_import_only_from_storeys_below(capsys, monkeypatch):
    monkeypatch.chdir(ROOT)
    code = lint_imports(config_filename="pyproject.toml", no_cache=True)
    assert code == 0, capsys.readouterr().out


def test_an_import_in_the_wrong_direction_is_found(capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "wrong.toml").write_text(
        '[tool.importlinter]\nroot_package = "jostle"\n[[tool.importlinter.contracts]]\nname = "upside down"\n'
        'type = "layers"\nlayers = ["jostle.base", "jostle.data"]\n'
    )
    assert lint_imports(config_filename="wrong.toml", no_cache=True) == 1
    assert "upside down BROKEN" in capsys.readouterr().out


def test_every_package_has_its_storey():
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    placed = {name.strip() for layer in contracts[0]["layers"] for name in re.split(r"[|:]", layer)}
    there = {f"jostle.{path.stem}" for path in PACKAGE.glob("*.py") if not path.stem.startswith("__")}
    there |= {f"jostle.{path.parent.name}" for path in PACKAGE.glob("*/__init__.py")}
    assert there == placed


@pytest.mark.parametrize("name", [name for name in jostle.__all__ if name != "__version__"])
def test_every_public_name_exists_and_is_documented(name):
    thing = getattr(jostle, name)
    assert len(inspect.getdoc(thing) or "") > 20
    generated = f"{name}("  # the docstring that a dataclass without one is given
    assert not (thing.__doc__ or "").startswith(generated)


def test_all_is_complete_and_unknown_names_are_refused():
    assert len(set(jostle.__all__)) == len(jostle.__all__)
    assert sorted(dir(jostle)) == sorted(jostle.__all__)
    with pytest.raises(AttributeError, match="No jostle attribute measur"):
        _ = jostle.measur


def test_no_file_and_no_function_is_too_long_to_read():
    """A bound that a file with one subject does not reach; one that does has two subjects, or a table in it."""
    long_files = [
        f"{path.relative_to(ROOT)}: {lines} lines"
        for path in SOURCES
        if (lines := len(path.read_text().splitlines())) > MOST_LINES_OF_A_FILE
    ]
    functions = [f"{path.relative_to(ROOT)}: {found}" for path in SOURCES for found in long_functions(path.read_text())]
    assert long_files + functions == []


def test_a_long_function_is_found():
    body = "    x = 1\n"
    most = MOST_LINES_OF_A_FUNCTION
    assert long_functions("def f():\n" + body * (most - 1)) == []
    assert long_functions("def f():\n" + body * most) == [f"f: {most + 1} lines"]
    assert long_functions('def f():\n    """' + "\n" * 50 + '"""\n' + body * (most - 1)) == []


def test_every_module_says_what_belongs_there():
    assert [str(path.relative_to(ROOT)) for path in SOURCES if not ast.get_docstring(ast.parse(path.read_text()))] == []


def test_files_are_called_by_nouns():
    """A file is named by what is in it and not by what is done there: ``figures/scaling.py`` would be ``scales.py``."""
    allowed = {"grokking", "longer_training", "padding", "preprocessing", "text_encoding", "training"}  # nouns too
    found = [str(path.relative_to(ROOT)) for path in SOURCES if path.stem.endswith("ing") and path.stem not in allowed]
    assert found == []


def test_a_public_class_name_means_one_thing():
    """A reader who greps for a class finds one definition."""
    found: dict[str, list[str]] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found.setdefault(node.name, []).append(str(path.relative_to(ROOT)))
    assert {name: paths for name, paths in found.items() if len(paths) > 1} == {}


def test_every_skip_and_expected_failure_has_a_line_in_skips():
    """tests/SKIPS.md is the list of what does not run, so it must name every file that can skip."""
    listed = (ROOT / "tests" / "SKIPS.md").read_text()
    marks = ("pytest.skip(", "importorskip(", "mark.skip", "mark.xfail", "pytest.xfail(")
    for path in sorted((ROOT / "tests").rglob("*.py")):
        if path.name != Path(__file__).name and any(mark in path.read_text() for mark in marks):
            assert str(path.relative_to(ROOT)) in listed
