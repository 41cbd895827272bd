"""The example of docs/lowering.md, on real digits: does the penalty lower what jostle measures?"""

import re
from pathlib import Path

import torch

from jostle.training import evaluate

PAGE = Path(__file__).parents[2] / "docs" / "lowering.md"


def test_the_three_lines_lower_the_measured_sensitivity(capsys):
    torch.set_default_dtype(torch.float32)  # as a reader runs it
    [example] = re.findall(r"```py\n(.*?)```", PAGE.read_text(), re.DOTALL)
    names = {}
    exec(compile(example, PAGE.name, "exec"), names)
    result, digits, networks = names["result"], names["digits"], names["networks"]
    assert str(result) in capsys.readouterr().out
    accuracies = {name: evaluate(model, digits).accuracy for name, model in networks.items()}
    assert result["penalised"].value < result["plain"].value / 2
    assert result.difference("plain", "penalised").low > 0
    assert min(accuracies.values()) > 0.95
    assert names["penalty"].passes == 3 * 500 * 10
    assert names["plain"].passes == 0
