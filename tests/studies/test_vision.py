"""Training a network in a cell: what is recorded, and that a killed cell goes on where it was."""

import pytest
import torch

from jostle import measure, studies
from jostle.results import Store
from jostle.studies import Context
from jostle.studies.study import Cell
from jostle.studies.vision import following


@pytest.fixture(autouse=True)
def float32():
    """As the runner has it."""
    torch.set_default_dtype(torch.float32)
    yield
    torch.set_default_dtype(torch.float64)


@pytest.fixture
def study():
    return studies.get("2403.06925/figure-18")


def context(folder):
    folder.mkdir(exist_ok=True)
    return Context(folder=folder, report=lambda state: None)


CELL = Cell.of(network="mlp-leaky-relu", seed=3)


def test_a_record_follows_training_to_its_end(study, tmp_path):
    settings = study.scales["smoke"]
    record = study.measure(CELL, settings, context(tmp_path / "cell"))
    assert [epoch["epoch"] for epoch in record["epochs"]] == list(range(settings.max_epochs + 1))
    last = record["epochs"][-1]
    assert record["sensitivity"] == last["sensitivity"]["value"]
    assert record["low"] <= record["sensitivity"] <= record["high"]
    assert record["train_accuracy"] == last["accuracy"]
    assert last["sensitivity"]["passes"] > record["epochs"][0]["sensitivity"]["passes"]


def test_a_cell_that_was_stopped_ends_with_the_same_record(study, tmp_path, monkeypatch):
    settings = study.scales["smoke"]
    whole = study.measure(CELL, settings, context(tmp_path / "whole"))

    class Stop(BaseException):
        pass

    for stop_before in range(settings.max_epochs + 1):
        folder, appended = tmp_path / f"stopped-{stop_before}", []
        append = Store.append

        def stopping(self, key, record, append=append, appended=appended, stop_before=stop_before):
            if len(appended) == stop_before:
                raise Stop
            appended.append(key)
            append(self, key, record)

        monkeypatch.setattr(Store, "append", stopping)
        with pytest.raises(Stop):
            study.measure(CELL, settings, context(folder))
        monkeypatch.setattr(Store, "append", append)
        assert study.measure(CELL, settings, context(folder)) == whole


def test_networks_of_one_seed_see_the_same_images_and_noise(study, tmp_path, monkeypatch):
    seen = []

    def watched(model, images, **given):
        seen.append((images.sum().item(), given["perturbation"].describe(), given["plan"], given["seed"]))
        return measure(model, images, **given)

    monkeypatch.setattr(following, "measure", watched)
    settings = study.scales["smoke"]
    for name in settings.networks:
        study.measure(Cell.of(network=name, seed=7), settings, context(tmp_path / name))
    half = len(seen) // 2
    assert seen[:half] == seen[half:]
    assert {seed for *_, seed in seen} == {7}


@pytest.mark.filterwarnings("ignore:model gives one output")
def test_further_measurements_of_the_trained_network(tmp_path):
    study = studies.get("2403.06925/figure-13")
    settings = study.scales["smoke"]
    record = study.measure(Cell.of(network="mlp", seed=0), settings, context(tmp_path / "cell"))
    assert set(record["final"]) == set(settings.final)
    values = [final["value"] for final in record["final"].values()]
    assert values == sorted(values)  # more noise, more flips
