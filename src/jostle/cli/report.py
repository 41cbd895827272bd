"""``jostle report``."""

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from jostle.base.errors import UsageError
from jostle.cli.options import OPEN_HELP, Force
from jostle.cli.output import check_outputs, count_noun, open_page, say

if TYPE_CHECKING:
    from jostle.studies import Row

WATCH_HELP = "Write the page again whenever a run has a new record, until Ctrl-C; the page reloads itself."
_SECONDS = 2.0  # from one look at the runs to the next
_RELOAD = '<meta http-equiv="refresh" content="5">'
_HEAD = '<meta name="generator" content="jostle">'


def report(
    runs: Annotated[Path, Parameter(help="Folder of runs, made by jostle run.")] = Path("runs"),
    /,
    *,
    output: Annotated[Path | None, Parameter(name=["--output", "-o"], help="Where to write the HTML page.")] = None,
    open_: Annotated[
        bool, Parameter(name="--open", negative="", show_default=False, help=OPEN_HELP.capitalize())
    ] = False,
    watch: Annotated[bool, Parameter(negative="", show_default=False, help=WATCH_HELP)] = False,
    markdown: Annotated[
        bool, Parameter(negative="", show_default=False, help="Print the scoreboard as a Markdown table.")
    ] = False,
    as_json: Annotated[
        bool, Parameter(name="--json", negative="", show_default=False, help="Print the scoreboard as JSON.")
    ] = False,
    force: Force = False,
) -> None:
    """Make one HTML page of all runs of studies: scoreboard, findings, figures.

    The page is one file and loads nothing else. Its name is report.html, unless
    --output gives another. With --markdown or --json the scoreboard is printed,
    and a page is written only if --output is given.

      jostle report runs -o report.html --open
      jostle report runs --watch --open
      jostle report runs --markdown
    """
    printed = markdown or as_json
    path = output if output is not None or printed else Path("report.html")
    if path is None and (open_ or watch):
        raise UsageError("--open and --watch are about the page: give --output report.html too")
    check_outputs({"-o": path}, force=force)
    rows = _write(runs, path, watch)
    if not rows:
        raise UsageError(f"{runs} holds no runs of studies, so there is nothing to report; jostle run NAME makes some")
    _say(rows, path, markdown=markdown, as_json=as_json)
    if path is not None and open_:
        open_page(path)
    if path is not None and watch:
        _watch(runs, path)


def _say(rows: "list[Row]", path: Path | None, *, markdown: bool, as_json: bool) -> None:
    from jostle.studies.schema import to_plain
    from jostle.studies.scoreboard import markdown as as_markdown

    if as_json:
        say(json.dumps([to_plain(row) for row in rows], indent=1))
    elif markdown:
        say(as_markdown(rows).removesuffix("\n"))
    else:
        say(f"report of {count_noun(len(rows), 'run')}: {path}")


def _write(runs: Path, path: Path | None, reloads: bool) -> "list[Row]":
    """The rows of the scoreboard; writes the page, if there is a path and a row."""
    from jostle.studies.scoreboard import scoreboard

    rows = scoreboard(runs)
    if rows and path is not None:
        from jostle.base.files import write_text
        from jostle.report import render
        from jostle.studies.page import page

        text = render(page(runs))
        write_text(path, text.replace(_HEAD, f"{_HEAD}\n{_RELOAD}", 1) if reloads else text)
    return rows


def _watch(runs: Path, path: Path) -> None:
    """Write the page again whenever the runs change; Ctrl-C ends it, and the page stops to reload."""
    say("  watching; Ctrl-C ends it")
    seen = _state(runs)
    try:
        while True:
            time.sleep(_SECONDS)
            now = _state(runs)
            if now != seen:
                seen = now
                rows = _write(runs, path, True)
                say(f"  {time.strftime('%H:%M:%S')} written again: {count_noun(len(rows), 'run')}")
    except KeyboardInterrupt:
        _write(runs, path, False)


def _state(runs: Path) -> dict[Path, tuple[int, int]]:
    """Sizes and times of the records and summaries of all runs."""
    found = {}
    for name in ("records.jsonl", "summary.json"):
        for file in runs.rglob(name):
            try:
                stat = file.stat()
            except FileNotFoundError:
                continue  # put aside in between
            found[file] = stat.st_size, stat.st_mtime_ns
    return found
