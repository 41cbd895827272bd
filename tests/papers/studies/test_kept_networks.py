"""Kept networks: which code they depend on, and what becomes of damaged ones."""

import json
import shutil
import sys

import pytest
import torch
from safetensors.torch import save_file

import jostle
from jostle import FailureError
from jostle_papers.trained import networks


@pytest.fixture
def package(tmp_path, monkeypatch):
    folder = tmp_path / "made_up_code"
    folder.mkdir()
    (folder / "__init__.py").write_text('"""Code."""\n\nFACTOR = 2\n')
    monkeypatch.syspath_prepend(tmp_path)
    yield folder
    sys.modules.pop("made_up_code", None)


def code_of(*packages):
    return networks._code.__wrapped__(packages)


def test_a_package_that_does_not_exist_is_an_error():
    with pytest.raises(FailureError, match=r"code of jostle\.renamed decides trained networks, but there is no such"):
        code_of("jostle.models", "jostle.renamed")


def test_every_package_of_the_keys_exists():
    for packages in (networks._DECIDING, networks._LOWERING, networks._MEASURING):
        assert code_of(*packages)


def test_what_people_read_does_not_count(package):
    before = code_of("made_up_code")
    (package / "__init__.py").write_text('"""Code, better explained."""\n# A comment.\nFACTOR = 2\n')
    assert code_of("made_up_code") == before


def test_what_the_machine_reads_counts(package):
    before = code_of("made_up_code")
    (package / "__init__.py").write_text('"""Code."""\n\nFACTOR = 3\n')
    changed = code_of("made_up_code")
    (package / "more.py").write_text('"""More."""\n')
    assert len({before, changed, code_of("made_up_code")}) == 3


def damage_weights(path):
    content = bytearray(path.read_bytes())
    content[-100] ^= 4
    path.write_bytes(content)


DAMAGE = {
    "a flipped bit": damage_weights,
    "cut off": lambda path: path.write_bytes(path.read_bytes()[:-50]),
    "empty": lambda path: path.write_bytes(b""),
    "foreign": lambda path: save_file({"weight": torch.zeros(3)}, path),
}


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """The folder of a finished smoke run, and its records."""
    out = tmp_path_factory.mktemp("runs")
    return out, values(jostle.run("2403.06925/figure-18", scale="smoke", out=out))


def values(result):
    lines = [json.loads(line) for line in (result.folder / "records.jsonl").read_text().splitlines()]
    return {line["key"]: line["record"]["record"] for line in lines if line["key"].startswith("cell/")}


def again(trained, tmp_path):
    """A copy of the run whose records are gone and whose networks are kept."""
    shutil.copytree(trained[0], tmp_path / "runs")
    shutil.rmtree(tmp_path / "runs" / "2403.06925")
    return tmp_path / "runs"


@pytest.mark.parametrize("kind", DAMAGE)
def test_a_damaged_network_is_set_aside_and_trained_again(trained, tmp_path, kind):
    out = again(trained, tmp_path)
    for path in out.glob("networks/*/training.safetensors"):
        DAMAGE[kind](path)
    result = jostle.run("2403.06925/figure-18", scale="smoke", out=out)
    assert values(result) == trained[1]
    kept = list(out.glob("networks/*/training.safetensors.damaged-1"))
    assert len(kept) == len(trained[1])
    assert len([text for text in result.summary.warnings if "it was kept as" in text]) == len(kept)


@pytest.mark.parametrize("line", ["garbage", '{"key": "epoch 0", "record": {}}'])
def test_damaged_measurements_are_set_aside_and_made_again(trained, tmp_path, line):
    out = again(trained, tmp_path)
    for path in out.glob("networks/*/measured-*.jsonl"):
        path.write_text(line + "\n")
    assert values(jostle.run("2403.06925/figure-18", scale="smoke", out=out)) == trained[1]


def test_measurements_of_another_network_are_set_aside_and_made_again(trained, tmp_path):
    out = again(trained, tmp_path)
    first, second = sorted(out.glob("networks/*/measured-*.jsonl"))[:2]
    shutil.copy(second, first)
    assert values(jostle.run("2403.06925/figure-18", scale="smoke", out=out)) == trained[1]


def test_a_file_where_networks_should_be_kept_is_one_line(tmp_path):
    (tmp_path / "networks").write_text("")
    with pytest.raises(FailureError, match="no network can be kept in"):
        jostle.run("2403.06925/figure-18", scale="smoke", out=tmp_path)
