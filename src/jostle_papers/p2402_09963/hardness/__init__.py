"""How hard a function of bits is for a transformer: networks trained on it, and what their weights look like after.

Left of here: boolean, landscape and results. Beside it: grokking. Right of here: figures and studies. ``tasks`` says
what is learnt from which strings, ``designs`` which network and how (``architectures`` has others than the paper's);
``train`` trains one network or several at once (``passes`` is the fast way, ``layout`` holds their weights,
``storage`` is what is on disk) and ``observe`` measures one; ``copies`` tabulates it after steps of its
weights. ``following`` measures along training, ``scratchpad`` is PARITY by steps, ``lengths`` trains on strings of many
lengths and tries longer ones; ``single`` is the loop of these two.

Source: paper 2 (2402.09963), "Why are sensitive functions hard for transformers?".
"""

from jostle_papers.p2402_09963.hardness.designs import Design, Plan
from jostle_papers.p2402_09963.hardness.observation import CONVERGED, Observation, observe
from jostle_papers.p2402_09963.hardness.tasks import TARGETS, Task, completed, known, tabulated
from jostle_papers.p2402_09963.hardness.training import Trained, train

__all__ = [
    "CONVERGED",
    "TARGETS",
    "Design",
    "Observation",
    "Plan",
    "Task",
    "Trained",
    "completed",
    "known",
    "observe",
    "tabulated",
    "train",
]
