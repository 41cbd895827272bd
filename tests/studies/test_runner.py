"""A toy study run whole, in parts, by two processes, with failures, and through kills."""

import contextlib
import dataclasses
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
import torch

from jostle.base.errors import UsageError
from jostle.base.store import Store
from jostle.studies import STUDIES, CellsFailedError, Verdict, run, to_plain
from jostle.studies.folder import checkpoint_folder, only_here
from tests.studies.toys import Toy, ToySettings, alone_in_process, make_known


@pytest.fixture(autouse=True)
def _known(monkeypatch):
    make_known(monkeypatch)


def toy(out, scale="small", **options):
    return run(Toy.name, scale, out, **{"progress": False, **options})


def content(folder):
    """All records, without what may differ between two runs."""
    store = Store(folder / "records.jsonl")
    kept = {key: dict(store[key]) for key in store if not key.startswith("session/")}
    for record in kept.values():
        record.pop("seconds", None)
        record.pop("session", None)
    return kept


def attempts(folder, key):
    path = checkpoint_folder(folder, key) / "attempts.txt"
    return path.read_text().splitlines() if path.exists() else []


def test_a_study_ends_in_records_figures_and_a_verdict(tmp_path):
    result = toy(tmp_path)
    folder = tmp_path / "toy" / "noise" / "small"
    assert result.folder == folder
    assert {path.name for path in folder.iterdir()} == {
        "records.jsonl",
        "figures",
        "summary.json",
        ".lock",
        ".finished",
    }
    assert {path.name for path in (folder / "figures").iterdir()} == {"by-seed.svg", "again.svg"}
    store = Store(folder / "records.jsonl")
    assert next(iter(store)) == "study"
    assert store["study"]["version"] == 1
    assert store["session/0"]["provenance"]["torch"]
    assert [key for key in store if key.startswith("cell/")] == [
        f"cell/{model}/seed={seed}" for model in ("vit", "mlp") for seed in range(3)
    ]
    assert store["cell/vit/seed=0"]["values"] == {"model": "vit", "seed": 0}
    summary = json.loads((folder / "summary.json").read_text())
    assert summary == to_plain(result.summary)
    assert result.verdict == summary["verdict"] == "AGREES"
    assert [finding["verdict"] for finding in summary["findings"]] == ["AGREES", "AGREES"]
    assert summary["seeds"] == summary["usual_seeds"] == 3
    assert "toy/noise (small): AGREES" in str(result)


def test_a_wrong_claim_is_a_disagreement_and_smoke_is_undecided(tmp_path):
    assert toy(tmp_path, overrides={"gap": -10}).verdict == Verdict.DISAGREES
    assert toy(tmp_path, overrides={"gap": 0}).verdict == Verdict.UNDECIDED
    smoke = toy(tmp_path, "smoke", seeds=4)
    assert smoke.verdict == Verdict.UNDECIDED
    assert "smoke" in str(smoke)


def test_cells_do_not_see_what_the_caller_did_to_torch(tmp_path):
    torch.set_default_dtype(torch.float64)
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    random.seed(5)
    np.random.seed(5)  # noqa: NPY002
    result = toy(tmp_path / "a")
    record = result.records["vit/seed=0"]
    assert record.dtype == "torch.float32"
    assert record.threads == 1
    assert torch.get_default_dtype() == torch.float64
    assert torch.equal(torch.rand(3), expected)
    random.seed(6)
    np.random.seed(6)  # noqa: NPY002
    assert content(toy(tmp_path / "b").folder) == content(result.folder)


def test_a_second_run_does_nothing_and_more_seeds_add_only_theirs(tmp_path, monkeypatch):
    first = toy(tmp_path)
    before = (first.folder / "records.jsonl").read_bytes()
    with monkeypatch.context() as patch:
        patch.setattr(Toy, "measure", lambda *_: pytest.fail("work was done twice"))
        again = toy(tmp_path)
    assert (first.folder / "records.jsonl").read_bytes() == before
    assert again.summary == first.summary
    more = toy(tmp_path, seeds=4)
    assert (first.folder / "records.jsonl").read_bytes().startswith(before)
    assert len(more.records) == 8
    assert (more.summary.seeds, more.summary.usual_seeds) == (4, 3)
    assert content(more.folder) == content(toy(tmp_path / "at once", seeds=4).folder) | content(more.folder)
    assert len(toy(tmp_path).records) == 6  # fewer again: only those asked for


def test_order_does_not_matter(tmp_path, monkeypatch):
    straight = toy(tmp_path / "a")
    cells = Toy.cells
    with monkeypatch.context() as patch:
        patch.setattr(Toy, "cells", lambda *arguments: cells(*arguments)[::-1])
        backwards = toy(tmp_path / "b")
    assert list(content(straight.folder)) != list(content(backwards.folder))
    assert content(straight.folder) == content(backwards.folder)


def test_two_workers_give_the_same_records(tmp_path):
    states = []
    two = toy(tmp_path / "two", workers=2, progress=states.append, overrides={"size": 6})
    one = toy(tmp_path / "one", overrides={"size": 6})
    assert content(two.folder) == content(one.folder)
    assert two.summary.findings == one.summary.findings
    assert [state.passes for state in states][-1] == 6
    assert states[-1].share == 1.0


@pytest.mark.slow
def test_a_cell_that_kills_its_process_costs_only_itself(tmp_path):
    """One cell raises, one kills its process, one sends it Ctrl-C in vain; the others are those of one process."""
    options = {"broken": ("mlp/seed=2",), "deadly": "mlp/seed=0", "interrupting": "vit/seed=1"}
    with pytest.raises(CellsFailedError) as failed:
        toy(tmp_path / "two", workers=2, overrides=options)
    assert sorted(str(failed.value).splitlines()[1:]) == [
        "  mlp/seed=0: its process died (killed by signal 9), 3 times; if memory ran out, use fewer workers",
        "  mlp/seed=2: ValueError: cannot do mlp/seed=2, sorry",
    ]
    [folder] = (tmp_path / "two" / "toy" / "noise").iterdir()
    assert not (folder / "summary.json").exists()
    one, two = content(toy(tmp_path / "one").folder), content(folder)
    del one["study"], two["study"]
    assert two == {key: record for key, record in one.items() if key not in ("cell/mlp/seed=0", "cell/mlp/seed=2")}


def test_a_study_of_a_script_runs_in_other_processes_too(tmp_path, monkeypatch):
    class Local(Toy):  # no other process could import it
        pass

    monkeypatch.setitem(STUDIES._things, Toy.name, Local)
    assert content(toy(tmp_path / "two", workers=2).folder) == content(toy(tmp_path / "one").folder)


def test_a_study_that_cannot_be_pickled_is_one_clear_line(tmp_path, monkeypatch):
    class Local(Toy):
        lock = threading.Lock()

    monkeypatch.setitem(STUDIES._things, Toy.name, Local)
    with pytest.raises(UsageError, match=r"cannot be sent to other processes .*lock"):
        toy(tmp_path, workers=2)


def test_a_failing_cell_costs_only_itself_and_is_tried_again(tmp_path, monkeypatch):
    measure = Toy.measure

    def failing(self, cell, settings, context):
        if cell.model == "vit":
            raise ValueError(f"no\nluck with {'seed 0' if cell.seed == 0 else 'it'}")
        return measure(self, cell, settings, context)

    with monkeypatch.context() as patch:
        patch.setattr(Toy, "measure", failing)
        with pytest.raises(CellsFailedError) as failed:
            toy(tmp_path, seeds=6)
    assert str(failed.value).splitlines() == [
        "6 of 12 cells of toy/noise failed; the others are kept, start again to retry",
        "  vit/seed=0: ValueError: no luck with seed 0",
        "  vit/seed=1, vit/seed=2, vit/seed=3 and 2 more: ValueError: no luck with it",
    ]
    assert failed.value.exit_code == 1
    assert "in failing" in "".join(failed.value.__notes__)
    folder = tmp_path / "toy" / "noise" / "small"
    assert not (folder / "summary.json").exists()
    assert sum(key.startswith("cell/") for key in content(folder)) == 6
    assert toy(tmp_path, seeds=6).verdict == Verdict.AGREES
    assert content(folder) == content(toy(tmp_path / "whole", seeds=6).folder)


def test_warnings_are_kept_with_the_result(tmp_path):
    result = toy(tmp_path, overrides={"verbose": True})
    assert result.summary.warnings[0] == "UserWarning: mind vit (vit/seed=0)"
    assert len(result.summary.warnings) == 6


def test_modified_settings_are_labelled_and_kept_apart(tmp_path):
    usual, changed = toy(tmp_path), toy(tmp_path, overrides={"size": "6"})
    assert usual.folder != changed.folder
    assert changed.folder.name.startswith("small-modified-")
    assert changed.summary.modified == {"size": 6}
    assert "modified: size=6" in str(changed)
    assert toy(tmp_path, overrides={"size": 4}).folder == usual.folder  # its own value is no modification
    assert usual.summary.modified == {}
    assert toy(tmp_path, overrides={"size": 7}).folder not in (usual.folder, changed.folder)


def test_records_of_another_version_or_other_settings_are_not_mixed(tmp_path, monkeypatch):
    first = toy(tmp_path)
    monkeypatch.setattr(Toy, "version", 2)
    with pytest.raises(UsageError, match=r"holds records with version 1, now it is 2; --fresh puts them aside"):
        toy(tmp_path)
    anew = toy(tmp_path, fresh=True)
    assert anew.folder == first.folder
    assert anew.summary.version == 2
    [aside] = [path for path in first.folder.parent.iterdir() if path != first.folder]
    assert Store(aside / "records.jsonl")["study"]["version"] == 1
    monkeypatch.setattr(Toy, "scales", {**Toy.scales, "small": dataclasses.replace(ToySettings(), size=5)})
    with pytest.raises(UsageError, match=r"with settings \{'size': 4\}, now it is \{'size': 5\}"):
        toy(tmp_path)


def test_records_stay_valid_when_a_study_can_choose_more(tmp_path, monkeypatch):
    @dataclasses.dataclass(frozen=True, kw_only=True)
    class More(ToySettings):
        also: tuple[str, ...] = ()

    first = toy(tmp_path)
    monkeypatch.setattr(Toy, "scales", {**Toy.scales, "small": More()})
    again = toy(tmp_path)
    assert again.folder == first.folder
    assert [cell for cell, _ in again.records] == [cell for cell, _ in first.records]
    monkeypatch.setattr(Toy, "scales", {**Toy.scales, "small": More(also=("x",))})
    with pytest.raises(UsageError, match=r"now it is \{'also': \['x'\]\}"):
        toy(tmp_path)


def test_fresh_in_a_new_place_leaves_nothing_odd(tmp_path):
    assert [path.name for path in toy(tmp_path, fresh=True).folder.parent.iterdir()] == ["small"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"scale": "huge"}, "unknown scale 'huge'"),
        ({"seeds": 0}, "seeds=0 must be a whole number from 1"),
        ({"seeds": 10**12}, "seeds=1000000000000 must be a whole number from 1 to 10000"),
        ({"workers": 0}, "workers=0 must"),
        ({"overrides": {"siez": 1}}, "did you mean size"),
    ],
)
def test_wrong_use_writes_nothing(tmp_path, options, message):
    with pytest.raises(UsageError, match=message):
        toy(tmp_path, **options)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_has_one_writer_and_only_records_of_studies(tmp_path):
    folder = toy(tmp_path).folder
    with only_here(folder), pytest.raises(UsageError, match="in use by another run"):
        toy(tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="cannot be written"):
        toy(tmp_path / "file")
    foreign = tmp_path / "foreign" / "toy" / "noise" / "small" / "records.jsonl"
    Store(foreign).append("settings", {})
    with pytest.raises(UsageError, match="records that are no study's"):
        toy(tmp_path / "foreign")


def test_checkpoints_stay_while_a_cell_is_unfinished_or_if_the_study_keeps_them(tmp_path, monkeypatch):
    measure = Toy.measure

    def interrupted(self, cell, settings, context):
        measure(self, cell, settings, context)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Toy, "measure", interrupted)
        with pytest.raises(KeyboardInterrupt):
            toy(tmp_path)
    folder = tmp_path / "toy" / "noise" / "small"
    assert len(attempts(folder, "vit/seed=0")) == 1
    with monkeypatch.context() as patch:
        patch.setattr(Toy, "keeps_checkpoints", True)
        toy(tmp_path)
    assert len(attempts(folder, "vit/seed=0")) == 2
    toy(tmp_path)  # a study that no longer keeps them cleans up
    assert not (folder / "checkpoints").exists()


def test_checkpoint_folders_are_safe_and_different(tmp_path):
    keys = ["a/b", "a_b", "../a", "..", "a" * 300, "a" * 299, "ä"]
    found = [checkpoint_folder(tmp_path, key) for key in keys]
    assert len(set(found)) == len(keys)
    for path in found:
        path.mkdir(parents=True)
        assert path.resolve().parent == tmp_path / "checkpoints"


def is_running(process):
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


def wait_for(condition, seconds=60.0):
    ends = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < ends
        time.sleep(0.01)


@pytest.mark.parametrize(
    ("stop", "workers"),
    [
        (signal.SIGKILL, 1),
        pytest.param(signal.SIGKILL, 2, marks=pytest.mark.slow),
        pytest.param(signal.SIGINT, 2, marks=pytest.mark.slow),
    ],
)
def test_a_stopped_run_keeps_what_is_done_and_ends_with_the_same_records(tmp_path, stop, workers):
    """Stopped after two cells: workers end too, and going on gives what a whole run gives."""
    options = {"overrides": {"delay": 0.1, "size": 5}, "seeds": 4}
    program = alone_in_process("sys.argv[1]", workers=workers, **options)
    script = tmp_path / "program.py"
    script.write_text(program)
    process = subprocess.Popen([sys.executable, script, tmp_path / "runs"], stderr=subprocess.PIPE, text=True)
    started = set()

    def well_under_way():
        assert process.poll() is None, process.stderr.read()
        with contextlib.suppress(FileNotFoundError):  # a cell has just been recorded
            for path in tmp_path.glob("runs/toy/noise/*/checkpoints/*/attempts.txt"):
                started.update(int(pid) for pid in path.read_text().split())
        lines = sum(path.read_bytes().count(b"\n") for path in tmp_path.glob("runs/toy/noise/*/records.jsonl"))
        return lines >= 4 and started

    try:
        wait_for(well_under_way)
        process.send_signal(stop)
        _, errors = process.communicate(timeout=30)
    finally:
        process.kill()
    assert process.returncode in (-signal.SIGKILL, -signal.SIGINT)
    # Python's own helper process may note that it cleans up after a kill; anything else would be ours.
    ours = [line for line in errors.splitlines() if "resource_tracker" not in line and "warnings.warn" not in line]
    assert not ours or (stop == signal.SIGINT and errors.strip().endswith("KeyboardInterrupt"))
    wait_for(lambda: not any(map(is_running, started)), seconds=10)
    [folder] = (tmp_path / "runs" / "toy" / "noise").iterdir()
    kept = content(folder)
    assert 3 <= len(kept) < 9
    whole = content(toy(tmp_path / "whole", **options).folder)
    assert content(toy(tmp_path / "runs", **options).folder) == whole
    assert kept.items() <= whole.items()


def test_what_all_findings_share_is_said_once(tmp_path):
    said = str(toy(tmp_path, "smoke"))
    assert said.count("  UNDECIDED: ") == 2
    assert said.count("smoke scale shows that it runs and decides nothing") == 1
