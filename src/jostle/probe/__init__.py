"""Measure sensitivity inside any training loop, within a share of the training time, without changing the outcome.

``Probe`` is the object that a training loop calls, and ``ProbeLog`` the file that it writes. Inside: ``measurement`` is
what is measured, the same at every step; ``model`` prepares the model of the loop and protects the training;
``budget`` decides how many passes a measurement may make; ``measures`` are further numbers; ``callbacks`` are for
Lightning and the Trainer of transformers; ``metric`` is one of torchmetrics, which is imported on first use. To add a
measure, imitate ``logit_margin`` in ``measures``: a function of a model and inputs, with ``register`` on it.
"""

from typing import TYPE_CHECKING, Any

from jostle.base.errors import UsageError
from jostle.probe.log import ProbeLog
from jostle.probe.measures import MEASURES, register
from jostle.probe.probe import Probe

if TYPE_CHECKING:
    from jostle.probe.metric import SensitivityMetric

__all__ = ["MEASURES", "Probe", "ProbeLog", "SensitivityMetric", "register"]


def __getattr__(name: str) -> Any:
    if name != "SensitivityMetric":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        from jostle.probe.metric import SensitivityMetric
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "torchmetrics":
            raise
        raise UsageError('SensitivityMetric needs torchmetrics: pip install "jostle[metrics]"') from None
    return SensitivityMetric
