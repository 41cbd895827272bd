"""``timm:`` and ``torchvision:`` with the real packages, also with a torchvision that was built for another torch.

In processes of their own: what the import of a torchvision declares in torch stays there.
"""

import importlib.util
import subprocess
import sys
import textwrap

import pytest

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        any(importlib.util.find_spec(name) is None for name in ("timm", "torchvision")),
        reason="timm or torchvision is not installed",
    ),
]


def run(code, *paths):
    begin = f"import sys; sys.path[:0] = {list(map(str, paths))!r}\n"
    found = subprocess.run(
        [sys.executable, "-c", begin + textwrap.dedent(code)], capture_output=True, text=True, timeout=600, check=False
    )
    assert found.returncode == 0, found.stderr
    return found.stdout.split("\n")[:-1]


def test_networks_of_both_with_and_without_checkpoints(tmp_path):
    code = f"""
        import torch
        import jostle
        pixels = torch.randn(2, 3, 32, 32)
        for spec in ("timm:resnet10t:num_classes=7", "torchvision:resnet18:num_classes=7"):
            network = jostle.integrations.load(spec, seed=1)
            torch.save(network.network.state_dict(), {str(tmp_path / "w.pth")!r})
            same = jostle.integrations.load(f"{{spec}},checkpoint={tmp_path / "w.pth"}", seed=2)
            print(torch.equal(network(pixels), same(pixels)), tuple(same(pixels).shape), same.preprocessing.size)
            arguments = dict(tokens="patches:16", perturbation="gaussian-noise:std=1", plan="grid:1", progress=False)
            print(0 <= jostle.measure(same, pixels, **arguments).value <= 1)
    """
    assert run(code) == ["True (2, 7) 176", "True", "True (2, 7) 224", "True"]


def test_the_package_that_is_broken_is_named(tmp_path):
    (tmp_path / "torchvision").mkdir()
    (tmp_path / "torchvision" / "__init__.py").write_text("raise RuntimeError('built for another torch')")
    code = """
        import jostle
        for spec in ("timm:resnet10t", "torchvision:resnet18"):
            try:
                jostle.integrations.load(spec)
            except jostle.base.errors.UsageError as error:
                print(error)
    """
    told = ["torchvision is installed but cannot be imported: built for another torch"] * 2
    assert [line.partition(": ")[2] for line in run(code, tmp_path)] == told
