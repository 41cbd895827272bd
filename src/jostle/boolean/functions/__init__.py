"""Boolean functions with closed-form sensitivities, influences and weights, for tests, examples and training targets.

``create`` makes one by name; calling it gives its values at points, ``table`` all values, ``exact`` the closed forms.
Not here: the same quantities by enumeration (``jostle.boolean.pointwise``, ``jostle.boolean.fourier``). To add a
function, imitate ``blocks.py``: a function of n and its options with the decorator ``register``, imported below.
"""

import inspect
from typing import Any

from jostle.base.errors import UsageError
from jostle.base.registry import unknown_name
from jostle.base.specs import arguments
from jostle.boolean.functions.blocks import bent, multiplexer, tribes
from jostle.boolean.functions.decision_lists import decision_list
from jostle.boolean.functions.juntas import dictator, first, junta, sparse_parity
from jostle.boolean.functions.known import FUNCTIONS, Exact, KnownFunction, register
from jostle.boolean.functions.random_functions import random
from jostle.boolean.functions.symmetric import (
    and_,
    constant,
    hamming_ball,
    majority,
    mean,
    not_all_equal,
    or_,
    parity,
    symmetric,
)
from jostle.boolean.functions.threshold import threshold

__all__ = [
    "FUNCTIONS",
    "Exact",
    "KnownFunction",
    "and_",
    "bent",
    "constant",
    "create",
    "decision_list",
    "dictator",
    "first",
    "hamming_ball",
    "junta",
    "majority",
    "mean",
    "multiplexer",
    "names",
    "not_all_equal",
    "or_",
    "parity",
    "random",
    "register",
    "sparse_parity",
    "symmetric",
    "threshold",
    "tribes",
]

names = FUNCTIONS.names


def create(name: str, n: int, **options: Any) -> KnownFunction:
    """The function called ``name`` of n bits.

    Arguments:
        name: one of ``names()``, or a spec with options such as ``sparse-parity:k=3`` or ``threshold:weights=3/1/1``.
        n: number of bits.
        options: keyword arguments of that function.

    >>> create("sparse-parity", n=10, k=3).exact.total_sensitivity
    3.0
    >>> create("threshold:weights=3/1/1", n=3).exact.influences.tolist()
    [1.0, 0.0, 0.0]
    >>> create("majorty", n=3)
    Traceback (most recent call last):
    jostle.base.errors.UsageError: unknown Boolean function 'majorty'; did you mean majority or parity?
    >>> create("tribes", n=6, widht=2)
    Traceback (most recent call last):
    jostle.base.errors.UsageError: unknown tribes option 'widht'; did you mean width?
    """
    base, _, text = name.partition(":")
    make = FUNCTIONS.get(base)
    known = [option for option in inspect.signature(make).parameters if option != "n"]
    positional, named = arguments(text)
    for option in (*named, *options):
        if option not in known:
            raise unknown_name(f"{base} option", option, known)
    twice = sorted(set(named) & set(options))
    if twice:
        raise UsageError(f"option {twice[0]} of {base} is given twice: in {name!r} and as an argument")
    try:
        bound = inspect.signature(make).bind(n, *positional, **named, **options)
    except TypeError as error:
        raise UsageError(f"{name!r}: {error}; options: {', '.join(known) or 'none'}") from None
    return make(*bound.args, **bound.kwargs)
