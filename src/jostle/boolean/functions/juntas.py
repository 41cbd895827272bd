"""Functions of k out of n bits: sparse parities, dictators and juntas.

Their exact values are those of the inner function of k bits: the other n - k bits have influence 0, every count of
points is multiplied by 2^(n-k), and the weights and extremes are the same. Source: O'Donnell (2014).
"""

from dataclasses import replace
from typing import Any

import numpy as np

from jostle.base.checks import whole, wrong
from jostle.base.errors import UsageError
from jostle.base.randomness import Stream
from jostle.boolean import cube, fourier, pointwise
from jostle.boolean.functions.known import (
    Exact,
    KnownFunction,
    as_list,
    coordinates_of,
    exact_of_junta,
    exact_of_signs,
    num_bits,
    register,
    sign,
)
from jostle.boolean.functions.symmetric import parity

LARGEST_INNER = 16  # bits of a junta's inner table


@register("sparse-parity")
def sparse_parity(n: int, k: int | None = None, coordinates: Any = None) -> KnownFunction:
    """The product of k of the bits, chi_U: total sensitivity k, and k at every point.

    Arguments:
        n: number of bits.
        k: the product of the first k bits; or
        coordinates: the set U, counted from 0.

    >>> sparse_parity(10, k=3).exact.total_sensitivity
    3.0
    """
    n = num_bits("sparse-parity", n)
    if (k is None) == (coordinates is None):
        raise UsageError("sparse-parity needs either k=3 (the first three bits) or coordinates=[0, 4, 5], not both")
    if coordinates is None:
        options: dict[str, Any] = {"k": whole("k of sparse-parity", k, least=1, most=n)}
        chosen = list(range(options["k"]))
    else:
        chosen = coordinates_of("sparse-parity", coordinates, n)
        options = {"coordinates": chosen}
    if not chosen:
        raise wrong("coordinates of sparse-parity", chosen, "a list of at least one bit", "; use constant for none")
    return _product("sparse-parity", n, options, chosen)


@register("dictator")
def dictator(n: int, coordinate: int = 0) -> KnownFunction:
    """One bit decides: f(x) = x_coordinate (counted from 0). Total sensitivity 1.

    >>> dictator(3, coordinate=2).exact.influences.tolist()
    [0.0, 0.0, 1.0]
    """
    n = num_bits("dictator", n)
    coordinate = whole("coordinate of dictator", coordinate, least=0, most=n - 1)
    return _product("dictator", n, {"coordinate": coordinate}, [coordinate])


@register("first")
def first(n: int) -> KnownFunction:
    """The first bit: FIRST of paper 2 (2402.09963), the dictator of coordinate 0.

    >>> first(3).table().tolist()
    [-1, -1, -1, -1, 1, 1, 1, 1]
    """
    return replace(dictator(num_bits("first", n)), name="first", options={})


@register("junta")
def junta(n: int, k: int | None = None, table: Any = None, coordinates: Any = None, seed: int = 0) -> KnownFunction:
    """A function of k of the bits, given by its table or drawn at random.

    Arguments:
        n: number of bits.
        k: how many bits matter, at most 16; by default as many as ``table`` or ``coordinates`` has, else min(3, n).
        table: 2^k values of -1 and 1, in table order of the chosen bits; by default uniformly random.
        coordinates: which bits, counted from 0, in the order of the table; by default the first k.
        seed: of the random table.

    >>> junta(100, table=[-1, -1, -1, 1], coordinates=[7, 50]).exact.total_sensitivity  # AND of two bits
    1.0
    """
    n = num_bits("junta", n)
    seed = whole("seed of junta", seed, least=0)
    chosen = None if coordinates is None else coordinates_of("junta", coordinates, n)
    given = None if table is None else _signs_of(table)
    size = _inner_size(n, k, given, chosen)
    if chosen is None:
        chosen = list(range(size))
    inner = np.array(given, dtype=np.int8) if given is not None else _random_table(size, seed)
    powers = 2 ** np.arange(size - 1, -1, -1)
    options = {"table": inner.tolist(), "coordinates": chosen}
    return KnownFunction(
        "junta",
        n,
        options,
        True,
        lambda points: inner[(points[:, chosen] == 1) @ powers],
        lambda: exact_of_junta(_exact_of_table(inner), chosen, n),
    )


def _inner_size(n: int, k: int | None, table: list[int] | None, chosen: list[int] | None) -> int:
    """k; raises if ``k``, ``table`` and ``coordinates`` imply different values."""
    stated = {"k": k if k is None else whole("k of junta", k, least=1, most=min(n, LARGEST_INNER))}
    stated["coordinates"] = None if chosen is None else len(chosen)
    stated["table"] = None if table is None else cube.dimension(np.array(table), "table of junta")
    sizes = {name: size for name, size in stated.items() if size is not None}
    if len(set(sizes.values())) > 1:
        implied = ", ".join(f"{name}: {size}" for name, size in sizes.items())
        raise UsageError(f"the arguments of junta disagree on the number of bits that matter ({implied})")
    return whole("k of junta", next(iter(sizes.values()), min(3, n)), least=1, most=min(n, LARGEST_INNER))


def _signs_of(table: Any) -> list[int]:
    values = as_list("table of junta", table)
    return [sign(f"table[{position}] of junta", value) for position, value in enumerate(values)]


def _random_table(k: int, seed: int) -> Any:
    rows = np.arange(2**k)
    uniforms = Stream(seed, f"junta/{k}").uniforms(rows, rows * 0, rows * 0, size=1)[:, 0]
    return np.where(uniforms < 0.5, -1, 1).astype(np.int8)


def _exact_of_table(table: Any) -> Exact:
    """``Exact`` of a small table by enumeration: whole numbers over powers of two, which floats hold exactly."""
    k = cube.dimension(table)
    profile = np.bincount(pointwise.sensitivities(table), minlength=k + 1)
    weights = fourier.weight_by_degree(table)
    return exact_of_signs(k, table.mean(), list(pointwise.influences(table)), profile.tolist(), list(weights))


def _product(name: str, n: int, options: dict[str, Any], chosen: list[int]) -> KnownFunction:
    """The parity of the chosen bits."""
    return KnownFunction(
        name,
        n,
        options,
        True,
        lambda points: points[:, chosen].prod(axis=1, dtype=np.int8),
        lambda: exact_of_junta(parity(len(chosen)).exact, chosen, n),
    )
