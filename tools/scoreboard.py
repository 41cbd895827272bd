"""Write what the records under docs/results/studies say.

Into README its questions, docs/reproducing.md, a page for each paper and each study, their places in mkdocs.yml, and
the numbers that other pages cite (see ``cited``).
No study is run here: ``jostle run NAME --scale small --out docs/results/studies`` makes the records.
"""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import cited
import paper_pages
from questions import QUESTIONS

from jostle.base.files import write_text
from jostle.studies.folder import RecordFile, Summary, read_summary
from jostle.studies.scoreboard import Row, scoreboard
from jostle.studies.verdict import Finding, Verdict

ROOT = Path(__file__).resolve().parent.parent
STUDIES = ROOT / "docs" / "results" / "studies"
BEFORE = ROOT / "docs" / "results" / "before-the-rule.json"
README = ROOT / "README.md"
PAGE = ROOT / "docs" / "reproducing.md"
PAGES = ROOT / "docs" / "studies"
SITE = ROOT / "mkdocs.yml"
MARKED = re.compile(r"(<!-- scoreboard: written by make scoreboard -->\n).*?(<!-- end of scoreboard -->)", re.DOTALL)
LISTED = re.compile(r"(# studies: written by make scoreboard\n).*?( *# end of studies)", re.DOTALL)
IN_README = 12  # questions
STAR = r"\*"  # after a verdict that fresh seeds must confirm
FAST = 100_000  # images a second that no network here is trained at: its training is not in the time

HEAD = """# Reproducing the papers

Written by `make scoreboard` from the records in `docs/results/studies`. Run a study again with
`jostle run NAME --scale small --workers 2 --out runs`, add seeds with `--until-decided`, and make a page of your own
runs with `jostle report runs`. How a verdict is made: [verdicts](verdicts.md). A claim is a paper's, in our words, with
the setting at which it was judged; studies called jostle/... judge claims of ours, which no paper makes.

Minutes are those of one core, with the training of all networks. Several studies look at the same networks. They are
kept in `runs/networks`, so a second study finds what a first one trained and is done sooner.

Seeds are those of the networks that have most. Some studies give further seeds only to the networks that decide their
claim; the page of a study says how many each comparison has.

"""

# What is wanted, why it is not there, and what it would take.
CANNOT = (
    (
        "SVHN (Figure 19 of 2403.06925)",
        "its files are not at hand",
        "the two `.mat` files of the official page in `JOSTLE_DATA/svhn`, then "
        "`jostle run 2403.06925/figure-19 --scale small`, about an hour on two cores",
    ),
    (
        "pretrained transformers on ImageNet (Section 5 of 2403.06925)",
        "weights and images are not at hand",
        "ViT-L/16 and ConvNeXt V2-Tiny by `timm:`, 1,000 validation images, a graphics card, then "
        "`jostle run 2403.06925/imagenet-pretrained --scale paper`",
    ),
    (
        "CIFAR-10 with ViT-small at the paper's size",
        "50 minutes of one core for an epoch of 20,000 images",
        "a graphics card, about a day",
    ),
    (
        "QQP at the paper's size",
        "364,000 pairs, at 5 minutes of one core for 20,000",
        "a graphics card, about a day",
    ),
    (
        "official CIFAR-10-C",
        "its files are not at hand",
        "the `.npy` files in `JOSTLE_DATA/cifar-10-c`; our own corruptions stand for them",
    ),
    (
        "BERT and Llama-2 embeddings (2402.02969)",
        "weights are not at hand",
        "the weights, as the source of words; rows of a MiniLM stand for them",
    ),
)

# Studies that two cores can run and that have no records at this scale: what they are, and what they take.
WAITING = (
    (
        "2403.06925/mrpc",
        "paper",
        "MRPC at the paper's size: an encoder takes 50 minutes of a core, an LSTM 15; 3.5 core-hours for three seeds",
    ),
    (
        "2403.06925/fashion-mnist",
        "paper",
        "Fashion-MNIST at the paper's size: a vision transformer takes 50 minutes of a core, a CNN 12; 3.5 core-hours "
        "for three seeds",
    ),
    (
        "2403.06925/figure-26-own-task",
        "small",
        "Figure 26 with transformers on 4 of 40 bits: 1.5 hours of a core for a network; 18 core-hours for three seeds",
    ),
)


# Studies of which one seed is a group of networks, each with first weights of its own: the setting with their number.
GROUPS = {"2403.06925/grokking": "networks", "2403.06925/grokking-weight-norm": "networks"}


def main() -> None:
    """Write all files."""
    text = README.read_text(encoding="utf-8")
    if not MARKED.search(text):
        raise SystemExit("README.md has lost its markers")
    written = pages()
    write_text(README, MARKED.sub(lambda found: found[1] + brief(summaries()) + found[2], text))
    site = SITE.read_text(encoding="utf-8")
    write_text(SITE, LISTED.sub(lambda found: found[1] + listed() + found[2], site))
    for old in {*PAGES.rglob("*.md"), *paper_pages.FOLDER.glob("*.md")} - set(written):
        old.unlink()
    for path, content in written.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        write_text(path, content)


def summaries() -> dict[str, Summary]:
    """What was found, by study; of several scales the largest."""
    found: dict[str, Summary] = {}
    for row in scoreboard(STUDIES):
        summary = read_summary(row.folder)
        if summary is not None and not summary.modified:
            found[row.name] = summary
    return found


def pages() -> dict[Path, str]:
    """All pages by path."""
    rows = scoreboard(STUDIES)
    waits = waiting(rows)
    by_study: dict[str, list[Row]] = {}
    for row in rows:
        by_study.setdefault(row.name, []).append(row)
    board = [HEAD, counted(rows), questions(summaries()), "\n## All studies\n\n", table(rows, waits), cannot()]
    found = {PAGE: "".join([*board, not_yet(rows), fresh(rows)])}
    for name, own in by_study.items():
        path = PAGES / f"{name}.md"
        found[path] = f"# {name}\n\n" + "\n".join(details(row, waits, path) for row in own)
    return found | paper_pages.pages(rows, said, escape) | citing()


def citing() -> dict[Path, str]:
    """Pages of prose that cite records."""
    found = summaries()
    texts = {path: path.read_text(encoding="utf-8") for path in sorted(PAGE.parent.glob("*.md")) if path != PAGE}
    return {path: cited.cite(text, found, STUDIES) for path, text in texts.items() if cited.CITED.search(text)}


def said(row: Row) -> str:
    """The verdict of a run, with what would decide it."""
    summary = read_summary(row.folder)
    return row.verdict if summary is None else verdict(row, summary)


def listed() -> str:
    """The studies in the navigation of the site, by paper."""
    names = sorted({row.name for row in scoreboard(STUDIES)})
    lines = []
    for paper in paper_pages.PAPERS:
        own = [name for name in names if name.startswith(f"{paper.name}/")]
        if own:
            lines += [f'      - "Studies of {paper.name}":']
            lines += [f'          - "{name.partition("/")[2]}": studies/{name}.md' for name in own]
    return "\n".join(lines) + "\n"


def brief(found: Mapping[str, Summary]) -> str:
    """The first questions with their answers in one line each, for README; those whose own study is not run wait."""
    lines = ["| question | answer, with 95 % interval | claim |", "|---|---|---|"]
    answered = [question for question in QUESTIONS if question.source(found) is question.sources[0]]
    for question in answered[:IN_README]:
        source = question.source(found)
        star = STAR if is_unconfirmed(found[source.study]) else ""
        link = f"[{found[source.study].verdict}](docs/studies/{source.study}.md){star}"
        lines.append(f"| {question.short} | {source.answer(found, brief=True)} | {link} |")
    note = [f"\n{STAR} to be confirmed on fresh seeds"] if any(STAR in line for line in lines) else []
    return "\n".join([*lines, *note, ""])


def questions(found: Mapping[str, Summary]) -> str:
    """The questions with their answers in full."""
    lines = [
        "| question | answer, with 95 % interval | verdict on the claim | seeds | size |",
        "|---|---|---|---:|---|",
    ]
    for question in QUESTIONS:
        source = question.source(found)
        summary = found[source.study]
        link = f"[{summary.verdict}](studies/{source.study}.md){mark(summary)}"
        more = question.page.removeprefix("docs/")
        cells = [f"[{question.text}]({more})", source.answer(found), link, str(repeats(summary)), summary.scale]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def cannot() -> str:
    """What cannot be run here."""
    lines = ["\n## What cannot be run here\n", "| what | why | what it would take |", "|---|---|---|"]
    return "\n".join([*lines, *("| " + " | ".join(cells) + " |" for cells in CANNOT), ""])


def not_yet(rows: list[Row]) -> str:
    """What could be run here and was not."""
    there = {(row.name, row.folder.name) for row in rows}
    lines = [
        f"| `jostle run {name} --scale {scale} --workers 2` | {what} |"
        for name, scale, what in WAITING
        if (name, scale) not in there
    ]
    head = ["\n## What has not been run yet\n", "| command | what it is, and what it takes |", "|---|---|"]
    return "\n".join([*head, *lines, ""]) if lines else ""


def counted(rows: list[Row]) -> str:
    """How many claims are decided."""
    own = list({row.name: row for row in rows}.values())  # of several scales the largest, which comes last
    agree, disagree, alike = (
        sum(row.status == verdict for row in own) for verdict in (Verdict.AGREES, Verdict.DISAGREES, Verdict.ALIKE)
    )
    decided = agree + disagree + alike
    return (
        f"{len(own)} claims have records; {decided} are decided: {agree} agree, {disagree} disagree, and {alike} find "
        f"no difference where one is claimed. {len(own) - decided} are undecided, and say what would decide them. "
        "A claim that was judged at two scales counts once, at the larger.\n\n"
        "## In plain words\n\n"
    )


def table(rows: list[Row], waits: Mapping[Path, str]) -> str:
    """All studies, a line each."""
    lines = ["| study | claim | verdict | scale | seeds | minutes |", "|---|---|---|---|---:|---:|"]
    for row in rows:
        summary = read_summary(row.folder)
        seeds, scale = "" if summary is None else str(repeats(summary)), row.scale.split(",")[0]
        cells = [f"[{row.name}](studies/{row.name}.md)", escape(row.claim), said(row), scale, seeds, waits[row.folder]]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def repeats(summary: Summary) -> int:
    """How many networks of each kind a verdict rests on: its seeds, or groups of them times their size."""
    size = summary.settings[GROUPS[summary.name]] if summary.name in GROUPS else 1
    assert isinstance(size, int)
    return summary.seeds * size


def verdict(row: Row, summary: Summary) -> str:
    """The verdict; of an undecided claim with what would decide it, and a mark where fresh seeds must confirm it."""
    text = row.verdict
    if summary.verdict == Verdict.UNDECIDED:
        missing = [need(finding) for finding in summary.findings if is_open(finding)]
        text += f"; it would take: {escape(max(missing, key=largest))}" if missing else ""
    return text + mark(summary)


def mark(summary: Summary) -> str:
    """What follows a verdict that fresh seeds must confirm."""
    return " (to be confirmed on fresh seeds)" if is_unconfirmed(summary) else ""


def is_open(finding: Finding) -> bool:
    """Whether a finding keeps a claim undecided."""
    return not finding.is_beyond and (finding.verdict == Verdict.UNDECIDED or finding.by_holm is False)


def need(finding: Finding) -> str:
    """What would decide a finding."""
    if finding.by_holm is False:
        said = "disagrees" if finding.verdict == Verdict.DISAGREES else "is alike"
        return f"a few more seeds: it {said} by itself, not by Holm"
    few = re.search(r"at least (\d+) are needed", finding.reason)
    return finding.needs or (f"at least {few[1]} seeds" if few else finding.reason)


def largest(text: str) -> int:
    """The number in a sentence: of several expectations the one that needs most decides."""
    return max((int(digits.replace(",", "")) for digits in re.findall(r"\d[\d,]*", text)), default=0)


def is_unconfirmed(summary: Summary) -> bool:
    """Whether the verdict is another one than under the rule before, and rests on the same seeds."""
    before = judged_before(summary)
    samples = any(finding.level is not None for finding in summary.findings if not finding.is_beyond)
    if before is None or not samples or summary.verdict == Verdict.UNDECIDED:
        return False
    return before["verdict"] != summary.verdict and summary.seeds <= before["seeds"]


def judged_before(summary: Summary) -> dict[str, Any] | None:
    """Verdict and seeds under the rule before, if the study had been judged by it at this scale."""
    name = summary.name if summary.scale == "small" else f"{summary.name} ({summary.scale})"
    found: dict[str, Any] | None = json.loads(BEFORE.read_text(encoding="utf-8")).get(name)
    return found


def fresh(rows: list[Row]) -> str:
    """The studies whose verdict is another one than under the rule before."""
    lines = [
        "\n## Verdicts that changed with the rule\n",
        "| study | before | now | seeds before | seeds now | |",
        "|---|---|---|---:|---:|---|",
    ]
    for row in rows:
        summary = read_summary(row.folder)
        was = None if summary is None else judged_before(summary)
        if summary is None or was is None or was["verdict"] == summary.verdict:
            continue
        note = "to be confirmed on fresh seeds" if is_unconfirmed(summary) else ""
        seeds = [str(was["seeds"] * repeats(summary) // summary.seeds), str(repeats(summary))]
        lines.append("| " + " | ".join([row.name, was["verdict"], summary.verdict, *seeds, note]) + " |")
    return "\n".join([*lines, "", "In some the claim is in other words, too: [verdicts](verdicts.md).", ""])


def waiting(rows: list[Row]) -> dict[Path, str]:
    """Minutes of one core for each run, with the training of its networks wherever that was recorded.

    A network that another study trained has the same epochs in the records of both: the longer time counts.
    """
    longest: dict[str, float] = {}
    cells = {row.folder: RecordFile(row.folder).cells() for row in rows}
    for lines in cells.values():
        for line in lines.values():
            if network := trained(line.record):
                longest[network] = max(line.seconds, longest.get(network, 0.0))
    found = {}
    for row in rows:
        lines, summary = cells[row.folder], read_summary(row.folder)
        times = [longest.get(trained(line.record), line.seconds) for line in lines.values()]
        images = summary.settings.get("limit") if summary is not None else None
        passes = [len(line.record.get("epochs", ())) * (images or 0) for line in lines.values()]
        lacks = any(count > FAST * seconds for count, seconds in zip(passes, times, strict=True))
        found[row.folder] = f"{sum(times) / 60:.0f}" + (" and training" if lacks else "")
    return found


def trained(record: Mapping[str, object]) -> str:
    """What tells a trained network from others: its losses; empty for other records."""
    epochs = record.get("epochs")
    if not isinstance(epochs, list) or not epochs or not isinstance(epochs[0], dict):
        return ""
    return repr([(epoch["epoch"], epoch["loss"], epoch["accuracy"]) for epoch in epochs])


def details(row: Row, waits: Mapping[Path, str], page: Path) -> str:
    """One study at one scale: claim, findings, figures, settings."""
    summary = read_summary(row.folder)
    if summary is None:
        return f"## {row.scale}\n\n{row.verdict}\n"
    up = "../" * len(page.parent.relative_to(PAGE.parent).parts)
    place = up + row.folder.relative_to(PAGE.parent).as_posix()
    lines = [
        f"## Scale {row.scale}: {verdict(row, summary)}",
        "",
        f"*{summary.title}.* {summary.source}.",
        "",
        summary.claim,
        "",
    ]
    for title, is_beyond in (("The claim", False), ("Beyond the claim", True)):
        findings = [finding for finding in summary.findings if finding.is_beyond == is_beyond]
        if findings:
            lines += [f"**{title}**", "", "| finding | expected | measured | verdict | why |", "|---|---|---|---|---|"]
            lines += [line(finding) for finding in findings] + [""]
    lines += [levels(summary)]
    for figure in summary.figures:
        lines += ["", f"![{figure.alt}]({place}/figures/{figure.stem}.svg)", "", figure.caption]
    settings = ", ".join(f"{name} {plain(value)}" for name, value in summary.settings.items())
    lines += ["", *(f"* Differs: {sentence}" for sentence in summary.deviations)]
    lines += [f"* Settings: {settings}; {summary.seeds} seeds; {waits[row.folder]} minutes on one core."]
    return "\n".join(
        [*lines, f"* Again: `jostle run {summary.name} --scale {summary.scale} --seeds {summary.seeds}`", ""]
    )


def line(finding: Finding) -> str:
    """A finding as a line of a table."""
    why = "; ".join(part for part in (finding.reason, finding.needs) if part)
    cells = (finding.statement, finding.expected, finding.measured, str(finding.verdict), why)
    return "| " + " | ".join(escape(cell) for cell in cells) + " |"


def levels(summary: Summary) -> str:
    """What the intervals are."""
    shown = sorted({finding.level for finding in summary.findings if finding.level is not None})
    if not shown:
        return "All of it was computed, not sampled."
    text = (
        f"Intervals are two-sided, and each covers by itself with {shown[-1]:.4g}. What is beyond the claim is not "
        "corrected for its number."
    )
    if not summary.looks:
        return text
    seeds = ", ".join(map(str, summary.looks))
    return f"{text} Looks, taken or planned: {seeds} seeds. This one has its share of the error."


def escape(text: str) -> str:
    """Text for a cell of a table."""
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;").replace("*", "\\*")


def plain(value: object) -> str:
    """Settings in words: lists with commas, dicts as name (entry value, ...), what is not set left out."""
    if isinstance(value, dict):
        entries = [
            f"{name} ({plain(v)})" if isinstance(v, dict) else f"{name} {plain(v)}"
            for name, v in value.items()
            if v not in (None, "", {}, [])
        ]
        return ", ".join(entries)
    if isinstance(value, list):
        return ", ".join(map(plain, value)) or "none"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


if __name__ == "__main__":
    main()
