"""Run the demo and write what it found into docs/, so that no number there is typed by hand.

Records go to docs/results/demo.jsonl (without the example digit, which is not ours to redistribute), the figure to
docs/figures/demo-noise.svg, and the table between the markers of docs/demo.md. Continues an interrupted run.
"""

import json
import re
from pathlib import Path

from jostle.base.files import write_text
from jostle.figures import curves, save
from jostle_papers.own.demo.findings import findings, headline
from jostle_papers.own.demo.page import noise_series, page
from jostle_papers.own.demo.records import DemoRecords
from jostle_papers.own.demo.run import Demo
from jostle_papers.own.demo.settings import FULL

ROOT = Path(__file__).resolve().parent.parent
RECORDS = ROOT / "docs" / "results" / "demo.jsonl"
FIGURE = ROOT / "docs" / "figures" / "demo-noise.svg"
PAGE = ROOT / "docs" / "demo.md"
MARKED = re.compile(r"(<!-- demo: written by make demo-page -->\n).*?(<!-- end of demo -->)", re.DOTALL)


def main() -> None:
    """Run, then write records, figure and page."""
    records = Demo(ROOT / "runs" / "readme", FULL, say=print).run()
    page(records)  # fails here if the records cannot make a report
    kept = [{"key": key, "record": record} for key, record in records.for_report().items()]
    RECORDS.parent.mkdir(parents=True, exist_ok=True)
    write_text(RECORDS, "".join(json.dumps(entry) + "\n" for entry in kept))
    draw(records)
    text = PAGE.read_text(encoding="utf-8")
    if not MARKED.search(text):
        raise SystemExit("docs/demo.md has lost its markers")
    write_text(PAGE, MARKED.sub(lambda found: found[1] + block(records) + found[2], text))


def draw(records: DemoRecords) -> None:
    """Draw the figure from the records."""
    figure = curves(noise_series(records), x_label="std of the noise", y_label="sensitivity", log_x=True, log_y=True)
    FIGURE.parent.mkdir(parents=True, exist_ok=True)
    save(figure, FIGURE)


def block(records: DemoRecords) -> str:
    """The table and the sentences under the figure."""
    levels = records.sweep()
    shown = [std for std in levels if std in (0.5, 1.0, 2.0, 5.0, 8.0)]
    lines = [
        headline(levels),
        "",
        "| network | training accuracy | unseen digits | " + " | ".join(f"std {s:g}" for s in shown) + " |",
    ]
    lines.append("|---" * (3 + len(shown)) + "|")
    for name in records.settings.networks:
        trained = records.trained(name)
        cells = [levels[std][name] for std in shown]
        numbers = [f"{m.value:.3f} [{m.low:.3f}, {m.high:.3f}]" for m in cells]
        accuracies = [f"{trained.train_accuracy:.1%}", f"{trained.test_accuracy:.1%}"]
        lines.append("| " + " | ".join([name, *accuracies, *numbers]) + " |")
    passes = max(levels[std][name].passes for std in shown for name in records.settings.networks)
    cells = [levels[std][name] for std in shown for name in records.settings.networks]
    precise = sum(m.stopped == "precision" for m in cells)
    lines += [
        "",
        "One training run each (seed 0): the 95 % intervals are for the 4,000 training digits and these weights, and "
        f"do not include the randomness of training. At most {passes:,} passes per network and noise level, fewer "
        f"where ±10 % was reached for all four ({precise} of {len(cells)} cells).",
    ]
    lines += ["On the same noise:", ""]
    lines += [f"- {sentence}" for sentence in findings(levels)[2:]]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
