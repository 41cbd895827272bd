"""Numbers in the prose of docs that come from the records of studies.

    <!-- cite 2403.06925/figure-4: sensitivity of vit-small / of convmixer -->0.18 [0.14, 0.24]<!-- cited -->

``make scoreboard`` writes what stands between the two comments: the finding with that statement, or the first one that
begins so; or ``seeds`` or ``verdict`` of the study. ``study@small`` names a scale; without one it is the largest.
``minus`` before a statement turns the sign, for a sentence that says by how much something falls; ``exp`` makes a
factor of a difference of logarithms.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from questions import find, shown

from jostle.studies.folder import Summary, read_summary
from jostle.studies.verdict import Finding

CITED = re.compile(r"(<!-- cite (\S+): ([^>]+?) -->)[^<]*(<!-- cited -->)")


def cite(text: str, summaries: Mapping[str, Summary], studies: Path) -> str:
    """The text with every cited number as the records have it."""

    def write(found: re.Match[str]) -> str:
        name, _, scale = found[2].partition("@")
        summary = read_summary(studies / name / scale) if scale else summaries.get(name)
        if summary is None:
            raise SystemExit(f"a page cites {found[2]}, which has no records")
        return found[1] + said(summary, " ".join(found[3].split())) + found[4]

    return CITED.sub(write, text)


def said(summary: Summary, what: str) -> str:
    """What a page shows of a study: its number of seeds, its verdict, or a finding."""
    if what == "seeds":
        return str(summary.seeds)
    if what == "verdict":
        return str(summary.verdict)
    first, _, rest = what.partition(" ")
    if first == "minus":
        return shown(_turned(find(summary.findings, rest)))
    return shown(_factor(find(summary.findings, rest))) if first == "exp" else shown(find(summary.findings, what))


def _turned(finding: Finding) -> Finding:
    """The same finding, said of the fall instead of the change."""
    value, low, high = _numbers(finding)
    return replace(finding, value=-value, low=-high, high=-low)


def _factor(finding: Finding) -> Finding:
    """The same finding, said of the ratio instead of its logarithm."""
    value, low, high = map(math.exp, _numbers(finding))
    return replace(finding, value=value, low=low, high=high)


def _numbers(finding: Finding) -> tuple[float, float, float]:
    if finding.value is None or finding.low is None or finding.high is None:
        raise SystemExit(f"a page turns {finding.statement!r}, which has no interval")
    return finding.value, finding.low, finding.high
