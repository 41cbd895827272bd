"""An estimator or a pipeline of scikit-learn, or of a library of its form, as a callable from a batch to outputs."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from jostle.base.errors import UsageError

Array = NDArray[Any]


class Estimator:
    """A fitted estimator: scores of its classes, or what it predicts.

    It answers with ``decision_function``, the logits of linear models, or else with ``predict_proba``, or with
    ``predict``. The class with the largest score is the one that ``predict`` names. Where that is not sure, for a
    support vector machine of more than two classes, the number of the class that it predicts is read instead.

    Attributes:
        classes: the classes in the order of the scores, as text; empty for a regression.
        is_regression: whether it predicts a number and no class.
        reads_texts: whether it takes strings, because its first step counts words.

    Arguments:
        estimator: fitted.
    """

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator
        last, first = _last(estimator), _first(estimator)
        self._classes = getattr(estimator, "classes_", None)
        many = self._classes is not None and len(self._classes) > 2
        votes = many and getattr(last, "break_ties", None) is False
        methods = ("predict",) if votes else ("decision_function", "predict_proba", "predict")
        self.method = next((name for name in methods if hasattr(estimator, name)), "predict")
        self.reads_texts = hasattr(first, "build_analyzer")
        self.is_regression = getattr(last, "_estimator_type", None) == "regressor" or _is_regressor(last)

    @property
    def classes(self) -> tuple[str, ...]:
        """The classes in the order of the scores, as text."""
        known = self._classes
        return () if known is None or isinstance(known, list) else tuple(str(one) for one in known)

    def __repr__(self) -> str:
        return f"Estimator({type(self.estimator).__name__}.{self.method})"

    def __call__(self, batch: Any) -> Array:
        """The outputs of a batch: a tensor, an array, a frame or a list of strings."""
        given = batch.detach().cpu().numpy() if isinstance(batch, Tensor) else batch
        answer = getattr(self.estimator, self.method)(self._framed(given))
        if isinstance(answer, list):
            raise UsageError(
                f"{type(self.estimator).__name__} gives {len(answer)} answers to each input: measure one of them, "
                f"for example lambda x: model.{self.method}(x)[0]"
            )
        answer = np.asarray(answer)
        if self.method == "predict" and not self.is_regression and answer.dtype.kind not in "f":
            return self._numbered(answer)
        return answer

    def _framed(self, given: Any) -> Any:
        """An array as the frame that the estimator was fitted with, if it was, so that columns keep their names."""
        names = getattr(self.estimator, "feature_names_in_", None)
        if names is None or not isinstance(given, np.ndarray) or given.ndim != 2 or given.shape[1] != len(names):
            return given
        import pandas  # type: ignore[import-untyped,unused-ignore] # an estimator with names of columns was fitted with a frame

        return pandas.DataFrame(given, columns=list(names))

    def _numbered(self, answer: Array) -> Array:
        if self._classes is None or isinstance(self._classes, list) or answer.ndim != 1:
            return answer
        places = {value: number for number, value in enumerate(self._classes.tolist())}
        return np.asarray([places[value] for value in answer.tolist()], dtype=np.int64)


def is_estimator(model: Any) -> bool:
    """Whether this predicts as scikit-learn's estimators do."""
    return hasattr(model, "predict") and hasattr(model, "get_params") and not isinstance(model, type)


def _steps(estimator: Any) -> list[Any]:
    steps = getattr(estimator, "steps", None)
    return [step for _, step in steps if step not in (None, "passthrough")] if isinstance(steps, list) else []


def _last(estimator: Any) -> Any:
    """The estimator at the end of pipelines and searches."""
    inner = getattr(estimator, "best_estimator_", None) or next(reversed(_steps(estimator)), None)
    return estimator if inner is None else _last(inner)


def _first(estimator: Any) -> Any:
    """The first step of pipelines and searches."""
    inner = getattr(estimator, "best_estimator_", None) or next(iter(_steps(estimator)), None)
    return estimator if inner is None else _first(inner)


def _is_regressor(estimator: Any) -> bool:
    tags = getattr(estimator, "__sklearn_tags__", None)
    try:
        return tags is not None and tags().estimator_type == "regressor"
    except Exception:  # tags of foreign estimators go wrong in many ways, and nothing hangs on them
        return False
