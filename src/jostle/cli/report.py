"""``jostle report``."""

import json
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from jostle.base.errors import UsageError
from jostle.cli.options import Force
from jostle.cli.output import check_outputs, count_noun, say


def report(
    runs: Annotated[Path, Parameter(help="Folder of runs, made by jostle run.")] = Path("runs"),
    /,
    *,
    output: Annotated[Path | None, Parameter(name=["--output", "-o"], help="Where to write the HTML page.")] = None,
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

      jostle report runs -o report.html
      jostle report runs --markdown
    """
    printed = markdown or as_json
    path = output if output is not None or printed else Path("report.html")
    check_outputs({"-o": path}, force=force)
    from jostle.studies.schema import to_plain
    from jostle.studies.scoreboard import markdown as as_markdown
    from jostle.studies.scoreboard import scoreboard

    rows = scoreboard(runs)
    if not rows:
        raise UsageError(f"{runs} holds no runs of studies, so there is nothing to report; jostle run NAME makes some")
    if path is not None:
        from jostle.report import write
        from jostle.studies.page import page

        write(page(runs), path)
    if as_json:
        say(json.dumps([to_plain(row) for row in rows], indent=1))
    elif markdown:
        say(as_markdown(rows).removesuffix("\n"))
    else:
        say(f"report of {count_noun(len(rows), 'run')}: {path}")
