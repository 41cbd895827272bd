"""What keeps the package readable: import direction, documented public names, short files and functions."""

import ast
import inspect
import tomllib
from pathlib import Path

import pytest
from importlinter.cli import lint_imports

import jostle

ROOT = Path(__file__).parent.parent
PACKAGE = Path(jostle.__file__).parent
SOURCES = sorted(PACKAGE.rglob("*.py"))
MOST_LINES_OF_A_FILE = 350
MOST_LINES_OF_A_FUNCTION = 60


def names_of(paths):
    return [str(path.relative_to(PACKAGE)) for path in paths]


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


def test_packages_import_only_from_packages_to_their_left(capsys, monkeypatch):
    monkeypatch.chdir(ROOT)
    code = lint_imports(config_filename="pyproject.toml", no_cache=True)
    assert code == 0, capsys.readouterr().out


def test_an_import_in_the_wrong_direction_is_found(capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "wrong.toml").write_text(
        '[tool.importlinter]\nroot_package = "jostle"\n[[tool.importlinter.contracts]]\nname = "upside down"\n'
        'type = "layers"\nlayers = ["jostle.errors", "jostle.registry"]\n'
    )
    assert lint_imports(config_filename="wrong.toml", no_cache=True) == 1
    assert "upside down BROKEN" in capsys.readouterr().out


def test_every_module_has_its_place_on_the_line():
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    placed = {name.strip() for layer in contracts[0]["layers"] for name in layer.split("|")}
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
    assert dir(jostle) == sorted(jostle.__all__)
    with pytest.raises(AttributeError, match="module 'jostle' has no attribute 'measur'"):
        _ = jostle.measur


def test_type_checkers_see_the_names_that_are_imported_on_first_use():
    tree = ast.parse((PACKAGE / "__init__.py").read_text())
    [block] = [
        node
        for node in tree.body
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
    ]
    seen = {(line.module, alias.asname): alias.name for line in block.body for alias in line.names}
    assert all(original == shown for (_, shown), original in seen.items())
    lazy = {(home, name) for home, names in jostle._HOMES.items() for name in names}
    assert set(seen) == lazy | {("jostle", name) for name in jostle._PACKAGES}


@pytest.mark.parametrize("path", SOURCES, ids=names_of(SOURCES))
def test_files_and_functions_are_short(path):
    source = path.read_text()
    assert len(source.splitlines()) <= MOST_LINES_OF_A_FILE
    assert long_functions(source) == []


def test_a_long_function_is_found():
    body = "    x = 1\n"
    assert long_functions("def f():\n" + body * 59) == []
    assert long_functions("def f():\n" + body * 60) == ["f: 61 lines"]
    assert long_functions('def f():\n    """' + "\n" * 50 + '"""\n' + body * 59) == []


@pytest.mark.parametrize("path", SOURCES, ids=names_of(SOURCES))
def test_every_module_says_what_belongs_there(path):
    assert ast.get_docstring(ast.parse(path.read_text()))


def test_every_skip_and_expected_failure_has_a_line_in_skips():
    """tests/SKIPS.md is the list of what does not run, so it must name every file that can skip."""
    listed = (ROOT / "tests" / "SKIPS.md").read_text()
    marks = ("pytest.skip(", "importorskip(", "mark.skip", "mark.xfail", "pytest.xfail(")
    for path in sorted((ROOT / "tests").rglob("*.py")):
        if path.name != Path(__file__).name and any(mark in path.read_text() for mark in marks):
            assert str(path.relative_to(ROOT)) in listed
