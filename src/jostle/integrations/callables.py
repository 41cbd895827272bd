"""Models that are no modules of torch as callables from tensors to outputs: sessions, estimators, functions of arrays.

``callable_of`` is asked wherever a model is called. Nothing is imported here: what an object is, is seen from what it
can do.
"""

from collections.abc import Callable
from typing import Any

from torch import Tensor, nn

from jostle.base.errors import JostleError, UsageError
from jostle.integrations.estimator import Estimator, is_estimator
from jostle.integrations.onnx import OnnxModel, is_session


class ArrayFunction:
    """A function of tensors or of arrays: what cannot take a tensor is given numpy arrays from then on.

    Functions of numpy and JAX, and models that wrap them. Answers may be of any library whose arrays numpy can read.

    Arguments:
        function: from a batch to outputs.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function, self.takes_arrays = function, False
        self.__wrapped__ = function  # for inspect.signature, by which entries of inputs find their arguments

    def __call__(self, *given: Any, **named: Any) -> Any:
        """What the function answers."""
        if self.takes_arrays:
            return self._with_arrays(given, named)
        try:
            return self.function(*given, **named)
        except JostleError:
            raise
        except Exception as error:
            try:
                answer = self._with_arrays(given, named)
            except Exception:
                raise error from None
        self.takes_arrays = True
        return answer

    def _with_arrays(self, given: tuple[Any, ...], named: dict[str, Any]) -> Any:
        return self.function(*map(_as_array, given), **{key: _as_array(value) for key, value in named.items()})


def _as_array(value: Any) -> Any:
    return value.detach().cpu().numpy() if isinstance(value, Tensor) else value


def callable_of(model: Any, name: str = "model") -> Callable[..., Any]:
    """The model as something that answers a batch.

    >>> callable_of(sum).function([1, 2])
    3
    >>> callable_of("vit")
    Traceback (most recent call last):
    jostle.base.errors.UsageError: model of type str cannot be called; give an nn.Module, a function, an estimator of scikit-learn or a session of ONNX Runtime

    Arguments:
        model: a module, a function, a session of ONNX Runtime, or an estimator of scikit-learn.
        name: how messages call it.
    """  # noqa: E501 - an error is one line
    if isinstance(model, nn.Module | ArrayFunction | OnnxModel | Estimator):
        return model
    if is_session(model):
        return OnnxModel(model)
    if _is_keras(model):
        return ArrayFunction(lambda *given, **named: model.predict_on_batch(*map(_as_array, given), **named))
    if callable(model):
        return ArrayFunction(model)
    if is_estimator(model):
        return Estimator(model)
    raise UsageError(
        f"{name} of type {type(model).__name__} cannot be called; give an nn.Module, a function, an estimator of "
        "scikit-learn or a session of ONNX Runtime"
    )


def _is_keras(model: Any) -> bool:
    roots = {kind.__module__.partition(".")[0] for kind in type(model).__mro__}
    return bool(roots & {"keras", "tf_keras"}) and hasattr(model, "predict_on_batch")
