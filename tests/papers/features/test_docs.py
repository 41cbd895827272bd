"""The examples of docs/features.md run and say what the page says they say."""

import re
from pathlib import Path

import torch

PAGE = Path(__file__).parents[3] / "docs" / "features.md"


def examples():
    return re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)


def run(number):
    torch.set_default_dtype(torch.float32)  # as a reader runs it
    names = {}
    exec(compile(examples()[number], PAGE.name, "exec"), names)
    return names


def test_the_worst_words(capsys):
    names = run(0)
    assert names["flat"].value < names["relu"].value < names["softmax"].value
    assert abs(names["flat"].average * 40**0.5 - 1) < 0.1
    assert capsys.readouterr().out.count("word sensitivity at least") == 3


def test_context_modification():
    found = run(1)["found"]
    assert found.error < 2
    assert found.gamma < 0.5
    assert found.error >= found.bound


def test_all_registered_maps_are_in_the_table():
    from jostle_papers.p2402_02969.features import names

    for name in names():
        assert f"| `{name}` |" in PAGE.read_text(encoding="utf-8")
