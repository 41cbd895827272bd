"""Numbers in the prose of docs that come from the records of studies.

    <!-- cite 2403.06925/figure-4: sensitivity of vit-small / of convmixer -->0.18 [0.14, 0.24]<!-- cited -->

``make scoreboard`` writes what stands between the two comments: the finding with that statement, or the first one that
begins so; or ``seeds`` or ``verdict`` of the study. ``study@small`` names a scale; without one it is the largest.
"""

import re
from collections.abc import Mapping
from pathlib import Path

from questions import find, shown

from jostle.studies.folder import Summary, read_summary

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
    return str(summary.verdict) if what == "verdict" else shown(find(summary.findings, what))
