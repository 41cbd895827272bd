"""Is it attention? Verdicts on made-up records, which must turn with them, and what the networks differ in."""

import numpy as np
import pytest

from jostle import models, studies
from jostle.studies import Records, Verdict, decide
from jostle_papers.own.architectures import MIXER, SOFTMAX, TOKENWISE, UNIFORM, without_norms
from tests.papers.studies.made_up import sensitivity, trained_record

NAME = "jostle/architectures"
VARIANCES = {"variance 0.25": 0.25, "variance 1": 1.0, "variance 15": 15.0, "variance 50": 50.0}


def made_up(levels, growth=None, short=()):
    """Runs of sensitivity 0.1 unless ``levels`` has another at variance 5, in powers of the variance, with noise."""
    study, rng = studies.get(NAME), np.random.default_rng(3)
    settings = study.scales["small"]
    cells = study.cells(settings, range(5))
    found = {}
    for cell in cells:
        level = levels.get(cell.network, 0.1) * np.exp(0.02 * rng.normal())
        power = (growth or {}).get(cell.network, 0.3) + 0.01 * rng.normal()
        final = {key: sensitivity(level * (variance / 5) ** power) for key, variance in VARIANCES.items()}
        accuracy = 0.9 if cell.key in short else 1.0
        found[cell.key] = trained_record(sensitivity=level, final=final, train_accuracy=accuracy)
    return Records(cells, found, settings, "small")


def findings(records):
    return {finding.statement: finding for finding in decide(studies.get(NAME).expectations(records), scale="small")}


def test_it_is_attention_where_all_other_mixing_is_more_sensitive():
    found = findings(made_up({SOFTMAX: 0.05}))
    said = [finding for finding in found.values() if not finding.is_beyond]
    assert len(said) == 3
    assert {finding.verdict for finding in said} == {Verdict.AGREES}
    assert found[f"sensitivity of {SOFTMAX} - of cnn"].verdict == Verdict.AGREES
    assert found[f"sensitivity of {UNIFORM} - of cnn"].verdict == Verdict.UNDECIDED


def test_it_is_not_attention_where_a_mean_is_less_sensitive():
    found = findings(made_up({UNIFORM: 0.05}))
    assert found[f"sensitivity of {SOFTMAX} - of {UNIFORM}"].verdict == Verdict.DISAGREES
    assert found[f"sensitivity of {SOFTMAX} - of {MIXER}"].verdict == Verdict.UNDECIDED


def test_norms_are_found_by_level_and_by_growth():
    bare = [without_norms(name) for name in TOKENWISE]
    found = findings(made_up(dict.fromkeys(bare, 0.2), dict.fromkeys(bare, 0.6)))
    for name in TOKENWISE:
        assert found[f"sensitivity of {name} - of {without_norms(name)}"].verdict == Verdict.AGREES
        grown = found[f"doublings of sensitivity from variance 1 to variance 15, {without_norms(name)} - with norms"]
        assert grown.verdict == Verdict.AGREES
        assert grown.value == pytest.approx(0.3 * np.log2(15), abs=0.1)
    found = findings(made_up({}, dict.fromkeys(TOKENWISE, 0.6)))
    growths = [finding for statement, finding in found.items() if statement.startswith("doublings")]
    assert [finding.verdict for finding in growths] == [Verdict.DISAGREES] * 3


def test_a_network_that_is_never_moved_grows_by_nothing_that_can_be_told():
    records = made_up({SOFTMAX: 0.0})
    found = findings(records)
    statement = f"doublings of sensitivity from variance 1 to variance 15, {without_norms(SOFTMAX)} - with norms"
    assert found[statement].verdict == Verdict.UNDECIDED
    assert studies.get(NAME).figures(records)


def test_what_a_network_short_of_accuracy_is_compared_with_is_undecided():
    found = findings(made_up({SOFTMAX: 0.05}, short=["vision-ssm/seed=2", f"{without_norms(UNIFORM)}/seed=0"]))
    short = [finding for statement, finding in found.items() if "vision-ssm" in statement or "uniform" in statement]
    assert found[f"sensitivity of {SOFTMAX} - of vision-ssm"].verdict == Verdict.UNDECIDED
    assert "vision-ssm/seed=2 did not reach 99%" in found[f"sensitivity of {SOFTMAX} - of vision-ssm"].reason
    assert all(finding.verdict == Verdict.UNDECIDED for finding in short if "no norms" in finding.statement)
    assert found[f"sensitivity of {SOFTMAX} - of {UNIFORM}"].verdict == Verdict.AGREES
    assert found["every network has 99% of its training inputs right"].value == 2


def test_networks_that_are_alike_are_found_to_be():
    found = findings(made_up({SOFTMAX: 0.01, UNIFORM: 0.01}))
    assert found[f"sensitivity of {SOFTMAX} - of {UNIFORM}, in size"].verdict == Verdict.AGREES
    found = findings(made_up({UNIFORM: 0.2}))
    assert found[f"sensitivity of {SOFTMAX} - of {UNIFORM}, in size"].verdict == Verdict.DISAGREES


@pytest.mark.parametrize("scale", ["smoke", "small", "paper"])
def test_twins_differ_in_norms_only(scale):
    networks = studies.get(NAME).scales[scale].networks
    for name in TOKENWISE:
        built = [models.create(networks[each].model, **networks[each].sizes) for each in (name, without_norms(name))]
        plain, bare = ({key: weight.shape for key, weight in one.named_parameters()} for one in built)
        norms = {
            f"{place}.{kind}"
            for place, module in built[0].named_modules()
            if type(module).__name__ == "LayerNorm"
            for kind in ("weight", "bias")
        }
        assert norms
        assert {key: shape for key, shape in plain.items() if key not in norms} == bare
    alike = [networks[f"{kind} attention"].sizes for kind in ("softmax", "uniform", "relu")]
    assert all(one | {"attention": ""} == alike[0] | {"attention": ""} for one in alike)
