"""What the studies of paper 1 judge, on made-up records: which numbers count, and which do not."""

import pytest

from jostle import studies
from jostle.studies import Records, Verdict, decide, overall
from jostle_papers.p2403_06925 import language_init, language_positions, table_2, table_4
from jostle_papers.trained import EpochRecord
from tests.papers.studies.made_up import sensitivity, trained_record

SEEDS = 4


def made_up(name, values, *, accuracies=None, kind=None, **further):
    """Records of a study at small scale, of four seeds that differ by a few per cent.

    Arguments:
        name: of the study, without the paper.
        values: sensitivity by network, or by (network, further measurement).
        accuracies: training accuracy by network; 1 where it is not named.
        kind: of the records; ``further`` are its further fields, each a function of cell and spread.
    """
    study = studies.get(f"2403.06925/{name}")
    settings = study.scales["small"]
    cells, records = study.cells(settings, range(SEEDS)), {}
    for cell in cells:
        spread = 1 + 0.03 * (cell.seed - 1.5)
        own = sensitivity(values.get(cell.network, 0.1) * spread, passes=10**6)
        final = {
            key: sensitivity(values.get((cell.network, key), 0.1) * spread, passes=10**6) for key in settings.final
        }
        accuracy = (accuracies or {}).get(cell.network, 1.0)
        records[cell.key] = trained_record(
            **({} if kind is None else {"kind": kind}),
            epochs=(EpochRecord(epoch=1, loss=0.1, accuracy=accuracy, sensitivity=own),),
            train_accuracy=accuracy,
            sensitivity=own.value,
            final=final,
            **{field: make(cell, spread) for field, make in further.items()},
        )
    return Records(cells, records, settings, "small")


def judged(name, records):
    """Findings of the claim by statement, and the verdict."""
    findings = decide(studies.get(f"2403.06925/{name}").expectations(records), scale="small")
    return {finding.statement: finding for finding in findings if not finding.is_beyond}, overall(findings), findings


@pytest.mark.parametrize(
    ("vit", "cnn", "verdict"),
    [
        ((0.01, 0.3), (0.1, 0.2), Verdict.AGREES),  # 0.1 in one patch, 1.5 everywhere: though it is not less there
        ((0.2, 0.1), (0.1, 0.2), Verdict.DISAGREES),  # 2 in one patch, 0.5 everywhere: though it is less there
    ],
)
def test_table_4_is_about_the_ratio_of_two_ratios(vit, cnn, verdict):
    whole = {}
    for network, (one, everywhere) in (("vit-small", vit), ("resnet-18, 8 channels", cnn)):
        whole |= {(network, table_4.TOKEN): one, (network, table_4.WHOLE): everywhere}
    claimed, found, _ = judged("table-4", made_up("table-4", whole))
    assert found == verdict
    [finding] = claimed.values()
    assert finding.value == pytest.approx(vit[0] / cnn[0] / (vit[1] / cnn[1]), rel=1e-3)


@pytest.mark.parametrize(("adam", "verdict"), [(0.03, Verdict.AGREES), (0.2, Verdict.DISAGREES)])
def test_figure_14_is_about_a_factor_of_two(adam, verdict):
    networks = studies.get("2403.06925/figure-14").scales["small"].networks
    records = made_up("figure-14", {name: adam if name.endswith("Adam") else 0.02 for name in networks})
    claimed, found, _ = judged("figure-14", records)
    assert len(claimed) == 2
    assert found == verdict


def test_depth_and_heads_are_judged_as_factors():
    even = made_up("depth-heads", {"depth 1, heads 4": 0.11, "depth 2, heads 8": 0.09})
    assert judged("depth-heads", even)[1] == Verdict.AGREES
    uneven = made_up("depth-heads", {"depth 1, heads 4": 0.3})
    assert judged("depth-heads", uneven)[1] == Verdict.DISAGREES


def test_lstms_that_do_not_learn_are_counted_and_blank_nothing():
    values = {
        f"{kind}, {depth} layers": value for kind, value in (("encoder", 0.03), ("lstm", 0.1)) for depth in (8, 12)
    }
    values |= {"encoder, 4 layers": 0.01, "lstm, 4 layers": 0.1}
    everyone, found, _ = judged("figure-23", made_up("figure-23", values))
    assert len(everyone) == 5
    assert found == Verdict.AGREES
    records = made_up("figure-23", values, accuracies={"lstm, 8 layers": 0.9, "lstm, 12 layers": 0.5})
    claimed, found, findings = judged("figure-23", records)
    assert [statement for statement in claimed if "lstm" in statement] == [
        "sensitivity of encoder, 4 layers / of lstm, 4 layers"
    ]
    assert found == Verdict.AGREES
    shares = {
        finding.statement: finding.value for finding in findings if finding.statement.startswith("share of seeds")
    }
    assert list(shares.values()) == [0.0, 0.0]


def test_names_say_the_size_of_networks_that_are_not_the_papers():
    small, paper = (list(studies.get("2403.06925/figure-4").scales[scale].networks) for scale in ("small", "paper"))
    assert paper == ["densenet-121", "resnet-18", "convmixer", "vit-small", "vit-simple"]
    assert small == ["densenet, 3 blocks of 4", "resnet-18, 8 channels", "convmixer", "vit-small", "vit-simple"]
    claimed, found, _ = judged("figure-4", made_up("figure-4", {"vit-small": 0.01, "vit-simple": 0.02}))
    assert len(claimed) == 6
    assert found == Verdict.AGREES


def test_figure_17_is_about_the_smallest_variance_and_the_growth_of_the_gap():
    settings = studies.get("2403.06925/figure-17").scales["small"]
    values = {}
    for step, final in enumerate(settings.final):
        values |= {(name, final): 0.02 * 1.5**step for name in settings.networks}
        values |= {(name, final): 0.01 for name in ("vit-small", "vit-simple")}
    claimed, found, _ = judged("figure-17", made_up("figure-17", values))
    assert len(claimed) == 2
    assert found == Verdict.AGREES
    first = next(iter(settings.final))
    _, found, findings = judged("figure-17", made_up("figure-17", {**values, ("vit-simple", first): 0.1}))
    assert found == Verdict.DISAGREES  # one transformer is enough
    pairs = [each for each in findings if each.statement.startswith("sensitivity of") and each.is_beyond]
    assert len(pairs) == 6
    assert [each.verdict for each in pairs] == [Verdict.AGREES] * 3 + [Verdict.DISAGREES] * 3


def test_figure_13_is_judged_by_patches_of_the_data():
    settings = studies.get("2403.06925/figure-13").scales["small"]
    less = {"vit-small": 0.05, "mlp": 0.1} | {("vit-small", final): 0.5 for final in settings.final}
    claimed, found, _ = judged("figure-13", made_up("figure-13", less))
    assert [statement.endswith("a patch of the data in place of another") for statement in claimed] == [True]
    assert found == Verdict.AGREES
    assert judged("figure-13", made_up("figure-13", {"vit-small": 0.1, "mlp": 0.05}))[1] == Verdict.DISAGREES


def profile(late, last):
    """30 positions of 100 trials: flips at the five before the last, at the last, and at all others."""
    values = tuple([0.01] * 24 + [late] * 5 + [last])
    return language_positions.PositionProfile(
        values=values, low=values, high=values, counts=(100,) * 30, positions=(30,), target="", method=""
    )


@pytest.mark.parametrize("last", [0.0, 1.0])
def test_the_last_separator_is_not_among_the_last_words(last):
    def of(cell, spread):
        return profile(0.05 * spread if cell.network == "lstm" else 0.01, last)

    kinds = dict.fromkeys((language_positions.FIRST, language_positions.WORDS), sensitivity(0.1))
    records = made_up(
        "language-positions",
        {},
        kind=language_positions.PositionsRecord,
        profile_right=of,
        profile_left=of,
        kinds=lambda cell, spread: kinds,
    )
    claimed, found, _ = judged("language-positions", records)
    assert found == Verdict.AGREES
    assert next(iter(claimed.values())).value == pytest.approx(0.2, rel=0.05)


def sharpness(output, prediction):
    def value(number):
        return table_2.SharpnessValue(
            value=number, low=number, high=number, level=0.95, method="made up", per_draw=(number,)
        )

    return table_2.SharpnessReading(output=value(output), prediction=value(prediction))


def test_table_2_judges_predictions_where_noise_changes_some_and_keeps_networks_of_98_per_cent():
    def readings(cell, spread):
        is_flatter = cell.network != "vit-small"
        made = dict.fromkeys(table_2._READINGS, sharpness(2.0 * spread, 0.0))
        made["std 0.005, eval mode"] = sharpness((0.8 if is_flatter else 2.0) * spread, 0.0)
        made["std 0.05, eval mode"] = sharpness(20.0, (0.1 if is_flatter else 0.2) * spread)
        return made

    records = made_up("table-2", {}, accuracies={"vit-small": 0.984}, kind=table_2.Table2Record, sharpness=readings)
    claimed, found, _ = judged("table-2", records)
    assert [finding.value for finding in claimed.values()] == pytest.approx([0.4, 0.5], rel=1e-3)
    assert found == Verdict.AGREES


def test_networks_at_initialisation_are_called_constant_where_they_are():
    study = studies.get("2403.06925/language-init")
    settings = study.scales["small"]
    cells = study.cells(settings, range(SEEDS))
    records = {
        cell.key: language_init.InitRecord(
            sensitivity=0.0 if cell.network == "lstm" else 0.01 + 0.001 * cell.seed,
            low=0.0,
            high=0.1,
            larger_class=1.0 if cell.network == "lstm" or cell.seed else 0.7,
        )
        for cell in cells
    }
    first = study.expectations(Records(cells, records, settings, "small"))[0].statement
    assert first == "sensitivity at initialisation: lstm (4 of 4 constant) - encoder (3 of 4 constant)"
