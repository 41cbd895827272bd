"""The first example of docs/hardness.md runs as it stands, and its network converges."""

import re
from pathlib import Path

import torch

PAGE = Path(__file__).parents[3] / "docs" / "hardness.md"


def test_the_example_runs(capsys):
    torch.set_default_dtype(torch.float32)  # as a reader runs it
    example, *_ = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    names = {}
    exec(compile(example, PAGE.name, "exec"), names)
    printed = capsys.readouterr().out.splitlines()
    assert len(printed) == 6
    assert printed[-1].startswith("1.0 1.0")
    assert printed[-1].endswith("True")
    assert names["found"].has_converged
