"""The example of docs/lowering.md, on real digits: does the penalty lower what jostle measures?"""

import re
import runpy
from pathlib import Path

import torch

from jostle.base.store import Store
from jostle.training import evaluate
from tests.documents import blocks

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "lowering.md"


def test_the_three_lines_lower_the_measured_sensitivity(capsys):
    torch.set_default_dtype(torch.float32)  # as a reader runs it
    example = next(block.code for block in blocks(PAGE) if block.language == "python")
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


def test_the_tables_are_what_the_record_says():
    tool = runpy.run_path(str(ROOT / "tools" / "record_lowering.py"))
    shown = tool["MARKED"].search(PAGE.read_text(encoding="utf-8"))
    assert shown[0] == shown[1] + tool["tables"](Store(tool["RECORDS"])) + shown[2]


def test_the_record_is_of_the_example_as_it_stands_and_of_the_tool():
    """Without the digits: what the example says is read, not run."""
    tool = runpy.run_path(str(ROOT / "tools" / "record_lowering.py"))
    record, source = Store(tool["RECORDS"])["settings"], tool["EXAMPLE"].read_text()
    assert record["strengths"] == list(tool["STRENGTHS"])
    assert record["seeds"] == list(tool["SEEDS"])
    assert (record["half_width"], record["level"]) == (tool["HALF_WIDTH"], tool["LEVEL"])
    assert f"EPOCHS, DIGITS, UNSEEN = {record['epochs']}," in source
    assert f"GaussianNoise(std={float(record['perturbation'].split('=')[1])})" in source
    assert f"Patches({record['tokens'].split(':')[1]})" in source
    assert all(f'"{name}": {record[name]}' in source for name in ("patch_size", "dim", "depth", "heads", "mlp_dim"))
    used = float(re.search(r"strength=([\d.]+), \*\*NOISE", source)[1])
    assert used in record["strengths"]


def test_the_strength_of_the_example_halves_the_sensitivity_and_costs_less_than_a_point():
    tool = runpy.run_path(str(ROOT / "tools" / "record_lowering.py"))
    store, used = Store(tool["RECORDS"]), re.search(r"strength=([\d.]+), \*\*NOISE", tool["EXAMPLE"].read_text())[1]
    seeds = [store[f"seed-{seed}"] for seed in store["settings"]["seeds"]]
    name = f"{float(used):g}"
    for seed in seeds:
        assert seed["0"]["sensitivity"][0] > 2 * seed[name]["sensitivity"][0]
        assert seed[name]["drop"][1] > 0
        assert seed[name]["gain"][1] > -0.01  # the low end, over the digits
    _, low, _ = tool["_ratio"](seeds, name)
    assert low > 2
    _, low, _ = tool["_paired"]([seed[name]["accuracy"] - seed["0"]["accuracy"] for seed in seeds])
    assert low > -0.01
