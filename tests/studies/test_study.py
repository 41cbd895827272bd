import dataclasses

import pytest

from jostle.base.errors import UsageError
from jostle.studies import STUDIES, Cell, Records, Settings, get, names, register
from jostle.studies.settings import modified_settings, override_settings, plain_settings
from jostle.studies.study import make_cells
from tests.studies.toys import Toy, ToyCell, ToyRecord, ToySettings


@pytest.fixture
def catalogue(monkeypatch):
    monkeypatch.setitem(vars(STUDIES), "_published", {})
    monkeypatch.setattr(STUDIES, "_things", {})


def declared(**attributes):
    """A study class with some attributes changed."""
    return type("Changed", (Toy,), attributes)


def test_a_registered_study_is_found_by_name_and_a_wrong_name_gets_near_matches(catalogue):
    assert register(Toy) is Toy
    assert names() == ["toy/noise"]
    assert isinstance(get("toy/noise"), Toy)
    with pytest.raises(UsageError, match=r"unknown study 'toy/nose'; did you mean toy/noise\?"):
        get("toy/nose")
    with pytest.raises(UsageError, match="already taken"):
        register(Toy)


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ({"name": "Figure 4"}, "expected paper/item in lower case"),
        ({"name": "a/../b"}, "expected paper/item"),
        ({"claim": " "}, "has claim=' '; expected text"),
        ({"source": None}, "has source=None"),
        ({"version": 0}, "has version=0"),
        ({"version": True}, "has version=True"),
        ({"deviations": "one"}, "expected a list of sentences"),
        ({"measure": lambda *_: None}, "must annotate measure with the type of its records"),
        ({"record_type": dict}, "a frozen dataclass that inherits from Struct"),
        (
            {"scales": {"smoke": ToySettings()}},
            r"has scales for \['smoke'\]; expected Settings for smoke, small, paper",
        ),
        ({"scales": dict.fromkeys(("smoke", "small", "paper"), 3)}, "expected Settings"),
        (
            {"scales": dict.fromkeys(("smoke", "small", "paper"), dataclasses.replace(ToySettings(), label={1}))},
            "cannot become JSON",
        ),
    ],
)
def test_a_study_that_does_not_say_enough_is_refused(catalogue, attributes, message):
    with pytest.raises(UsageError, match=message):
        register(declared(**attributes))
    assert names() == []


@dataclasses.dataclass(frozen=True)
class SweepCell(Cell):
    model: str
    n: int
    std: float
    causal: bool


@dataclasses.dataclass(frozen=True)
class CountCell(Cell):
    seeds: int


def test_cells_have_readable_keys_and_must_be_unique():
    assert SweepCell("vit", n=10, std=0.1, causal=True).key == "vit/n=10/std=0.1/causal=True"
    assert [cell.key for cell in make_cells(Toy(), ToySettings(), range(2))] == [
        "vit/seed=0",
        "vit/seed=1",
        "mlp/seed=0",
        "mlp/seed=1",
    ]
    with pytest.raises(UsageError, match="more than one cell with the key 'vit/seed=0'"):
        make_cells(Toy(), ToySettings(models=("vit", "vit")), range(2))
    with pytest.raises(UsageError, match="no cells"):
        make_cells(Toy(), ToySettings(models=()), range(2))


def test_settings_are_replaced_by_values_of_their_own_type():
    changes = {"gap": "3", "stds": "1/2", "size": "7", "label": "12", "verbose": "true", "models": "vit,cnn"}
    new = override_settings(ToySettings(), changes)
    assert (new.gap, new.stds, new.size, new.label, new.verbose) == (3.0, (1.0, 2.0), 7, "12", True)
    assert isinstance(new.gap, float)
    assert new.models == ("vit", "cnn")
    assert override_settings(ToySettings(), {"stds": "2", "size": 3}).stds == (2.0,)
    assert override_settings(ToySettings(), {"stds": [3, 4.5]}).stds == (3.0, 4.5)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"siez": 1}, r"unknown setting 'siez'; did you mean size\?"),
        ({"size": "2.5"}, "setting size='2.5' must be int, as in the study's own size=4"),
        ({"size": True}, "setting size=True must be int"),
        ({"verbose": 1}, "must be bool"),
        ({"stds": "a/b"}, r"must be tuple\[float, \.\.\.\]"),
        ({"gap": "wide"}, "must be float"),
        ({"seeds": 4}, "--seeds 4"),
    ],
)
def test_a_wrong_setting_is_one_clear_line(change, message):
    with pytest.raises(UsageError, match=message):
        override_settings(ToySettings(), change)


def test_seeds_are_no_part_of_what_must_stay_the_same():
    assert plain_settings(Settings(seeds=9)) == {}
    assert modified_settings(ToySettings(), ToySettings(seeds=9)) == {}
    assert modified_settings(ToySettings(), ToySettings(stds=(1.0,))) == {"stds": [1.0]}


def toy_record(sensitivity):
    return ToyRecord(sensitivity=sensitivity, dtype="", threads=1, other=(0.0, 0.0))


def value(record):
    return record.sensitivity


@pytest.fixture
def records():
    cells = make_cells(Toy(), ToySettings(), range(3))
    backwards = {cell.key: toy_record(number) for number, cell in reversed(list(enumerate(cells)))}
    return Records(cells, backwards, ToySettings(), "small")


def test_records_are_chosen_by_the_values_of_cells_and_keep_the_order_of_the_study(records):
    assert records.column(value) == [0, 1, 2, 3, 4, 5]
    mlp = records.where(model="mlp")
    assert [cell.key for cell, _ in mlp] == ["mlp/seed=0", "mlp/seed=1", "mlp/seed=2"]
    assert mlp.by("seed", value) == {0: 3, 1: 4, 2: 5}
    assert records.distinct("model") == ["vit", "mlp"]
    assert records.one(model="vit", seed=2) == toy_record(2)
    assert records["mlp/seed=0"] == records[ToyCell("mlp", 0)] == toy_record(3)
    assert len(records.where(model="cnn")) == 0
    assert records.where(model="cnn").by("seed", value) == {}
    assert mlp.settings == ToySettings()
    assert mlp.scale == "small"


def test_records_that_are_not_there_are_named(records):
    with pytest.raises(UsageError, match=r"unknown value of a cell 'modle'; did you mean model\?"):
        records.where(modle="vit")
    with pytest.raises(UsageError, match="more than one cell has seed=0"):
        records.by("seed", value)
    with pytest.raises(UsageError, match=r"3 cells have \{'model': 'vit'\}; expected exactly one"):
        records.one(model="vit")


def broken_promises(study):
    """What a study does not keep of the contract that the runner relies on."""
    found = []
    for scale, settings in study.scales.items():
        few, more = ([cell.key for cell in make_cells(study, settings, range(count))] for count in (3, 4))
        if not set(few) <= set(more):
            found.append(f"{study.name} {scale}: one more seed changes the cells of the others")
        if few != [cell.key for cell in make_cells(study, settings, range(3))]:
            found.append(f"{study.name} {scale}: the cells are not the same twice")
    return found


def test_every_study_keeps_the_contract():
    assert [promise for study in [Toy(), *map(get, names())] for promise in broken_promises(study)] == []


def test_a_broken_contract_is_noticed(monkeypatch):
    monkeypatch.setattr(Toy, "cells", lambda _, settings, seeds: [CountCell(len(seeds))])
    assert broken_promises(Toy())[0] == "toy/noise smoke: one more seed changes the cells of the others"
