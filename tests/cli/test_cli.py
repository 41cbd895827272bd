"""The command line as a person meets it: in a process of its own where exit codes and streams matter."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

import jostle
from jostle.cli import main

MODEL = """
import time
import torch

def make(classes=3, delay=0.0):
    torch.manual_seed(0)
    weights = torch.randn(6, classes, dtype=torch.float32)
    def model(x):
        time.sleep(delay)
        return x.float() @ weights
    return model

def inputs():
    torch.manual_seed(1)
    return torch.randn(50, 6)

class Unusual:
    pass

broken = Unusual
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "my_model.py").write_text(MODEL)
    np.save(tmp_path / "inputs.npy", np.random.default_rng(0).standard_normal((50, 6)).astype(np.float32))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(capsys, *words):
    """(exit code, stdout, stderr) of a command in this process."""
    code = 0
    try:
        main([str(word) for word in words])
    except SystemExit as end:
        code = end.code or 0
    out, err = capsys.readouterr()
    return code, out, err


def basic(**changes):
    """The options of an ordinary measurement, some of them changed."""
    options = {"model": "py:my_model.py:make", "data": "inputs.npy", "tokens": "coordinates", **changes}
    return [word for name, value in options.items() for word in (f"--{name}", str(value))] + ["--quiet"]


def test_help_is_quick_and_does_not_import_torch():
    program = """
import sys
from jostle.cli import main
try:
    main(["--help"])
finally:
    assert "torch" not in sys.modules
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    for word in ("measure", "compare", "list", "demo", "does the prediction hold?"):
        assert word in done.stdout


@pytest.mark.parametrize("command", ["measure", "compare", "list", "demo"])
def test_every_command_has_help_that_teaches(capsys, command):
    code, out, _ = run(capsys, command, "--help")
    assert code == 0
    assert len(out.splitlines()) > 8
    assert "--json" in out


def test_the_help_says_of_the_half_width_what_the_rule_is(capsys):
    said = " ".join(run(capsys, "measure", "--help")[1].replace("│", " ").split())
    assert "to each side" not in said
    assert jostle.Until(half_width=0.01).is_met(0.001, 0.0, 0.02)  # 0.019 above the value, and half of its width


def test_the_help_names_every_kind_of_model_and_tables(capsys):
    said = " ".join(run(capsys, "measure", "--help")[1].replace("│", " ").split())
    for kind in ("py:", "hf:DIR", "onnx:FILE", "timm:", "torchvision:", "zoo:", "sample:", "Tables: columns"):
        assert kind in said
    assert "texts or a table of numbers" in said


def test_importing_jostle_does_not_import_torch():
    optional = "torch numpy pandas polars lightning torchmetrics transformers ray onnxruntime sklearn mlflow wandb yaml"
    program = f"import sys, jostle; assert not set({optional.split()}) & set(sys.modules)"
    subprocess.run([sys.executable, "-c", program], check=True)


def test_measure_prints_what_the_library_measures(capsys, folder):
    code, out, err = run(capsys, "measure", *basic(), "--draws", 2, "--json")
    record = json.loads(out)
    sys.path.insert(0, str(folder))
    import my_model

    expected = jostle.measure(
        my_model.make(),
        torch.from_numpy(np.load("inputs.npy")),
        tokens="coordinates",
        perturbation="gaussian-noise:1",
        plan="grid:2",
    )
    assert (code, err) == (0, "")
    assert record["value"] == expected.value
    assert (record["low"], record["high"]) == (expected.low, expected.high)


def test_measure_says_it_in_words_and_writes_a_file(capsys, folder):
    code, out, _ = run(capsys, "measure", *basic(), "--half-width", 0.05, "-o", "sub/result.json")
    assert code == 0
    assert "95% for the inputs given" in out
    assert "for the population the inputs came from" in out
    assert "written to" in out
    assert f"{jostle.load('sub/result.json').value:.4g}" in out


def test_compare_stops_when_the_order_is_decided(capsys, folder):
    models = ("--model", "one=py:my_model.py:make", "--model", "other=py:my_model.py:make")
    words = ("compare", *models, "--data", "inputs.npy", "--tokens", "coordinates", "--quiet", "--json")
    for rule in (("--until-decided", "--at-least", "0.1"), ("--plan", "until:decided=true,at_least=0.1")):
        code, out, _ = run(capsys, *words, *rule)
        assert code == 0
        found = json.loads(out)
        assert found["measurements"][0]["stopped"] == "decided"
        assert found["differences"][0]["verdict"] == "one and other differ by less than 0.1"
    for wrong in (
        ("--at-least", "0.1"),
        ("--until-decided", "--relative", "0.1"),
        ("--plan", "grid:1", "--draws", "2"),
    ):
        code, _, error = run(capsys, *words, *wrong)
        assert code == 2
        assert len(error.strip().splitlines()) == 1


def test_compare_names_models_and_pairs(capsys, folder):
    models = ("--model", "one=py:my_model.py:make", "--model", "two=py:my_model.py:make:classes=5")
    code, out, _ = run(capsys, "compare", *models, "--data", "inputs.npy", "--tokens", "coordinates", "--quiet")
    assert code == 0
    assert "one - two" in out
    code, out, _ = run(
        capsys, "compare", *models, "--data", "py:my_model:inputs", "--tokens", "coordinates", "--quiet", "--json"
    )
    assert [m["name"] for m in json.loads(out)["measurements"]] == ["one", "two"]


def test_zoo_models_take_sizes_and_weights(capsys, folder):
    torch.set_default_dtype(torch.float32)
    spec = "zoo:mlp:image_size=8,channels=1,classes=3"
    model = jostle.models.create("mlp", seed=1, image_size=8, channels=1, classes=3)
    jostle.training.save_weights(model, Path("w.safetensors"))
    save_file({"x": torch.randn(20, 1, 8, 8)}, "images.safetensors")
    words = (
        "measure",
        "--model",
        spec,
        "--weights",
        "w.safetensors",
        "--tokens",
        "patches:4",
        "--draws",
        1,
        "--json",
        "--quiet",
    )
    code, out, _ = run(capsys, *words, "--data", "images.safetensors", "--limit", 7)
    assert code == 0
    assert json.loads(out)["settings"]["num_inputs"] == 7
    assert json.loads(out)["settings"]["num_tokens"] == 4


def test_list_names_everything(capsys):
    code, out, _ = run(capsys, "list", "--json")
    found = json.loads(out)
    assert code == 0
    assert set(found) == {
        "models",
        "text-models",
        "bit-models",
        "datasets",
        "text-datasets",
        "corruptions",
        "tokens",
        "perturbations",
        "responses",
        "text-changes",
        "plans",
        "functions",
        "networks",
        "studies",
    }
    assert "gaussian-noise" in found["perturbations"]
    assert all(text for things in found.values() for text in things.values())
    code, out, _ = run(capsys, "list", "models")
    assert "vit-simple" in out
    assert "gaussian-noise" not in out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ("measure", "--model", "zoo:vit-smpl", "--data", "inputs.npy", "--tokens", "rows"),
            "did you mean vit-simple",
        ),
        (("measure", "--model", "resnet", "--data", "inputs.npy", "--tokens", "rows"), "must start with zoo: or py:"),
        (("measure", "--model", "py:nowhere:make", "--data", "inputs.npy", "--tokens", "rows"), "cannot be imported"),
        (("measure", "--model", "py:my_model.py:mak", "--data", "inputs.npy", "--tokens", "rows"), "has no 'mak'"),
        (("measure", "--model", "py:no.py:make", "--data", "inputs.npy", "--tokens", "rows"), "does not exist"),
        (
            ("measure", "--model", "py:my_model.py:broken", "--data", "inputs.npy", "--tokens", "rows"),
            "cannot be called",
        ),
        (("measure", *basic(tokens="patches:4")), "expected (channels, height, width)"),
        (("measure", *basic(data="nothing.npy")), "the file does not exist"),
        (("measure", *basic(data="mnst")), "unknown dataset 'mnst'; did you mean mnist"),
        (("measure", *basic(), "--perturbation", "gaussian-noise:-1"), "std=-1"),
        (("measure", *basic(), "--half-width", "0"), "half_width=0.0 must be"),
        (("measure", *basic(), "--half-width", "-1"), "half_width=-1.0 must be"),
        (("measure", *basic(), "--half-width", "x"), "half-width"),
        (("measure", *basic(), "--half-width", "0.1", "--draws", "3"), "give only one of --half-width, --draws"),
        (("measure", *basic(), "--max-passes", "9", "--draws", "3"), "give only one of --draws, --max-passes"),
        (("measure", *basic(), "--weights", "w.safetensors"), "is not an nn.Module"),
        (("measure", *basic(), "--output", "."), "is a directory"),
        (("measure", *basic(), "--limit", "0"), "--limit 0"),
        (("measure", *basic(), "--respnse", "flip"), "--respnse"),
        (("measure", "--data", "inputs.npy", "--tokens", "rows"), "--model"),
        (("compare", "--model", "zoo:mlp", "--model", "zoo:mlp", "--data", "x", "--tokens", "rows"), "twice"),
        (("compare", "--model", "a=zoo:mlp", "--model", "a=zoo:mlp", "--data", "x", "--tokens", "rows"), "twice"),
        (
            ("compare", "--model", "a=zoo:mlp", "--weights", "b=w", "--data", "x", "--tokens", "rows"),
            "no --model named 'b'",
        ),
        (("lst",), "lst"),
        (("list", "things"), "things"),
        (("demo", "--out", "inputs.npy", "--quick"), "is a file"),
    ],
)
def test_wrong_use_is_one_line_exit_code_2_and_writes_nothing(capsys, folder, words, message):
    before = sorted(folder.rglob("*.json"))
    code, out, err = run(capsys, *words)
    assert code == 2
    assert out == ""
    assert message in err
    assert err.count("\n") == 1
    assert "Traceback" not in err
    assert sorted(folder.rglob("*.json")) == before


@pytest.mark.parametrize("content", [b"", b"\x93NUMPY\x01\x00", b"not an array at all"])
@pytest.mark.parametrize("suffix", [".npy", ".npz", ".safetensors"])
def test_unreadable_and_truncated_data_files(capsys, folder, content, suffix):
    (folder / f"bad{suffix}").write_bytes(content)
    code, _, err = run(capsys, "measure", *basic(data=f"bad{suffix}"))
    assert code == 2
    assert f"cannot be read as {suffix}" in err
    assert err.count("\n") == 1


def test_a_pickled_array_is_refused(capsys, folder):
    np.save(folder / "objects.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    code, _, err = run(capsys, "measure", *basic(data="objects.npy"))
    assert code == 2
    assert "cannot be read" in err


def test_nan_inputs_are_counted(capsys, folder):
    broken = np.load("inputs.npy")
    broken[[3, 9], 0] = np.nan
    np.save("nan.npy", broken)
    code, _, err = run(capsys, "measure", *basic(data="nan.npy"))
    assert code == 2
    assert "2 of 50 inputs hold NaN or infinity (first: input 3)" in err


def test_a_model_that_raises_is_exit_code_1_and_debug_shows_where(capsys, folder):
    np.save("wide.npy", np.zeros((5, 9), dtype=np.float32))
    code, _, err = run(capsys, "measure", *basic(data="wide.npy"))
    assert code == 1
    assert "raised RuntimeError" in err
    assert err.count("\n") == 1
    code, _, err = run(capsys, "measure", *basic(data="wide.npy"), "--debug")
    assert code == 1
    assert "Traceback" in err


def test_a_full_disk_leaves_nothing(capsys, folder, monkeypatch):
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    code, _, err = run(capsys, "measure", *basic(), "--half-width", "0.1", "-o", "result.json")
    assert code == 1
    assert "No space left on device" in err
    assert not list(folder.glob("*result.json*"))


def test_ctrl_c_prints_what_is_known_and_exits_cleanly(folder):
    words = ("measure", "--model", "py:my_model.py:make:delay=0.02", "--data", "inputs.npy", "--tokens", "coordinates")
    command = [sys.executable, "-m", "jostle", *words, "--half-width", "0.0001"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        progress = process.stderr.readline()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
    assert re.search(r"0\.\d+ \[0\.\d+, 0\.\d+\]  [\d,]+ passes", progress)
    assert process.returncode == 130
    assert "interrupted: this is what was known by then" in out
    assert "Traceback" not in err


def test_ctrl_c_while_the_program_is_imported_is_one_line(capsys, monkeypatch):
    class Interrupting:
        def find_spec(self, name, path, target=None):
            if name == "jostle.cli.app":
                raise KeyboardInterrupt

    monkeypatch.delitem(sys.modules, "jostle.cli.app", raising=False)
    monkeypatch.setattr(sys, "meta_path", [Interrupting(), *sys.meta_path])
    assert run(capsys, "--help") == (130, "", "jostle: interrupted\n")


def test_ctrl_c_while_the_program_ends_is_silent(tmp_path):
    program = """
import atexit, os, signal, sys
from jostle.cli import main

atexit.register(lambda: os.kill(os.getpid(), signal.SIGINT))
sys.argv = ["jostle", "list", "things"]
main()
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 130
    assert done.stderr.startswith("jostle: ")
    assert done.stderr.count("\n") == 1


def test_ctrl_c_stays_what_it_was_for_python_callers(capsys):
    before = signal.getsignal(signal.SIGINT)
    run(capsys, "lst")
    assert signal.getsignal(signal.SIGINT) is before


def test_ctrl_c_before_anything_is_known_is_one_line(capsys, folder, monkeypatch):
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("jostle.cli.subject.load_model", interrupt)
    code, out, err = run(capsys, "measure", *basic())
    assert (code, out, err) == (130, "", "jostle: interrupted\n")


@pytest.mark.parametrize("command", [("measure",), ("sweep", "--stds", 1)])
def test_ctrl_c_before_the_first_draws_says_that_nothing_is_known(capsys, folder, command):
    program = """
calls = []
def stopping(x):
    calls.append(len(x))
    if sum(calls) > 250:  # inputs as they are have been answered
        raise KeyboardInterrupt
    return x
def make(): return stopping
"""
    (folder / "stopping.py").write_text(program)
    words = ("--model", "py:stopping.py:make", "--data", "inputs.npy", "--tokens", "coordinates", "--quiet")
    code, out, err = run(capsys, *command, *words, "-o", "r.json")
    assert (code, out) == (130, "")
    assert err == "jostle: interrupted before the first draws were done: nothing is known yet\n"
    assert not (folder / "r.json").exists()


def test_ctrl_c_where_python_cannot_raise_it_is_not_lost():
    """Python prints and forgets an interrupt that comes while it tidies up, as between two imports."""
    program = """
import signal
import sys
import jostle.cli.app

class Untidy:
    def __del__(self):
        signal.raise_signal(signal.SIGINT)

def listing(**_):
    Untidy()
    for _ in range(10**9):
        pass

jostle.cli.app.app.command(listing, name="untidy")
sys.argv = ["jostle", "untidy"]
jostle.cli.main()
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=60)
    assert (ended.returncode, ended.stdout, ended.stderr) == (130, "", "jostle: interrupted\n")


def test_help_beside_json_is_on_standard_output(capsys):
    for words in (("--version",), ("measure", "--help")):
        code, out, err = run(capsys, *words, "--json")
        assert (code, err) == (0, "")
        assert out


def test_words_too_many_are_not_called_tokens(capsys):
    code, _, err = run(capsys, "list", "models", "datasets")
    assert code == 2
    assert err.startswith("jostle: Words that are not understood: ['datasets'].")


def test_ctrl_c_inside_a_text_of_code_ends_a_module_with_130_too(tmp_path):
    (tmp_path / "stopped.py").write_text("def make():\n    exec('raise KeyboardInterrupt')\n")  # as dataclasses do
    words = ["measure", "--model", "py:stopped.py:make", "--data", "x.npy"]
    np.save(tmp_path / "x.npy", np.zeros((2, 3), dtype=np.float32))
    ended = subprocess.run(
        [sys.executable, "-m", "jostle", *words], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (130, "", "jostle: interrupted\n")


def test_ctrl_c_before_the_command_line_is_imported_is_one_line():
    program = """
import runpy
import sys

class Stop:
    def find_spec(self, name, *_):
        if name == "jostle.cli":
            raise KeyboardInterrupt

sys.meta_path.insert(0, Stop())
runpy.run_module("jostle", run_name="__main__")
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr) == (130, "", "jostle: interrupted\n")
