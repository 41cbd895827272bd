"""The commands and the help of ``jostle``."""

from importlib.metadata import entry_points

from cyclopts import App

import jostle
from jostle.cli.boolean import boolean
from jostle.cli.certify import certify
from jostle.cli.change import change
from jostle.cli.completion import completion
from jostle.cli.corrupt import corrupt
from jostle.cli.data import data
from jostle.cli.depth import depth
from jostle.cli.influence import influence
from jostle.cli.measure import compare, measure
from jostle.cli.names import list_names
from jostle.cli.play import play, try_it
from jostle.cli.report import report
from jostle.cli.run import run
from jostle.cli.stability import stability
from jostle.cli.sweep import sweep
from jostle.cli.worst_case import worst_case

_HELP = """Jostle one input token: does the prediction hold?

jostle measures how often a neural network's prediction changes when a single
token of its input (an image patch, a word, a bit) is changed at random, says
where, and says how sure it is.

Start here:

  jostle try             a first result in under a minute, and a page
  jostle play            press a patch or a word in the browser, and watch
  jostle demo            four small networks on real digits: a report in minutes
  jostle list models     names of models; also datasets, tokens, ...
  jostle measure --help  your own model
  jostle sweep --help    the same at weak to strong noise: where models cross
  jostle stability --help        all tokens partly redrawn: what is left?
  jostle certify --help          a radius within which the prediction holds
  jostle change --help           typos, case, other words in your texts
  jostle worst-case --help       the one-token change that matters most
  jostle influence --help        which word of a prompt the next one hangs on
  jostle depth --help            noise inside a model, layer by layer
  jostle boolean parity --n 10   a function of bits, exactly
  jostle corrupt --help  images under common corruptions, as a picture or a file
  jostle list studies    what can be reproduced; jostle run NAME does it

Any command takes its options from a file, too: --config experiment.toml
(or .yaml), with the names of the options. jostle completion bash|zsh|fish
prints what a shell needs to complete them. Errors are one line; add --debug
to any command for the whole traceback.
"""

app = App(
    name="jostle",
    help=_HELP,
    help_format="plaintext",
    version=jostle.__version__,
    version_flags=["--version", "-V"],
    suppress_keyboard_interrupt=False,
)
app.command(try_it, name="try")
app.command(play)
app.command(measure)
app.command(compare)
app.command(sweep)
app.command(stability)
app.command(certify)
app.command(change)
app.command(worst_case)
app.command(influence)
app.command(depth)
app.command(boolean)
app.command(corrupt)
app.command(run)
app.command(report)
app.command(data)
app.command(list_names, name="list")
app.command(completion)
for published in entry_points(group="jostle.commands"):  # of this and of other packages
    try:
        app.command(published.load(), name=published.name)
    except Exception:  # a broken package must not take the other commands with it; it raises when its command is called
        app.command(published.value, name=published.name)
