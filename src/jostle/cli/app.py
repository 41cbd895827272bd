"""The commands, their help, and what an error looks like."""

import sys
import traceback
from importlib.metadata import entry_points
from typing import Any

from cyclopts import App, CycloptsError
from rich.console import Console

import jostle
from jostle.base.errors import JostleError
from jostle.cli.boolean import boolean
from jostle.cli.corrupt import corrupt
from jostle.cli.data import data
from jostle.cli.measure import compare, measure
from jostle.cli.memory import keep_memory
from jostle.cli.names import list_names
from jostle.cli.report import report
from jostle.cli.run import run
from jostle.cli.sweep import sweep
from jostle.cli.worst_case import worst_case

_HELP = """Jostle one input token: does the prediction hold?

jostle measures how often a neural network's prediction changes when a single
token of its input (an image patch, a word, a bit) is changed at random, says
where, and says how sure it is.

Start here:

  jostle demo            four small networks on real digits: a report in minutes
  jostle list models     what there is by name; also datasets, tokens, ...
  jostle measure --help  your own model
  jostle sweep --help    the same at weak to strong noise: where models cross
  jostle worst-case --help       the one-token change that moves it most
  jostle boolean parity --n 10   a function of bits, exactly
  jostle corrupt --help  images under common corruptions, as a picture or a file
  jostle list studies    what can be reproduced; jostle run NAME does it

Errors are one line; add --debug to any command for the whole traceback.
"""

app = App(
    name="jostle",
    help=_HELP,
    help_format="plaintext",
    version=jostle.__version__,
    version_flags=["--version"],
    suppress_keyboard_interrupt=False,
)
app.command(measure)
app.command(compare)
app.command(sweep)
app.command(worst_case)
app.command(boolean)
app.command(corrupt)
app.command(run)
app.command(report)
app.command(data)
app.command(list_names, name="list")
for command in entry_points(group="jostle.commands"):  # of this and other packages, imported when they are called
    app.command(command.value, name=command.name)


def main(arguments: list[str] | None = None) -> None:
    """Run a command; print an error as one line; exit with 0, 1 (failure), 2 (wrong use) or 130 (Ctrl-C)."""
    words = sys.argv[1:] if arguments is None else arguments
    debug = "--debug" in words
    keep_memory()
    try:
        app(
            [word for word in words if word != "--debug"], exit_on_error=False, print_error=False, result_action=_ignore
        )
    except JostleError as error:
        _fail(str(error), error.exit_code, debug)
    except CycloptsError as error:
        _fail(f"{_one_line(error)} (see jostle {_command(words)}--help)", 2, debug)
    except KeyboardInterrupt:
        _fail("interrupted", 130, debug)
    except BrokenPipeError:
        sys.exit(0)
    except OSError as error:
        _fail(_reason(error), 1, debug)
    except MemoryError:
        _fail("out of memory; try a smaller --batch-size, or fewer inputs", 1, debug)


def _ignore(_: Any) -> None:
    """Commands print; what they return is for Python callers."""


def _fail(message: str, code: int, debug: bool) -> None:
    if debug:
        traceback.print_exc()
    Console(stderr=True, soft_wrap=True, highlight=False).print(f"jostle: {message}", markup=False)
    sys.exit(code)


def _reason(error: OSError) -> str:
    """What the system says, and of which file."""
    said = " ".join((error.strerror or str(error) or type(error).__name__).split())
    return said if error.filename is None else f"{error.filename}: {said}"


def _one_line(error: CycloptsError) -> str:
    return " ".join(str(error).split())


def _command(words: list[str]) -> str:
    return f"{words[0]} " if words and words[0] in app else ""
