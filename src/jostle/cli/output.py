"""What commands write: files are checked before any work, and numbers are printed before they are saved."""

import contextlib
import io
import json
import os
import shlex
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TextIO, cast

from jostle.base.errors import UsageError
from jostle.base.files import check_writable
from jostle.base.trackers import check_tracker, open_tracker
from jostle.cli.options import SubjectOptions

if TYPE_CHECKING:
    from jostle.estimates import Certificates, Comparison, Depth, Influence, Measurement, Stability, Sweep, TextChanges
    from jostle.worst.result import WorstCase

    AnyResult = (
        Measurement | Comparison | Sweep | Stability | Certificates | Depth | Influence | TextChanges | WorstCase
    )

_EXAMPLES = {
    "--csv": "numbers.csv",
    "--log-samples": "samples.jsonl",
    "-o": "report.html",
    "--report": "report.html",
    "--picture": "flip.png",
    "--figure": "figure.svg",
    "--plot": "sweep.svg",
    "--out": "corruptions.png",
}
_MARKS = (  # what stands in results, reports and figures that jostle wrote
    b'"kind": "jostle/',
    b'<meta name="generator" content="jostle">',
    b'<svg style="stroke-linejoin:round;stroke-linecap:butt;',
    b"Software\x00jostle",
    b"/Creator (jostle)",
    b"value,low,high",
    b'"tokens": [{"token": ',
)
_PICTURES = (".svg", ".png", ".pdf")
_PAGES = (".html", ".htm", "")
_END = 2**16  # bytes at the beginning and at the end of a file in which they stand


def check_outputs(
    outputs: Mapping[str, Path | None], *, force: bool, read: Iterable[tuple[str, str | Path | None]] = ()
) -> None:
    """Raise, before any work, unless every output can be written without harm.

    No two outputs may be one file, none may be a file that is read, and a file that exists is replaced only if jostle
    wrote it or ``force`` is given.

    Arguments:
        outputs: files that will be written, by the option that names them; None if the option is not given.
        force: whether files that jostle did not write may be replaced.
        read: files that are read, each with the option that names it; words that name no file are passed over.
    """
    named = {flag: path for flag, path in outputs.items() if path is not None}
    sources = list(read)
    for flag, path in named.items():
        for source, file in sources:
            if file is not None and _is_same(path, Path(file)):
                raise UsageError(f"{flag} {path} would replace a file that {source} {file} reads; give another name")
    flags = list(named)
    for place, flag in enumerate(flags):
        for other in flags[:place]:
            if _is_same(named[flag], named[other]):
                raise UsageError(
                    f"{other} {named[other]} and {flag} {named[flag]} are one file; give each its own name"
                )
    for flag, path in named.items():
        if not force and path.is_file() and not is_ours(path):
            raise UsageError(
                f"{flag} {path} is a file that jostle did not write; give another name, or --force to replace it"
            )
        check_writable(path, _EXAMPLES.get(flag, "result.json"))
        if flag == "--report" and path.suffix.lower() not in _PAGES:
            raise UsageError(f"{flag} {path} must end in .html: the report is a page for a browser")


def check_plot(path: Path | None) -> None:
    """Raise unless ``--plot`` names a file of a format that figures can have."""
    if path is not None and path.suffix.lower() not in _PICTURES:
        raise UsageError(f"--plot {path} must end in {', '.join(_PICTURES)}; its ending decides the format")


def write_plot(result: "Depth | Stability | Sweep", path: Path, options: SubjectOptions) -> None:
    """Draw a result into the file of ``--plot``, and say so unless stdout is for JSON."""
    from jostle.figures import save

    save(result.plot(), path)
    if not options.as_json:
        say(f"  written to {path}")


def check_files(
    options: SubjectOptions,
    weights: Sequence[str],
    more: Mapping[str, Path | None] | None = None,
    read: Sequence[tuple[str, Path | None]] = (),
) -> None:
    """``check_outputs`` for what all commands write, and for ``more``; raise also for an unknown tracker.

    Arguments:
        options: of the command.
        weights: files of weights.
        more: further outputs, by option.
        read: further files that are read, each with its option.
    """
    check_tracker(options.tracker)
    outputs = {"--output": options.output, "--csv": options.csv, **(more or {})}
    check_outputs(outputs, force=options.force, read=files_read(options, weights, *read))


def files_read(
    options: SubjectOptions, weights: Sequence[str], *more: tuple[str, Path | None]
) -> list[tuple[str, str | Path | None]]:
    """Files that a command reads, each with its option, as ``check_outputs`` takes them."""
    data = options.data.removeprefix("csv:").removeprefix("texts:")
    named = [("--data", data), ("--tokenizer", options.tokenizer), *(("--weights", file) for file in weights)]
    return [*named, *more]


def is_ours(path: Path) -> bool:
    """Whether an existing file is a result, a report or a figure of an earlier run."""
    with path.open("rb") as file:
        begin = file.read(_END)
        file.seek(max(path.stat().st_size - _END, 0))
        end = file.read()
    return any(mark in begin or mark in end for mark in _MARKS)


def show(
    result: "AnyResult",
    notes: Iterable[str],
    options: SubjectOptions,
) -> None:
    """Print a result, then save it: a file that cannot be written does not take the numbers with it.

    Arguments:
        result: what was measured.
        notes: lines that are printed below it.
        options: whether to print JSON, and where to save.
    """
    lines = list(notes)
    if _folder:  # a model may have changed to another, and files are written where the command was started
        with contextlib.suppress(OSError):
            os.chdir(_folder[0])
    if options.as_json:
        record = result.to_dict()
        say(json.dumps({**record, "notes": [*record.get("notes", []), *lines]}, indent=1))
    else:
        say("\n".join([str(result), *(f"  {note}" for note in lines)]))
    if options.output is not None:
        result.save(options.output)
        tell(f"  written to {options.output}", options)
    write_tables(result, options)


def write_tables(result: "AnyResult", options: SubjectOptions) -> None:
    """Write the comma-separated values and send the numbers to a tracker, if the options ask for it."""
    if options.csv is not None:
        result.to_csv(options.csv)
        tell(f"  written to {options.csv}", options)
    if options.tracker is not None:
        with open_tracker(options.tracker) as tracker:
            result.send_to(tracker)
        tell(f"  sent to {options.tracker}", options)


def tell(text: str, options: SubjectOptions) -> None:
    """Print a line for people; not where the output is JSON."""
    if not options.as_json:
        say(text)


def open_page(path: Path) -> None:
    """Show a page in the browser; where there is none, nothing happens."""
    import webbrowser

    webbrowser.open(path.absolute().as_uri())


class _Diverted(io.TextIOBase):
    """Standard output while a command prints JSON: what anybody else prints goes to standard error.

    Arguments:
        results: the stream that results are printed to.
    """

    def __init__(self, results: TextIO) -> None:
        self.results = results

    def write(self, text: str) -> int:
        return sys.stderr.write(text)

    def flush(self) -> None:
        sys.stderr.flush()


def results_only() -> TextIO:
    """A standard output through which only ``say`` reaches the present one."""
    return cast(TextIO, _Diverted(sys.stdout))


def say(text: str) -> None:
    """Print a result at once; a closed pipe, as behind ``| head``, is no error: files are still to be written."""
    stream = sys.stdout.results if isinstance(sys.stdout, _Diverted) else sys.stdout
    if stream.closed:  # by a model
        return
    try:
        print(text, file=stream, flush=True)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


_command: list[str] = []
_folder: list[Path] = []


@contextlib.contextmanager
def remembered(words: Sequence[str]) -> Iterator[None]:
    """While a command runs, keep its words, for pages that say how they were made, and where it was started."""
    _command[:] = ["jostle", *words]
    _folder[:] = [Path.cwd()]
    try:
        yield
    finally:
        _command.clear()
        _folder.clear()


def command_line() -> str:
    """The command that runs, as one can type it again."""
    return shlex.join(_command)


def count_noun(number: int, thing: str) -> str:
    """A number of things, in words.

    >>> count_noun(1, "run"), count_noun(2_000, "run")
    ('1 run', '2,000 runs')
    """
    return f"{number:,} {thing}" if number == 1 else f"{number:,} {thing}s"


def _is_same(path: Path, other: Path) -> bool:
    try:
        return path.samefile(other)
    except (OSError, ValueError):  # one of them does not exist, or is a spec and no path
        return os.path.realpath(path) == os.path.realpath(other)  # of links that lead in a circle, too
