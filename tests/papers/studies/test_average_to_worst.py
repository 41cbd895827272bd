"""From the average to the worst change: ladders against exact answers, and what altered records do to the verdicts."""

import dataclasses
import math
import zlib

import numpy as np
import pytest
import torch

from jostle import Embeddings, Grid, Patches, Sphere, measure, models
from jostle.base.errors import UsageError
from jostle.data import Dataset
from jostle.figures import Series
from jostle.studies import Records, Verdict, decide, overall
from jostle_papers.own import average_ladder, average_maps, average_networks, average_to_worst
from jostle_papers.own.average_ladder import Ladder, crossing, log_ratios
from jostle_papers.own.average_maps import CHANGE, FLIPS, MapRecord, MapSettings
from jostle_papers.own.average_networks import AverageFlips, AverageSettings, LadderRecord
from jostle_papers.own.average_to_worst import AverageToWorst
from jostle_papers.own.average_to_worst_maps import AverageToWorstMaps
from jostle_papers.p2402_02969.features import DrawnFeatures, RandomFeatures, create, isotropic_words, shared_mean_words
from jostle_papers.p2402_02969.features.feature_map import RecomputedWord
from jostle_papers.p2402_02969.features.word_sensitivity import random_changes
from jostle_papers.trained import TrainedNetwork
from tests.papers.studies.made_up import trained_record

FEW = MapSettings(num_tokens=6, dim=8, radii=(0.3, 1.0, 3.0), positions=2, draws=16, starts=6, steps=40)


def climbed(one_word, response, settings=FEW):
    return average_maps._climb_word(one_word, *average_maps._responses(one_word)[response], settings, "test")


# Ladders of random maps.


def test_the_worst_change_of_a_linear_map_is_along_its_top_singular_vector():
    linear = RandomFeatures(num_tokens=6, dim=8, activation="identity")
    words = isotropic_words(1, num_tokens=6, dim=8)[0]
    found = climbed(linear.one_word(words, 2), CHANGE)
    top = float(torch.linalg.matrix_norm(linear.block(2), 2)) * math.sqrt(8) / float(linear(words[None]).norm())
    np.testing.assert_allclose(found.worst, [radius * top for radius in FEW.radii], rtol=1e-3)
    assert all(worst <= radius * top * (1 + 1e-9) for worst, radius in zip(found.worst, FEW.radii, strict=True))


def test_the_worst_turn_of_the_word_itself_is_known():
    """For phi(x) = x a change of length r ||x|| turns x by at most asin(r), and by pi beyond r = 1."""
    word = isotropic_words(1, num_tokens=1, dim=8)[0]
    found = climbed(RecomputedWord(lambda words: words.flatten(1), word, 0), FLIPS)
    np.testing.assert_allclose(found.worst, [math.asin(0.3) / math.pi, 0.5, 1.0], rtol=0.03)
    assert found.worst[0] <= math.asin(0.3) / math.pi + 1e-9


def test_the_share_of_flipped_read_outs_is_that_of_random_ones():
    words = shared_mean_words(1, num_tokens=6, dim=8)[0]
    one_word = create("raf", num_tokens=6, dim=8).one_word(words, 1)
    change = 3 * torch.ones(1, 8)
    height, read = average_maps._responses(one_word)[FLIPS]
    heads = torch.randn(20_000, 48, generator=torch.Generator().manual_seed(0))
    flips = ((heads @ one_word.features(change)[0]) * (heads @ one_word.clean) < 0).double().mean()
    share = float(read(height(change)))
    assert abs(float(flips) - share) < 4 * math.sqrt(share * (1 - share) / 20_000)


def test_rungs_rise_and_are_those_of_the_plain_map():
    words = shared_mean_words(1, num_tokens=6, dim=8)[0]
    softmax = create("raf", num_tokens=6, dim=8)
    fast, plain = softmax.one_word(words, 0), RecomputedWord(softmax, words, 0)
    for response in (CHANGE, FLIPS):
        found = climbed(fast, response)
        assert np.allclose(found.max_of, climbed(plain, response).max_of)
        rungs = np.column_stack([found.max_of, found.worst])
        assert rungs.shape == (3, 6)  # 1, 2, 4, 8, 16 draws and the worst
        assert (np.diff(rungs, axis=1) >= -1e-12).all()
        assert (np.diff(found.worst) >= 0).all()
        assert found.mean == tuple(row[0] for row in found.max_of)


def test_draws_are_as_long_as_the_radius_and_counted_as_they_are():
    words = shared_mean_words(1, num_tokens=6, dim=8)[0]
    one_word = RecomputedWord(create("raf-relu", num_tokens=6, dim=8), words, 4)
    random = random_changes(FEW.draws, FEW.dim, 0, "axis/test")
    change, flips = (climbed(one_word, response) for response in (CHANGE, FLIPS))
    for place, radius in enumerate(FEW.radii):
        deltas = radius * math.sqrt(8) * random / random.norm(dim=1, keepdim=True)
        assert change.mean[place] == pytest.approx(float(one_word.relative_change(deltas).mean()))
        cosines = torch.cosine_similarity(one_word.features(deltas), one_word.clean[None])
        assert flips.mean[place] == pytest.approx(float(cosines.acos().mean()) / math.pi)
        assert flips.max_of[place][-1] == pytest.approx(float(cosines.acos().max()) / math.pi)


def test_a_cell_of_maps_is_the_mean_over_positions():
    record = average_maps.climb_map("raf", FEW, 3, lambda state: None)
    words = shared_mean_words(1, num_tokens=6, dim=8, seed=3)[0]
    softmax = create("raf", num_tokens=6, dim=8, seed=3)
    each = [
        average_maps._climb_word(one_word, *average_maps._responses(one_word)[CHANGE], FEW, f"3/{place}")
        for place, one_word in enumerate(softmax.one_words(words, [0, 3]))
    ]
    np.testing.assert_allclose(record.change.worst, np.mean([one.worst for one in each], axis=0))
    flat = average_maps.climb_map("rf", FEW, 3, lambda state: None)
    drawn = DrawnFeatures(words[None].float(), 0, seed=3).one_word()
    assert flat.change.worst[-1] <= drawn.upper_bound(3.0 * math.sqrt(8)) * (1 + 1e-5)


def test_crossings_and_ratios():
    assert math.isnan(crossing({1.0: 3.0, 2.0: 4.0}, {1.0: 1.0, 2.0: 1.0}))  # above from the start
    assert math.isnan(crossing({1.0: 1.0, 2.0: 1.0}, {1.0: 2.0, 2.0: 2.0}))
    assert crossing({1.0: 1.0, 2.0: 2.0, 4.0: 8.0}, {1.0: 4.0, 2.0: 4.0, 4.0: 4.0}) == pytest.approx(2 * math.sqrt(2))
    assert log_ratios({0: 1.0, 1: 0.5}, {0: 0.1, 1: 0.5}) == pytest.approx({0: 1.0, 1: 0.0})
    assert math.isnan(log_ratios({0: 1.0}, {0: 0.0})[0])


# Ladders of trained networks.


def small_cnn():
    return models.create("cnn", image_size=8, channels=1, classes=3, width=2, hidden=4, seed=1).eval()


def test_the_mean_is_that_of_a_measurement_and_rungs_rise():
    model, images = small_cnn(), torch.randn(12, 1, 8, 8, generator=torch.Generator().manual_seed(0))
    data = Dataset("noise", images, torch.arange(12) % 3, 3)
    settings = AverageSettings(radii=(0.3, 1.0, 4.0), inputs=10, draws=16, starts=3, steps=5, passes=2_000)
    trained = TrainedNetwork(model, trained_record(), data, data)
    record = average_networks.climb(trained, Patches(4), settings, seed=5)
    few = data.subset(10, seed=5)
    mask = average_networks.one_token(model, few.inputs, Patches(4), 5)
    for place, radius in enumerate(settings.radii):
        change = Sphere(radius, relative=True)
        m = measure(model, few.inputs, tokens="patches:4", perturbation=change, plan=Grid(16), mask=mask, seed=5)
        assert record.ladder.mean[place] == pytest.approx(m.value)
        exact = measure(model, data.inputs, tokens="patches:4", perturbation=change, plan=Grid(500), seed=6).value
        assert record.average.low[place] <= exact <= record.average.high[place]
    rungs = np.column_stack([record.ladder.max_of, record.ladder.worst])
    assert rungs.shape == (3, 6)
    assert (np.diff(rungs, axis=1) >= -1e-12).all()
    assert rungs[-1, -1] > rungs[-1, 0] > 0  # something flips, and the search finds more
    assert (record.moved, record.average.radii) == (10, (0.3, 1.0, 4.0))


def test_one_token_of_each_input_moves_and_never_padding():
    encoder = models.create("text-encoder", vocabulary=20, dim=8, depth=1, heads=2, mlp_dim=16, max_length=9, seed=0)
    lengths = torch.arange(2000) % 6 + 2
    ids = torch.where(torch.arange(9) < lengths[:, None], 5, 0)
    mask = average_networks.one_token(encoder, ids, Embeddings(), 0)
    assert mask.shape == (2000, 9)
    assert (mask.sum(dim=1) == 1).all()
    assert not (mask & (ids == 0)).any()
    of_two = mask[lengths == 2, 0].double()
    assert abs(float(of_two.mean()) - 0.5) < 4 * 0.5 / math.sqrt(len(of_two))
    lstm = models.create("text-lstm", vocabulary=20, dim=8, depth=1, max_length=9, seed=0)
    assert torch.equal(mask, average_networks.one_token(lstm, ids, Embeddings(), 0))
    assert not torch.equal(mask, average_networks.one_token(encoder, ids, Embeddings(), 1))


# Verdicts.


def shaken(*values):
    """A factor near 1 that differs from cell to cell."""
    return 1 + 0.02 * (zlib.crc32(repr(values).encode()) / 2**32 - 0.5)


def ladder(mean, worst, radii, counts, *names):
    """A made-up ladder from functions of the radius."""
    means, worsts = ([of(radius) * shaken(of(1.0), radius, *names) for radius in radii] for of in (mean, worst))
    rows = [tuple(np.linspace(low, (low + high) / 2, counts)) for low, high in zip(means, worsts, strict=True)]
    return Ladder(tuple(radii), tuple(means), tuple(rows), tuple(worsts))


MEANS = {"rf": (0.110, 1.0), "raf": (0.051, 2.6), "raf-relu": (0.073, 1.7), "raf-linear": (0.12, 1.4)}
WORSTS = {"rf": 0.125, "raf": 2.2, "raf-relu": 0.8, "raf-linear": 1.5}


def map_records(worsts=(), means=()):
    """Records of small scale: means go like a power of the radius."""
    study = AverageToWorstMaps()
    settings, found = study.scales["small"], {}
    worst_of, mean_of = WORSTS | dict(worsts), MEANS | dict(means)
    cells = study.cells(settings, range(8))
    for cell in cells:
        scale, power = mean_of[cell.map]
        rising = ladder(
            lambda r, scale=scale, power=power: scale * r**power,
            lambda r, worst=worst_of[cell.map]: worst * r,
            settings.radii, 10, cell.map, cell.seed,
        )  # fmt: skip
        found[cell.key] = MapRecord(change=rising, flips=rising)
    return Records(cells, found, settings, "small")


def judged(study, records):
    findings = decide(study.expectations(records), scale="small")
    return findings, {finding.statement: finding.verdict for finding in findings}


def test_reversed_rankings_of_maps_agree():
    findings, verdicts = judged(AverageToWorstMaps(), map_records())
    assert overall(findings) == Verdict.AGREES
    assert set(verdicts.values()) == {Verdict.AGREES}
    assert sum(not finding.is_beyond for finding in findings) == 4
    [turn] = [f for f in findings if f.statement.startswith("radius from which softmax")]
    assert turn.value == pytest.approx((0.110 / 0.051) ** (1 / 1.6), rel=0.1)


@pytest.mark.parametrize(
    ("changed", "statement"),
    [
        (
            {"means": {"raf": (0.2, 2.6)}},
            "average relative change of features, r = 1: softmax attention / ReLU attention",
        ),
        (
            {"means": {"rf": (0.05, 1.0)}},
            "average relative change of features, r = 1: ReLU attention / random features",
        ),
        ({"worsts": {"rf": 1.0}}, "worst relative change of features, r = 1: random features / ReLU attention"),
        ({"worsts": {"raf-relu": 3.0}}, "worst relative change of features, r = 1: ReLU attention / softmax attention"),
        ({"worsts": {"rf": 0.2}}, "worst / average of random features, r = 1"),
    ],
)
def test_altered_records_of_maps_turn_the_verdict(changed, statement):
    findings, verdicts = judged(AverageToWorstMaps(), map_records(**changed))
    assert verdicts[statement] == Verdict.DISAGREES
    assert overall(findings) == (Verdict.AGREES if statement.startswith("worst /") else Verdict.DISAGREES)


AVERAGES = {"vit-small": 0.005, "cnn": 0.01, "mlp-leaky-relu": 0.02, "encoder": 0.002, "lstm": 0.004}
FLIPPABLE = {"vit-small": 0.4, "cnn": 0.3, "mlp-leaky-relu": 0.25, "encoder": 0.5, "lstm": 0.2}


def trained_records(averages=(), flippable=(), short=(), changes=None):
    """Records of small scale; ``short`` are keys of cells that did not learn, ``changes`` fields to replace by key."""
    study = AverageToWorst()
    settings, found = study.scales["small"], {}
    mean_of, worst_of = AVERAGES | dict(averages), FLIPPABLE | dict(flippable)
    cells = study.cells(settings, range(5))
    for cell in cells:
        data, name, seed = cell.data, cell.network, cell.seed
        radii = settings.maps.radii if data == "words" else settings.radii
        mean, worst = (0.1, 1.0) if data == "words" else (mean_of[name], worst_of[name])
        rising = ladder(
            lambda r, mean=mean: mean * min(r, 2), lambda r, worst=worst: worst * min(r, 2), radii, 7, name, seed
        )
        if data == "words":
            found[cell.key] = MapRecord(change=rising, flips=rising)
        else:
            none = (0.0,) * len(radii)
            average = AverageFlips(radii=tuple(radii), mean=rising.mean, low=none, high=none, passes=(1,) * len(radii))
            accuracy = 0.7 if cell.key in short else 1.0
            further = {"ladder": rising, "average": average, "moved": 1, "search_passes": 1}
            found[cell.key] = trained_record(LadderRecord, train_accuracy=accuracy, **further)
    found |= {key: dataclasses.replace(found[key], **fields) for key, fields in (changes or {}).items()}
    return Records(cells, found, settings, "small")


def test_reversed_rankings_of_networks_agree_and_are_what_counts():
    findings, verdicts = judged(AverageToWorst(), trained_records())
    assert set(verdicts.values()) == {Verdict.AGREES}
    assert all(finding.is_beyond != finding.statement.startswith("share of ") for finding in findings)
    assert len(findings) == 2 * (3 * 2 + 3) + 1 + 2 * (1 * 2 + 2) + 1


@pytest.mark.parametrize(
    ("changed", "statement"),
    [
        ({"averages": {"vit-small": 0.03}}, "share of image tokens that flip on average, r = 1: vit-small / cnn"),
        ({"flippable": {"vit-small": 0.1}}, "share of image tokens that flip at worst, r = 1: cnn / vit-small"),
        (
            {"flippable": {"mlp-leaky-relu": 0.35}},
            "share of image tokens that flip at worst, r = 1: mlp-leaky-relu / cnn",
        ),
        ({"averages": {"lstm": 0.001}}, "share of text tokens that flip on average, r = 3.87: encoder / lstm"),
        ({"flippable": {"lstm": 0.9}}, "share of text tokens that flip at worst, r = 3.87: lstm / encoder"),
        ({"averages": {"cnn": 0.2}}, "worst / average of cnn, r = 1"),
    ],
)
def test_altered_records_of_networks_turn_the_verdict(changed, statement):
    _, verdicts = judged(AverageToWorst(), trained_records(**changed))
    assert verdicts[statement] == Verdict.DISAGREES


def test_networks_that_did_not_learn_are_counted_and_left_out():
    usual = trained_records()["texts/lstm/seed=1"].ladder
    odd = dataclasses.replace(usual, worst=(1.0,) * len(usual.worst))  # would undo the comparison
    records = trained_records(short=["texts/lstm/seed=1"], changes={"texts/lstm/seed=1": {"ladder": odd}})
    findings, verdicts = judged(AverageToWorst(), records)
    [counted] = [f for f in findings if f.statement.startswith("share of seeds from which lstm")]
    assert (counted.is_beyond, counted.value) == (True, 0.8)
    assert verdicts["share of text tokens that flip at worst, r = 1: lstm / encoder"] == Verdict.AGREES
    [compared] = [f for f in findings if f.statement.endswith("at worst, r = 1: lstm / encoder")]
    assert "4 and 5 seeds" in compared.reason


def test_the_axis_says_who_is_safest():
    first = AverageToWorst().figures(trained_records(averages={"cnn": 0.001}))[0]
    assert (
        "of images CNN on average and MLP at worst; of texts transformer on average and LSTM at worst" in first.caption
    )
    assert [axes.get_title("left") for axes in first.figure.axes] == list(average_to_worst._TITLES.values())


def test_panels_mark_draws_and_the_worst_and_stand_zeros():
    series = Series("one", [0.0, 1.0, 2.0, 4.0], [0.0, 0.1, 0.2, 0.9], [0.0] * 4, [0.1, 0.2, 0.3, 1.0])
    figure = average_ladder.draw_ladders([average_ladder.Panel("left", "share", [series])], [1, 2, 4])
    assert [text.get_text() for text in figure.axes[0].get_xticklabels()] == ["mean", "2", "4", "worst"]
    assert figure.axes[0].get_yscale() == "symlog"
    with pytest.raises(UsageError, match="at least one panel"):
        average_ladder.draw_ladders([], [1, 2])


def test_networks_are_trained_as_in_the_other_studies():
    from jostle import studies

    ours, texts = (getattr(AverageToWorst().scales["small"], part) for part in ("images", "texts"))
    theirs = studies.get("jostle/correlations").scales["small"]
    deciding = ("dataset", "relabel", "limit", "batch_size", "target_accuracy", "max_epochs")
    assert [getattr(ours, name) for name in deciding] == [getattr(theirs, name) for name in deciding]
    assert ours.networks["vit-small"] == theirs.networks["vit-small, strength 0"]
    assert all(ours.networks[name] == theirs.networks[name] for name in ("cnn", "mlp-leaky-relu"))
    language = studies.get("2403.06925/language-sensitivity").scales["small"]
    same = dataclasses.replace(language, networks=texts.networks, over_training=False)
    assert texts == same
    assert all(language.networks[name] == network for name, network in texts.networks.items())
