import json

import pytest
import torch

import jostle
from jostle.base.errors import UsageError


@pytest.fixture
def saved(tmp_path):
    m = jostle.measure(
        lambda x: x.sum(dim=1), torch.randn(10, 4), tokens="coordinates", perturbation="sign-flip", plan="grid:1"
    )
    m.save(tmp_path / "m.json")
    return tmp_path / "m.json"


def test_truncated_files_are_one_clear_line(saved):
    text = saved.read_text()
    saved.write_text(text[: len(text) // 2])
    with pytest.raises(UsageError, match=r"is not whole JSON .* was it cut off"):
        jostle.load(saved)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda r: r.pop("value"), "lacks or garbles 'value'"),
        (lambda r: r.update(kind="other"), "not a jostle result"),
        (lambda r: r.update(version=99), "has version 99"),
        (lambda r: r["settings"].update(extra=1), "lacks or garbles"),
        (lambda r: r["profile"].pop("low"), "lacks or garbles 'low'"),
    ],
)
def test_foreign_or_edited_files_are_one_clear_line(saved, change, message):
    record = json.loads(saved.read_text())
    change(record)
    saved.write_text(json.dumps(record))
    with pytest.raises(UsageError) as error:
        jostle.load(saved)
    assert message in str(error.value)


def test_json_that_is_no_record(tmp_path):
    (tmp_path / "list.json").write_text("[1, 2]")
    with pytest.raises(UsageError, match="not a jostle result"):
        jostle.load(tmp_path / "list.json")


def test_a_result_is_not_written_over_a_directory(saved):
    m = jostle.load(saved)
    with pytest.raises(UsageError, match="is a directory"):
        m.save(saved.parent)
