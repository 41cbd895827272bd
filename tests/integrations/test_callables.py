"""Functions of numpy and of other libraries' arrays, and what they answer with."""

import numpy as np
import pytest
import torch

import jostle
from jostle.base.model import logits_of
from jostle.integrations.callables import callable_of

CHOICES = {"tokens": "coordinates", "perturbation": "gaussian-noise:std=1", "plan": jostle.Grid(3)}
WEIGHTS = np.random.default_rng(0).normal(size=(5, 3))
X = np.random.default_rng(1).normal(size=(40, 5))


class Foreign:
    """An array of another library: numpy can read it, torch cannot."""

    def __init__(self, array):
        self.array = np.asarray(array)
        self.shape, self.dtype = self.array.shape, self.array.dtype
        self.array.flags.writeable = False

    def __array__(self, dtype=None, copy=None):
        return self.array


def test_a_function_of_numpy_gets_arrays():
    twin = jostle.measure(lambda x: x @ torch.from_numpy(WEIGHTS), torch.from_numpy(X), **CHOICES)

    def network(x):
        assert isinstance(x, np.ndarray)
        return np.tanh(x @ WEIGHTS)

    assert jostle.measure(network, X, **CHOICES).value == twin.value
    assert jostle.measure(lambda x: Foreign(network(x)), Foreign(X), **CHOICES).value == twin.value


def test_short_numbers_of_jax_are_numbers():
    jax = pytest.importorskip("jax", reason="jax is not installed")
    short = jax.numpy.asarray(X, dtype="bfloat16")
    m = jostle.measure(lambda x: jax.numpy.asarray(x @ WEIGHTS, dtype="bfloat16"), short, **CHOICES)
    assert m.trials == 3 * X.size


def test_a_function_of_jax():
    jax = pytest.importorskip("jax", reason="jax is not installed")
    network = jax.jit(lambda x: jax.numpy.tanh(x @ WEIGHTS))
    m = jostle.measure(network, jax.numpy.asarray(X), **CHOICES)
    twin = jostle.measure(lambda x: x @ torch.from_numpy(WEIGHTS).float(), torch.from_numpy(X).float(), **CHOICES)
    assert m.value == twin.value


def test_names_of_classes_are_classes():
    names = np.array(["a", "b", "c"])
    m = jostle.measure(lambda x: names[(np.asarray(x) @ WEIGHTS).argmax(1)], X, **CHOICES)
    listed = jostle.measure(lambda x: [str(one) for one in names[(np.asarray(x) @ WEIGHTS).argmax(1)]], X, **CHOICES)
    twin = jostle.measure(lambda x: np.asarray(x) @ WEIGHTS, X, **CHOICES)
    assert m.value == listed.value == twin.value > 0


def test_the_error_is_that_of_the_function():
    def broken(x):
        raise ValueError("no such layer")

    with pytest.raises(jostle.FailureError, match="no such layer"):
        jostle.measure(broken, X, **CHOICES)


def test_what_is_no_model_is_one_line():
    with pytest.raises(jostle.UsageError, match=r"model of type dict cannot be called; give an nn\.Module"):
        jostle.measure({}, X, **CHOICES)
    with pytest.raises(jostle.UsageError, match="must answer with a tensor of outputs, not object"):
        logits_of(object())


def test_a_function_of_strings_gets_whole_texts():
    seen = []

    def loud(texts):
        seen.extend(texts)
        return [[text.count("!") - 0.5, 0.0] for text in texts]

    texts = ["Go! now", "it is late", "one  two\nthree!"]
    m = jostle.measure(loud, texts, tokens="words", perturbation="deletion")
    assert m.value == pytest.approx((1 / 2 + 0 + 1 / 3) / 3)
    assert set(texts) <= set(seen)


def test_modules_and_wrapped_models_stay_themselves():
    module, function = torch.nn.Linear(2, 2), callable_of(len)
    assert callable_of(module) is module
    assert callable_of(function) is function


def test_a_function_of_ids_may_call_them_as_it_likes():
    def largest_so_far(ids):
        return torch.nn.functional.one_hot(ids.cummax(dim=1).values, 6).double()

    i = jostle.influence(largest_so_far, [[3, 1, 4]], perturbation=jostle.UniformToken(6))
    assert i.matrix.shape == (3, 3)
