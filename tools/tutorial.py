"""Write examples/tutorial.ipynb from docs/tutorial.md: a cell for each block of Python, with what it prints and draws.

The page is the source. tests/test_tutorial.py runs the cells and compares them with the page.
"""

import ast
import contextlib
import io
import json
import re
from base64 import b64encode
from pathlib import Path

from jostle.base.files import write_text

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "tutorial.md"
NOTEBOOK = ROOT / "examples" / "tutorial.ipynb"
FENCE = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
INTRODUCTION = re.compile(r"This page is also a notebook.*?\n\n", re.DOTALL)


def main() -> None:
    """Run the cells in order, and write the notebook with their output."""
    names: dict[str, object] = {"__name__": "__main__"}
    made = cells()
    for number, cell in enumerate((cell for cell in made if cell["cell_type"] == "code"), start=1):
        cell["execution_count"] = number
        cell["outputs"] = run("".join(cell["source"]), names)
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    book = {
        "cells": made,
        "metadata": {"kernelspec": kernel, "language_info": {"name": "python"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    write_text(NOTEBOOK, json.dumps(book, indent=1, ensure_ascii=False) + "\n")


def cells() -> list[dict]:
    """The cells of the page, not run: text and code take turns."""
    text = INTRODUCTION.sub("", PAGE.read_text(encoding="utf-8"))
    text = re.sub(r"\]\(([a-z-]+\.md)", r"](../docs/\1", text)
    made = []
    for place, part in enumerate(FENCE.split(text)):
        if not part.strip():
            continue
        lines = part.strip("\n").splitlines(keepends=True)
        cell = {
            "cell_type": "code" if place % 2 else "markdown",
            "id": f"cell-{place}",
            "metadata": {},
            "source": lines,
        }
        made.append(cell | ({"execution_count": None, "outputs": []} if place % 2 else {}))
    return made


def run(code: str, names: dict[str, object]) -> list[dict]:
    """What a cell prints, and the figure that its last line is, if it is one."""
    *lines, last = ast.parse(code).body
    value, printed = None, io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(ast.Module(lines, []), PAGE.name, "exec"), names)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), PAGE.name, "eval"), names)
        else:
            exec(compile(ast.Module([last], []), PAGE.name, "exec"), names)
    found: list[dict] = []
    if text := re.sub(r"\b\d+\.\d s\b", "some seconds", printed.getvalue()):  # so that a second run writes the same
        found.append({"output_type": "stream", "name": "stdout", "text": text.splitlines(keepends=True)})
    if hasattr(value, "savefig"):
        pixels = io.BytesIO()
        value.savefig(pixels, format="png", dpi=72, metadata={"Software": None})
        shown = {"image/png": b64encode(pixels.getvalue()).decode(), "text/plain": ["<Figure>"]}
        found.append({"output_type": "display_data", "data": shown, "metadata": {}})
    return found


if __name__ == "__main__":
    main()
