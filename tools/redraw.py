"""Judge and draw every study under docs/results/studies again, and draw the figure of the demo, from records alone.

No cell is run: a study whose records are incomplete is an error. After a change that should change no verdict and no
figure, ``make redraw`` leaves docs byte for byte as it was.
"""

import json
import sys
from pathlib import Path

from demo_page import RECORDS, draw

from jostle import run
from jostle.studies.folder import SUMMARY
from jostle_papers.own.demo.records import DemoRecords

STUDIES = Path(__file__).resolve().parent.parent / "docs" / "results" / "studies"


def main(wanted: list[str]) -> None:
    """Redraw the studies whose names begin with one of the given words, or all of them and the demo."""
    if not wanted:
        draw(DemoRecords(RECORDS))
    for path in sorted(STUDIES.rglob(SUMMARY)):
        summary = json.loads(path.read_text(encoding="utf-8"))
        if wanted and not summary["name"].startswith(tuple(wanted)):
            continue
        result = run(
            summary["name"],
            summary["scale"],
            STUDIES,
            seeds=summary["seeds"],
            overrides=summary["modified"],
            progress=_refuse,
        )
        print(f"{summary['name']}: {result.verdict}")  # noqa: T201


def _refuse(_: object) -> None:
    raise SystemExit("the records of a study are incomplete; run it, this tool only draws")


if __name__ == "__main__":
    main(sys.argv[1:])
