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


@pytest.mark.parametrize(
    ("keys", "value"),
    [
        ("value", 7),
        ("value", True),
        ("passes", -1),
        ("passes", 0.5),
        ("trials", -1),
        ("nonfinite", "none"),
        ("notes", "a text"),
        ("warnings", {"a": 1}),
        ("warnings", [1]),
        ("name", None),
        ("name", 7),
        ("seconds", -0.5),
        ("low", 0.9),
        ("level", 0.5),
        ("dataset.level", 7),
        ("dataset.low", 7),
        ("population.high", "1"),
        ("settings.level", 7),
        ("settings.seed", "zero"),
        ("settings.tokens", 7),
        ("settings.response", [1]),
        ("settings.num_inputs", -1),
        ("profile.values", [1]),
        ("profile.counts", 7),
        ("profile.counts", [-1, 1, 1, 1]),
        ("profile.positions", [7]),
        ("profile.positions", ["4"]),
        ("profile.target", "text"),
        ("profile.method", None),
        ("per_input", [1]),
    ],
)
def test_a_number_of_another_kind_or_size_is_one_clear_line(saved, keys, value):
    record = json.loads(saved.read_text())
    *path, last = keys.split(".")
    part = record
    for key in path:
        part = part[key]
    part[last] = value
    saved.write_text(json.dumps(record))
    with pytest.raises(UsageError, match=r"lacks or garbles .*; was it edited\?") as error:
        jostle.load(saved)
    assert "\n" not in str(error.value)


def test_numbers_that_stand_in_a_file_twice_must_agree(tmp_path):
    models = {"sum": lambda x: x.sum(dim=1), "first": lambda x: x[:, 0]}
    made = {"tokens": "coordinates", "perturbation": "sign-flip", "plan": "grid:1"}
    jostle.compare(models, torch.randn(10, 4), **made).save(tmp_path / "c.json")
    record = json.loads((tmp_path / "c.json").read_text())
    record["differences"][0]["verdict"] = "sum is the best"
    (tmp_path / "c.json").write_text(json.dumps(record))
    with pytest.raises(UsageError, match=r"differences\.verdict, which is 'sum is the best'"):
        jostle.load(tmp_path / "c.json")


def test_keys_that_others_add_are_passed_over(saved):
    record = json.loads(saved.read_text())
    saved.write_text(json.dumps(record | {"accuracy": 0.5}))
    assert jostle.load(saved).value == record["value"]


def test_certificates_of_another_number_of_inputs_are_one_clear_line(tmp_path):
    jostle.certify(lambda x: x[:, :2], torch.randn(3, 4), std=1.0, draws=20).save(tmp_path / "c.json")
    record = json.loads((tmp_path / "c.json").read_text())
    (tmp_path / "c.json").write_text(json.dumps(record | {"radii": [1.0]}))
    with pytest.raises(UsageError, match="do not fit each other; was it edited"):
        jostle.load(tmp_path / "c.json")
