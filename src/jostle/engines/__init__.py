"""Where units of work run: in this process, in several, on a Ray cluster, or under torchrun.

A ``Work`` travels once to every worker (a model and its inputs, say) and does units there (some trials; a cell of a
study). An ``Engine`` opens a ``Crew`` for a work; the crew takes units and gives back their outcomes. What a unit gives
depends on the unit alone: on no other unit, no worker and no clock. So every engine and every number of workers gives
the same numbers, bit for bit, and a unit whose worker died is done again by another.

* ``engine``: the interfaces; ``pool``: which worker gets which unit, and what happens when one dies.
* ``serial``, ``processes``, ``ray_cluster``, ``torchrun``: the engines; ``automatic`` chooses between the first two.
* ``payload``: how a work travels; ``worker``: what runs in another process.
"""

from jostle.engines.automatic import Automatic
from jostle.engines.choice import choose
from jostle.engines.engine import Crew, Done, Engine, Failed, Lost, Outcome, Work
from jostle.engines.processes import Processes
from jostle.engines.ray_cluster import Ray
from jostle.engines.serial import Serial
from jostle.engines.torchrun import Torchrun

__all__ = [
    "Automatic",
    "Crew",
    "Done",
    "Engine",
    "Failed",
    "Lost",
    "Outcome",
    "Processes",
    "Ray",
    "Serial",
    "Torchrun",
    "Work",
    "choose",
]
