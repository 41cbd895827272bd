"""How hard a function of bits is for a network: networks trained on it, and what their weights look like afterwards.

``tasks`` says which function is learnt from which strings, ``designs`` which network and which training
(``architectures`` has networks that are not in the paper). ``train`` trains one network or several at once (``passes``
is the fast way; the loop is ``jostle_papers.stacked``), ``observe`` measures one. ``course`` measures along training,
``scratchpad`` is PARITY in steps, ``lengths`` trains on strings of many lengths and tries longer ones.

Source: paper 2 (2402.09963), "Why are sensitive functions hard for transformers?".
"""

from jostle_papers.p2402_09963.hardness.designs import HardnessDesign, HardnessPlan
from jostle_papers.p2402_09963.hardness.observation import CONVERGED, Observation, observe
from jostle_papers.p2402_09963.hardness.tasks import TARGETS, HardnessTask, complete_table, named_task, table_task
from jostle_papers.p2402_09963.hardness.training import Trained, train

__all__ = [
    "CONVERGED",
    "TARGETS",
    "HardnessDesign",
    "HardnessPlan",
    "HardnessTask",
    "Observation",
    "Trained",
    "complete_table",
    "named_task",
    "observe",
    "table_task",
    "train",
]
