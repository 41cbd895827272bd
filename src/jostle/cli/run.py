"""``jostle run``."""

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter
from rich.console import Console

from jostle.base.errors import FailureError, JostleError, UsageError
from jostle.base.trackers import check_tracker, open_tracker, send
from jostle.cli.options import TRACKER_HELP, EngineOptions, whole
from jostle.cli.output import say

if TYPE_CHECKING:
    from jostle import studies

SCALE_HELP = "smoke: seconds; small: minutes; paper: the settings of the paper."
SET_HELP = "KEY=VALUE: replace a setting; give it once for each. The result is labelled as modified, in its own folder."
# What main asks of this process's allocator; worker processes read it when they start.
_KEEP_MEMORY = {"MALLOC_TRIM_THRESHOLD_": str(2**30), "MALLOC_MMAP_THRESHOLD_": str(2**25)}

UntilDecided = Annotated[
    bool,
    Parameter(
        negative="",
        show_default=False,
        help="Add seeds until the claim agrees or disagrees. Each judgement takes its share of the error.",
    ),
]
AtMost = Annotated[
    int, Parameter(converter=whole, help="With --until-decided: the number of seeds at which to stop anyway.")
]


def run(
    name: Annotated[list[str], Parameter(help="Names of studies; jostle list studies shows them.", negative="")],
    /,
    *,
    scale: Annotated[Literal["smoke", "small", "paper"], Parameter(help=SCALE_HELP)] = "smoke",
    seeds: Annotated[
        int | None,
        Parameter(converter=whole, help="Number of seeds; by default that of the scale. More can be added later."),
    ] = None,
    until_decided: UntilDecided = False,
    at_most: AtMost = 24,
    engines: EngineOptions = EngineOptions(),  # noqa: B008 - it is frozen
    out: Annotated[Path, Parameter(name=["--out", "-o"], help="Folder of all runs.")] = Path("runs"),
    set_: Annotated[list[str] | None, Parameter(name="--set", negative="", help=SET_HELP)] = None,
    fresh: Annotated[
        bool,
        Parameter(negative="", show_default=False, help="Keep earlier records in a backup folder and start from zero."),
    ] = False,
    data: Annotated[Path | None, Parameter(help="Folder of datasets to search first.")] = None,
    device: Annotated[str, Parameter(help="Where networks run, e.g. cuda.")] = "cpu",
    as_json: Annotated[
        bool, Parameter(name="--json", negative="", show_default=False, help="Print a list of summaries as JSON.")
    ] = False,
    tracker: Annotated[str | None, Parameter(help=TRACKER_HELP)] = None,
    quiet: Annotated[bool, Parameter(negative="", show_default=False, help="No progress.")] = False,
) -> None:
    """Run studies. Each is one figure or table of a paper and ends in a verdict.

    After an interruption or a kill, run the same command again: it continues,
    and finished cells are not repeated. jostle report makes a page of all runs.

      jostle run 2403.06925/figure-4 --scale small --workers 2
      jostle run 2403.06925/figure-4 --set passes=500 --seeds 5
      jostle run 2402.09963/figure-3 --scale small --until-decided --at-most 24
    """
    console = Console(stderr=True, highlight=False, soft_wrap=True)
    overrides = _read_pairs(set_ or [])
    check_tracker(tracker)
    os.environ.update(_KEEP_MEMORY | os.environ)  # what the user has set stays
    engine = engines.chosen() if engines != EngineOptions() else None
    asks_more = bool(overrides) or fresh or data is not None
    known = _look_for_finished(name, scale, out, seeds, at_most if until_decided else None, asks_more, console)
    from jostle import studies

    summaries, failed = list[studies.Summary](), list[JostleError]()

    def end(summary: studies.Summary, folder: Path) -> None:
        summaries.append(summary)
        if not as_json:
            say(studies.told(summary, folder))

    for one, before in known.items():
        if before is not None:
            end(before, out / one / scale)
            continue
        try:
            result = studies.run(
                one,
                scale,
                out,
                seeds=seeds,
                engine=engine,
                progress=not quiet,
                overrides=overrides,
                fresh=fresh,
                data=data,
                device=device,
                until_decided=until_decided,
                at_most=at_most,
            )
        except KeyboardInterrupt:
            console.print(f"finished cells are kept in {out}: start again to continue", markup=False)
            raise
        except studies.CellsFailedError as error:
            failed.append(error)
            continue
        except JostleError as error:  # raised together with earlier failures, after the finished studies are printed
            failed.append(error)
            break
        end(result.summary, result.folder)
    if as_json:
        say(json.dumps([studies.to_plain(summary) for summary in summaries], indent=1))
    _send(summaries, tracker, as_json)
    if failed:
        raise _join_errors(failed)


def _send(summaries: "list[studies.Summary]", tracker: str | None, as_json: bool) -> None:
    """Send what the studies found to the tracker, if there is one."""
    if tracker is None or not summaries:
        return
    from jostle.studies.runner import finding_numbers

    with open_tracker(tracker) as opened:
        for summary in summaries:
            send(opened, finding_numbers(summary))
    if not as_json:
        say(f"  sent to {tracker}")


def _look_for_finished(
    names: list[str], scale: str, out: Path, seeds: int | None, at_most: int | None, asks_more: bool, console: Console
) -> dict[str, "studies.Summary | None"]:
    """The summaries of studies that are finished, None for the others; an unknown name is an error before any work.

    Arguments:
        names, scale, out, seeds, at_most: as for ``finished``.
        asks_more: whether anything else is asked; then all are run.
        console: shows what is waited for.
    """
    with console.status("starting"):
        from jostle import studies
        from jostle.studies.finished import finished
    known = {name: None if asks_more else finished(name, scale, out, seeds, at_most) for name in names}
    with console.status("loading torch"):
        for name in names:
            if known[name] is None:
                studies.get(name)
    return known


def _read_pairs(texts: list[str]) -> dict[str, str]:
    """KEY=VALUE texts as a dictionary."""
    pairs: dict[str, str] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals or not key.strip():
            raise UsageError(f"--set {text!r} must read KEY=VALUE, for example --set draws=20")
        key = key.strip().replace("-", "_")
        if key in pairs:
            raise UsageError(f"--set names {key!r} twice")
        pairs[key] = value.strip()
    return pairs


def _join_errors(failed: list[JostleError]) -> JostleError:
    if len(failed) == 1:
        return failed[0]
    error = FailureError("\n".join(str(part) for part in failed))
    for part in failed:
        for note in getattr(part, "__notes__", ()):
            error.add_note(note)
    return error
