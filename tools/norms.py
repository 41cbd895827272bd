"""Write the numbers of docs/norms.md from the records of three studies: images, texts, and published networks.

No study is run here. Each block between the markers of a study is written anew; a study without records says so.
"""

import json
import math
import re
from collections import defaultdict
from pathlib import Path

from jostle import studies
from jostle.base.files import write_text
from jostle.studies.folder import Summary, read_summary
from jostle.studies.verdict import Finding
from jostle_papers.own.norms import LAYER, LEARNT, NONE, NORMS, named

ROOT = Path(__file__).resolve().parent.parent
STUDIES = ROOT / "docs" / "results" / "studies"
PAGE = ROOT / "docs" / "norms.md"
PUBLISHED = "jostle/published-networks"
MARKED = re.compile(r"(<!-- (jostle/[a-z-]+): written by make norms -->\n).*?(<!-- end of \2 -->)", re.DOTALL)


def main() -> None:
    """Write the page."""
    text = PAGE.read_text(encoding="utf-8")
    write_text(PAGE, MARKED.sub(lambda found: found[1] + block(found[2]) + found[3], text))


def block(name: str) -> str:
    """All numbers of one study."""
    folder = STUDIES / name / "small"
    summary = read_summary(folder)
    if summary is None:
        return f"Not run yet: `jostle run {name} --scale small`.\n"
    if name == PUBLISHED:
        return published(folder)
    learnt, tried = levels_by_network(folder)
    said = [*_said(summary, learnt, tried), *_factors(name, learnt)]
    return "\n".join([*said, "", *_table(name, learnt), "", *_findings(summary)]) + "\n"


def published(folder: Path) -> str:
    """Sensitivity of published networks by variance, as a figure and with the ends of the intervals."""
    figure = (folder / "figures" / "against-variance.svg").relative_to(PAGE.parent).as_posix()
    alt = "Sensitivity of four published networks against the variance of the noise"
    lines = (folder / "records.jsonl").read_text(encoding="utf-8").splitlines()
    entries = [entry for entry in map(json.loads, lines) if entry["key"].startswith("cell/")]
    networks = entries[0]["record"]["record"]["networks"]
    variances = list(next(iter(networks.values()))["sensitivity"])
    rows = ["| network | accuracy | " + " | ".join(variances) + " |", "|---" * (2 + len(variances)) + "|"]
    for name, found in networks.items():
        cells = ["{value:.3f} [{low:.3f}, {high:.3f}]".format(**found["sensitivity"][each]) for each in variances]
        rows.append(f"| {name} | {found['accuracy']:.1%} | " + " | ".join(cells) + " |")
    return "\n".join([f"![{alt}]({figure})", "", *rows]) + "\n"


def levels_by_network(folder: Path) -> tuple[dict[str, dict[str, list[float]]], dict[str, int]]:
    """Sensitivities by network and variance, of the seeds from which it learnt; and how many seeds were tried."""
    learnt: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    tried: dict[str, int] = defaultdict(int)
    for line in (folder / "records.jsonl").read_text(encoding="utf-8").splitlines():
        entry = json.loads(line)
        if entry["key"].startswith("cell/"):
            network = entry["key"].removeprefix("cell/").rpartition("/")[0]
            record = entry["record"]["record"]
            tried[network] += 1
            if record["train_accuracy"] >= LEARNT:
                for variance, found in record["final"].items():
                    learnt[network][variance].append(found["value"])
    return learnt, tried


def _said(summary: Summary, learnt: dict[str, dict[str, list[float]]], tried: dict[str, int]) -> list[str]:
    first = {network: len(next(iter(found.values()))) for network, found in learnt.items()}
    short = {network: tries - first.get(network, 0) for network, tries in tried.items()}
    left_out = [f"{network} ({count} of {tried[network]})" for network, count in short.items() if count]
    least = min(tried.values())
    most = [network for network, tries in tried.items() if tries > least]
    further = f", {summary.seeds} for {len(most)} that the claim compares" if most else ""
    sentence = f"**{summary.verdict}**, {len(tried)} networks of {least} seeds each{further}."
    counted = "All of them learnt." if not left_out else f"Left out, as they did not learn: {'; '.join(left_out)}."
    return [f"{sentence} {counted}"]


def _factors(name: str, learnt: dict[str, dict[str, list[float]]]) -> list[str]:
    """How much norms matter, and how much the way to mix tokens does, as factors of mean sensitivities."""
    study = studies.get(name)
    at = f"variance {study.at:g}"

    def means(norms: str) -> dict[str, float]:
        found = {mixing: learnt.get(named(mixing, norms), {}).get(at, []) for mixing in study.mixings}
        return {mixing: sum(values) / len(values) for mixing, values in found.items() if values}

    normed, bare = means(LAYER), means(NONE)
    factors = [bare[mixing] / normed[mixing] for mixing in normed if mixing in bare]
    apart = max(normed.values()) / min(normed.values())
    return [
        f"At {at}, taking the norms away makes a network {min(factors):.1f} to {max(factors):.1f} times as sensitive. "
        f"With LayerNorm, the most sensitive way to mix tokens is {apart:.1f} times as sensitive as the least."
    ]


def _table(name: str, learnt: dict[str, dict[str, list[float]]]) -> list[str]:
    """Mean sensitivity: a row for each mixing, a column for each kind of norms."""
    study = studies.get(name)
    lines = [f"| sensitivity at variance {study.at:g} | " + " | ".join(NORMS) + " |", "|---" * (1 + len(NORMS)) + "|"]
    for mixing in study.mixings:
        found = [learnt.get(named(mixing, norms), {}).get(f"variance {study.at:g}", []) for norms in NORMS]
        cells = [f"{sum(values) / len(values):.3f}" if values else "did not learn" for values in found]
        lines.append(f"| {mixing} | " + " | ".join(cells) + " |")
    return lines


def _findings(summary: Summary) -> list[str]:
    """What was expected before the run, and what was found."""
    lines = ["| the claim expects of | must be | found | verdict |", "|---|---|---|---|"]
    lines += [_row(finding) for finding in summary.findings if not finding.is_beyond]
    return [*lines, "", f"All questions, settings and deviations: [{summary.name}](studies/{summary.name}.md)."]


def _row(finding: Finding) -> str:
    value = "nothing" if finding.value is None else f"{finding.value:.2f}"
    ends = [end for end in (finding.low, finding.high) if end is not None and math.isfinite(end)]
    shown = f"{value} [{ends[0]:.2f}, {ends[1]:.2f}]" if len(ends) == 2 else value
    expected = finding.expected.replace("< 0.666667", "&lt; 1/1.5")
    return f"| {finding.statement} | {expected} | {shown} | {finding.verdict} |"


if __name__ == "__main__":
    main()
