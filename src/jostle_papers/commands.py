"""The command that this package adds to the command line of jostle: ``jostle demo``.

``pyproject.toml`` publishes it as an entry point of the group ``jostle.commands``. Any package can add commands so.
"""

import dataclasses
import json
import time
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from rich.console import Console

from jostle.cli.options import whole
from jostle.cli.output import say


def demo(
    *,
    out: Annotated[
        Path, Parameter(name=["--out", "-o"], help="Folder for records, checkpoints and the report.")
    ] = Path("demo"),
    seed: Annotated[int, Parameter(converter=whole, help="Random seed of weights, data order and noise.")] = 0,
    quick: Annotated[
        bool,
        Parameter(negative="", show_default=False, help="Seconds instead of minutes: two tiny networks, 200 digits."),
    ] = False,
    as_json: Annotated[
        bool, Parameter(name="--json", negative="", show_default=False, help="Print what was found as JSON.")
    ] = False,
) -> None:
    """Show that architectures differ: four small networks on real digits.

    Trains a vision transformer, an MLP, a CNN and a ConvMixer on 4,000 MNIST
    digits to the same training accuracy and measures their sensitivity while
    they learn. Then adds weak to strong noise to one patch of each digit, the
    same noise for all networks, and writes one HTML page. Takes a few minutes
    on two cores. After an interruption, run the same command again: it continues.
    """
    console = Console(stderr=True, highlight=False)
    started = time.monotonic()
    with console.status("loading torch"):
        from jostle.report import write
        from jostle_papers.own.demo.page import page
        from jostle_papers.own.demo.run import Demo
        from jostle_papers.own.demo.settings import FULL, QUICK

    settings = dataclasses.replace(QUICK if quick else FULL, seed=seed)
    try:
        store = Demo(out, settings, say=console.print).run()
    except KeyboardInterrupt:
        console.print(f"interrupted; finished steps are kept in {out}: start again to continue")
        raise
    report = out / "report.html"
    result = page(store)
    write(result, report)
    found = [result.lead, *result.sections[1].text]
    if as_json:
        say(json.dumps({"report": str(report), "findings": found}, indent=1))
        return
    say("\n".join([*found, "", f"report: {report.resolve()}   ({time.monotonic() - started:.0f} s)"]))
