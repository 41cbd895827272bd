"""What the study of certainty concludes from records, and that its figure pools the right bins."""

import pytest

from jostle.base.errors import UsageError
from jostle.studies.records import Records
from jostle.studies.verdict import Verdict, decide
from jostle_papers.own.certainty import CertaintyRecord, CertaintySettings, CertaintyStudy, _pooled
from jostle_papers.own.demo.settings import QUICK

SETTINGS = CertaintySettings(networks=QUICK.networks, seeds=5)


def made_up(gain):
    cells = CertaintyStudy().cells(SETTINGS, range(5))
    records = {
        cell.key: CertaintyRecord(
            sensitivity=0.1, accuracy=0.9, wrong=100, auroc=0.8 + 0.01 * cell.seed, confidence=0.8 - gain,
            tops=(0.0, 0.5) if cell.seed else (0.5,), rates=(0.0, 0.2) if cell.seed else (0.3,),
            errors=(0.05, 0.4) if cell.seed else (0.5,), inputs=(900, 100) if cell.seed else (100,),
        )
        for cell in cells
    }  # fmt: skip
    return Records(cells, records, SETTINGS, "small")


@pytest.mark.parametrize(("gain", "verdict"), [(0.05, Verdict.AGREES), (-0.2, Verdict.DISAGREES)])
def test_the_claim_is_about_the_gain_over_confidence(gain, verdict):
    findings = decide(CertaintyStudy().expectations(made_up(gain)), scale="small")
    assert findings[0].verdict == verdict
    assert [finding.is_beyond for finding in findings] == [False, True, True, True, True]
    assert all(finding.verdict == Verdict.AGREES for finding in findings[1:3])
    assert all(finding.verdict == verdict for finding in findings[3:])  # each network by itself


def test_the_figure_pools_bins_of_the_same_rates():
    (drawing,) = CertaintyStudy().figures(made_up(0.1))
    assert drawing.stem == "calibration"
    line = drawing.figure.axes[0].get_lines()[0]
    assert list(line.get_xdata()) == pytest.approx([0.0, 0.22])
    assert list(line.get_ydata()) == pytest.approx([0.05, 0.42])
    assert _pooled([(0.1, 0.0, 1), (0.3, 1.0, 3)]) == pytest.approx((0.25, 0.75))


def test_networks_of_others_have_names():
    with pytest.raises(UsageError, match="unknown published 'vgg'"):
        CertaintySettings(networks=QUICK.networks, published=("vgg",))
    cells = CertaintyStudy().cells(CertaintySettings(networks=QUICK.networks, published=("cct",)), [0])
    assert [cell.network for cell in cells] == ["ViT", "MLP", "cct"]
