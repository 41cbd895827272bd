"""Training a network in a cell: what is recorded, and that a killed cell goes on where it was."""

import dataclasses
import math

import pytest
import torch

from jostle import data, measure, models, studies
from jostle.base.errors import UsageError
from jostle.base.store import Store
from jostle.studies import Context, Verdict, is_below, over_seeds
from jostle.tokens import Patches
from jostle_papers import trained
from jostle_papers.trained import EpochRecord, TrainingCell, course, networks, questions
from jostle_papers.trained.records import PredictedShare
from jostle_papers.trained.settings import FROM_DATA, NORMAL, UNIFORM
from tests.papers.studies.made_up import sensitivity, trained_record


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


CELL = TrainingCell("mlp-leaky-relu", 3)


def test_a_record_follows_training_to_its_end(study, tmp_path):
    settings = study.scales["smoke"]
    record = study.measure(CELL, settings, context(tmp_path / "cell"))
    assert [epoch.epoch for epoch in record.epochs] == list(range(settings.max_epochs + 1))
    last = record.epochs[-1]
    assert record.sensitivity == last.sensitivity.value
    assert record.low <= record.sensitivity <= record.high
    assert record.train_accuracy == last.accuracy
    assert last.sensitivity.passes > record.epochs[0].sensitivity.passes


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

    monkeypatch.setattr(questions, "measure", watched)
    settings = study.scales["smoke"]
    for name in settings.networks:
        study.measure(TrainingCell(name, 7), settings, context(tmp_path / name))
    half = len(seen) // 2
    assert seen[:half] == seen[half:]
    assert {seed for *_, seed in seen} == {7}


@pytest.mark.filterwarnings("ignore:model gives one output")
def test_further_measurements_of_the_trained_network(tmp_path):
    study = studies.get("2403.06925/figure-13")
    settings = study.scales["smoke"]
    record = study.measure(TrainingCell("mlp", 0), settings, context(tmp_path / "cell"))
    assert set(record.final) == set(settings.final)
    values = [final.value for name, final in record.final.items() if "added" in name]
    assert len(values) == 4
    assert values == sorted(values)  # more noise, more flips
    assert record.final[f"replaced by {FROM_DATA}"].value == record.sensitivity  # the study's own


def test_tokens_of_the_data_are_those_of_the_images():
    images, view = data.load("mnist-5000", "train", 3), Patches(7)
    found = questions.vocabulary(FROM_DATA, view, images, 0)
    assert found.shape == (3 * 16, 49)
    assert torch.equal(found[16 + 5], images.inputs[1, 0, 7:14, 7:14].reshape(-1))  # place 5 of the second image


def test_drawn_tokens_have_their_distribution_and_depend_on_the_seed():
    images, view = data.load("mnist-5000", "train", 3), Patches(7)
    normal, uniform = (questions.vocabulary(name, view, images, 0) for name in (NORMAL, UNIFORM))
    assert normal.shape == uniform.shape == (10_000, 49)
    assert normal.mean().item() == pytest.approx(0, abs=0.01)
    assert normal.std().item() == pytest.approx(1, abs=0.01)
    assert uniform.min().item() == pytest.approx(-1, abs=0.001)
    assert uniform.var().item() == pytest.approx(1 / 3, abs=0.01)
    assert not torch.equal(normal, questions.vocabulary(NORMAL, view, images, 1))
    with pytest.raises(UsageError, match="unknown replaced_by 'normal'"):
        questions.vocabulary("normal", view, images, 0)


def test_the_key_of_a_replacement_says_by_what():
    settings = studies.get("2403.06925/figure-13").scales["smoke"]
    images = settings.load("train", None, 0)
    keys = {questions.ask_sensitivity("end", noise, 10, settings, images, 0).key for noise in settings.final.values()}
    assert len(keys) == len(settings.final)
    assert "end, patches:7, replaced by tokens of the data, 10 passes" in keys


def test_the_seed_draws_the_training_inputs_where_asked_for():
    settings = dataclasses.replace(studies.get("2403.06925/figure-18").scales["smoke"], limit=50)
    same = [settings.load("train", None, seed).inputs for seed in (0, 1)]
    assert torch.equal(*same)
    by_seed = dataclasses.replace(settings, data_by_seed=True)
    first, again, second = (by_seed.load("train", None, seed).inputs for seed in (3, 3, 4))
    assert torch.equal(first, again)
    assert not torch.equal(first, second)
    assert torch.equal(*(by_seed.load("test", None, seed).inputs for seed in (3, 4)))  # unseen inputs are shared


def test_the_seed_draws_the_training_texts_where_asked_for():
    settings = studies.get("2403.06925/language-equal-rates").scales["smoke"]
    first, second = (settings.load("train", None, seed) for seed in (0, 1))
    assert first.inputs.shape[0] == second.inputs.shape[0] == settings.limit
    assert first.labels.sum() == second.labels.sum() == settings.limit / 2
    assert not torch.equal(first.inputs, second.inputs)
    fixed = dataclasses.replace(settings, data_by_seed=None)
    assert torch.equal(*(fixed.load("train", None, seed).inputs for seed in (0, 1)))


def epochs_of(*points):
    """Epochs of (accuracy, sensitivity), the latter None where it was not measured."""
    return tuple(
        EpochRecord(
            epoch=number, loss=1.0, accuracy=accuracy, sensitivity=None if value is None else sensitivity(value)
        )
        for number, (accuracy, value) in enumerate(points)
    )


def test_sensitivity_where_an_accuracy_was_first_reached():
    cells = [TrainingCell("a", seed) for seed in range(3)]
    runs = [
        epochs_of((0.5, 0.1), (0.96, 0.2), (0.97, 0.3)),
        epochs_of((0.5, 0.1), (0.96, None), (0.97, 0.3)),  # the first that was measured
        epochs_of((0.5, 0.1), (0.6, 0.2)),  # never
    ]
    records = {cell.key: trained_record(epochs=run) for cell, run in zip(cells, runs, strict=True)}
    found = trained.at_accuracy(studies.Records(cells, records, trained.TrainingSettings(), "small"), "a", 0.95)
    assert found == {0: 0.2, 1: 0.3}
    assert trained.in_common({0: 1.0, 2: 3.0}, found) == ({0: 1.0}, {0: 0.2})


def test_milestones_are_measured_at_the_first_epoch_that_reaches_them(study, tmp_path, monkeypatch):
    monkeypatch.setattr(course, "MEASURED_AFTER", frozenset())
    settings = dataclasses.replace(study.scales["smoke"], max_epochs=5, milestones=(0.15, 0.25))
    *before, last = study.measure(CELL, settings, context(tmp_path / "cell")).epochs
    assert last.sensitivity is not None
    accuracies = [epoch.accuracy for epoch in before]
    first = {next(i for i, reached in enumerate(accuracies) if reached >= m) for m in settings.milestones}
    assert {epoch.epoch for epoch in before if epoch.sensitivity is not None} == first
    assert len(first) < len(before)  # or the test has shown nothing


def test_rarer_evaluations_change_no_number_and_each_has_a_measurement(study, tmp_path):
    settings = dataclasses.replace(study.scales["smoke"], max_epochs=5)
    often = study.measure(CELL, settings, context(tmp_path / "often"))
    seldom = study.measure(CELL, dataclasses.replace(settings, evaluate_every=4), context(tmp_path / "seldom"))
    assert [epoch.epoch for epoch in seldom.epochs] == [0, 4, 5]
    assert all(epoch.sensitivity is not None for epoch in seldom.epochs)
    assert [epoch.loss for epoch in seldom.epochs] == [often.epochs[number].loss for number in (0, 4, 5)]
    assert seldom.sensitivity == often.sensitivity


def test_seeds_beyond_the_usual_ones_train_the_networks_of_the_claim():
    study = studies.get("2403.06925/language-sensitivity")
    settings = dataclasses.replace(study.scales["small"], seeds=5)  # as the runner has it when five are asked for
    cells = study.cells(settings, range(5))
    every = {cell.network for cell in cells if cell.seed < 3}
    assert every == set(settings.networks)
    further = [cell.network for cell in cells if cell.seed >= 3]
    assert further == ["encoder", "encoder-relu", "lstm"] * 2


def test_a_kept_network_serves_another_study_without_training(tmp_path, monkeypatch):
    out = tmp_path / "runs"
    first = studies.run("2403.06925/figure-4", out=out, progress=False)
    monkeypatch.setattr(torch.optim.SGD, "step", None)  # so that a step of training fails
    second = studies.run("2403.06925/figure-17", out=out, progress=False)
    for name in ("vit-small", "resnet-18"):
        before, after = (result.records.one(network=name, seed=0) for result in (first, second))
        assert after.train_accuracy == before.train_accuracy
        assert after.sensitivity == before.sensitivity
    monkeypatch.setattr(networks, "_MEASURING", ("jostle.estimates",))  # as if the estimator's code were another
    with pytest.raises(studies.CellsFailedError):
        studies.run("2403.06925/figure-4", out=out, progress=False, fresh=True)


def test_a_network_depends_on_data_penalty_and_code(study, monkeypatch):
    settings = study.scales["smoke"]
    network, images = settings.networks["mlp-leaky-relu"], data.load("mnist-5000", "train", 20)
    standard = networks.make_recipe(network, settings, images, 0, "cpu")
    assert networks.make_recipe(network, settings, images, 0, "cpu") == standard
    others = [
        networks.make_recipe(network, settings, data.load("mnist-5000", "train", 21), 0, "cpu"),
        networks.make_recipe(network.with_penalty(0.25), settings, images, 0, "cpu"),
        networks.make_recipe(network.with_noise(0.1), settings, images, 0, "cpu"),
        networks.make_recipe(network, settings, images, 1, "cpu"),
        networks.make_recipe(network, dataclasses.replace(settings, max_epochs=9), images, 0, "cpu"),
    ]
    monkeypatch.setattr(networks, "_DECIDING", ("jostle.models",))
    others.append(networks.make_recipe(network, settings, images, 0, "cpu"))
    assert standard not in others
    assert len({str(other) for other in others}) == len(others)


def test_a_penalty_and_an_augmentation_change_the_training(study, tmp_path):
    settings = study.scales["smoke"]
    plain = settings.networks["mlp-leaky-relu"]
    made = {"plain": plain, "penalty": plain.with_penalty(0.5), "noise": plain.with_noise(0.5)}
    losses = {
        name: trained.follow(network, settings, 0, context(tmp_path / name)).record.epochs[-1].loss
        for name, network in made.items()
    }
    assert len(set(losses.values())) == 3


def test_frozen_modules_keep_the_weights_they_were_drawn_with(study, tmp_path):
    settings = study.scales["smoke"]
    network = settings.networks["mlp-leaky-relu"]
    followed = trained.follow(network.with_frozen("layers.0"), settings, 3, context(tmp_path / "cell"))
    after = dict(followed.model.named_parameters())
    drawn = dict(models.create(network.model, seed=3, **network.sizes).named_parameters())
    same = {name for name, parameter in drawn.items() if torch.equal(parameter, after[name])}
    assert same == {name for name in drawn if name.startswith("layers.0.")}


@pytest.mark.parametrize(
    ("name", "complete", "claimed"),
    [
        ("2403.06925/figure-4", 7, ["resnet-18, 8 channels", "vit-simple"]),
        ("jostle/dose-response", 3, ["strength 0", "strength 0.5"]),
    ],
)
def test_further_seeds_train_only_the_networks_that_a_claim_needs(name, complete, claimed):
    study = studies.get(name)
    settings = study.scales["small"]
    first = study.cells(settings, range(complete))
    assert len(first) == complete * len(settings.networks)
    cells = study.cells(settings, range(complete + 2))
    assert cells[: len(first)] == first
    further = [TrainingCell(network, seed) for seed in (complete, complete + 1) for network in claimed]
    assert cells[len(first) :] == further


def test_claims_about_networks_that_did_not_get_there_are_undecided():
    cells = [TrainingCell("a", seed) for seed in range(3)]
    claim = is_below("s", over_seeds({0: 1.0, 1: 2.0, 2: 3.0}), 90.0)
    for last, expected in ((0.995, Verdict.AGREES), (0.98, Verdict.UNDECIDED)):
        accuracies = (1.0, 0.99, last)
        found = {cell.key: trained_record(train_accuracy=value) for cell, value in zip(cells, accuracies, strict=True)}
        records = studies.Records(cells, found, trained.TrainingSettings(), "small")
        claimed, reached = studies.decide(trained.at_matched_accuracy(records, [claim]), scale="small")
        assert claimed.verdict == expected
        assert (reached.verdict == Verdict.AGREES) == (expected == Verdict.AGREES)
    assert claimed.reason == "a/seed=2 did not reach 99% training accuracy"


def test_networks_that_did_not_learn_are_counted_and_left_out():
    cells = [TrainingCell(name, seed) for seed in range(3) for name in "ab"]
    found = {cell.key: trained_record(train_accuracy=0.5 if cell.key == "b/seed=1" else 0.99) for cell in cells}
    records = studies.Records(cells, found, trained.TrainingSettings(), "small")
    kept, counted = trained.learnt(records, 0.98)
    assert len(kept) == 5
    [share] = studies.decide(counted, scale="small")
    assert share.statement == "share of seeds from which b has 98 % of its training inputs right"
    assert share.value == pytest.approx(2 / 3)
    assert share.is_beyond
    everyone, [all_of_them] = trained.learnt(records, 0.5)
    assert len(everyone) == 6
    assert studies.decide([all_of_them], scale="small")[0].verdict == Verdict.AGREES


def test_sensitivities_for_ratios_are_never_zero():
    cells = [TrainingCell("a", seed) for seed in range(2)]
    runs = [epochs_of((1.0, 0.0)), epochs_of((1.0, 0.5))]
    records = studies.Records(
        cells,
        {cell.key: trained_record(epochs=run) for cell, run in zip(cells, runs, strict=True)},
        trained.TrainingSettings(),
        "small",
    )
    assert trained.sensitivity_at_end(records, "a") == pytest.approx({0: 0.25, 1: 0.5})  # of one pass each
    assert trained.sensitivity_at_accuracy(records, "a", 0.9)[0] == pytest.approx(math.exp(-math.log(4)))
    assert trained.sensitivity_at_accuracy(records, "a", 1.1) == {}


def test_networks_that_give_one_class_are_counted():
    cells = [TrainingCell("a", seed) for seed in range(3)]
    shares = [PredictedShare(value=value) for value in (0.5, 0.94, 0.95)]
    found = {
        cell.key: trained_record(epochs=(EpochRecord(epoch=1, loss=0.1, accuracy=0.7, largest_share=share),))
        for cell, share in zip(cells, shares, strict=True)
    }
    records = studies.Records(cells, found, trained.TrainingSettings(), "small")
    [finding] = studies.decide([trained.not_constant(records)], scale="small")
    assert (finding.value, finding.is_beyond) == (1, True)
