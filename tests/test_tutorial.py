"""The notebook of the tutorial has the cells of its page, runs from top to bottom, and prints what it shows."""

import json
import runpy

import pytest
import torch

from tests.documents import ROOT, blocks
from tests.test_docs import same

PAGE = ROOT / "docs" / "tutorial.md"
NOTEBOOK = ROOT / "examples" / "tutorial.ipynb"
CELLS = [cell for cell in json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"] if cell["cell_type"] == "code"]


def test_the_notebook_is_of_its_page():
    tool = runpy.run_path(str(ROOT / "tools" / "tutorial.py"))
    book = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    assert (book["nbformat"], book["nbformat_minor"]) == (4, 5)
    bare = [
        cell | ({"execution_count": None, "outputs": []} if cell["cell_type"] == "code" else {})
        for cell in book["cells"]
    ]
    assert bare == tool["cells"](), "make tutorial"
    code = [block.code.strip("\n") for block in blocks(PAGE) if block.language == "python"]
    assert ["".join(cell["source"]) for cell in CELLS] == code


@pytest.mark.slow
def test_the_notebook_runs(monkeypatch):
    """The default tests run the same cells as blocks of the page; here what they print and draw is compared, too."""
    torch.set_default_dtype(torch.float32)
    tool = runpy.run_path(str(ROOT / "tools" / "tutorial.py"))
    names: dict[str, object] = {}
    for cell in CELLS:
        outputs = tool["run"]("".join(cell["source"]), names)
        assert [output["output_type"] for output in outputs] == [output["output_type"] for output in cell["outputs"]]
        for shown, printed in zip(cell["outputs"], outputs, strict=True):
            if "text" in shown:
                assert same("".join(shown["text"]), "".join(printed["text"]))
