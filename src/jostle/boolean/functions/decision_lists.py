"""Decision lists: if x_a = u then p, else if x_b = v then q, ..., else a default (Rivest 1987).

Number the rules 0 .. r-1 with outputs o_i and let L_i be the list from rule i on (L_r the default, with output o_r).
Rule i is reached with probability 2^-i and fires half of the time, whatever the later bits are, so

    m_i = E[L_i] = (o_i + m_(i+1)) / 2,
    Inf of rule i's bit = 2^-i Pr[L_(i+1) != o_i] = 2^-i (1 - o_i m_(i+1)) / 2,
    s(x) where rule i fires = the number of j < i with o_j != o_i, plus 1 if L_(i+1)(x) != o_i,
    W(L_i) = (o_i + m_(i+1))^2 / 4 + z (o_i - m_(i+1))^2 / 4 + (1 + z) / 4 (W(L_(i+1)) - m_(i+1)^2),

the last because L_i = (o_i + L_(i+1)) / 2 + l_i (o_i - L_(i+1)) / 2 with l_i the sign of rule i's condition.
W is the polynomial with the weights W_k as coefficients.
"""

from fractions import Fraction
from typing import Any

import numpy as np

from jostle.base.checks import whole, wrong
from jostle.base.errors import UsageError
from jostle.boolean.functions.known import Exact, KnownFunction, as_list, exact_of_signs, num_bits, register, sign

Rule = tuple[int, int, int]  # coordinate, value that fires the rule, output


@register("decision-list")
def decision_list(n: int, rules: Any = None, default: int = -1) -> KnownFunction:
    """The output of the first rule whose condition holds; the default if there is none.

    Arguments:
        n: number of bits.
        rules: triples (coordinate, value, output): if the bit at ``coordinate`` (from 0) is ``value``, the answer is
            ``output``. A flat list of the same numbers is read as triples. By default the rules
            (0, 1, 1), (1, 1, -1), (2, 1, 1), ...: f is 1 if the first bit that is +1 has an even coordinate.
        default: the answer if no rule fires.

    >>> decision_list(3, rules=[(0, 1, 1), (1, -1, -1)], default=1).exact.influences.tolist()
    [0.5, 0.5, 0.0]
    """
    n = num_bits("decision-list", n)
    default = sign("default of decision-list", default)
    checked = [(i, 1, (-1) ** i) for i in range(n)] if rules is None else _triples(rules, n)

    def evaluate(points: Any) -> Any:
        answers = np.full(len(points), default, dtype=np.int8)
        for coordinate, value, output in reversed(checked):  # an earlier rule overrules a later one
            answers[points[:, coordinate] == value] = output
        return answers

    options = {"rules": [list(rule) for rule in checked], "default": default}
    return KnownFunction(
        "decision-list", n, options, True, evaluate, lambda: _exact(n, *_remove_repeats(checked, default))
    )


def _triples(rules: Any, n: int) -> list[Rule]:
    """The rules as a list of triples; raises on anything else."""
    given = as_list("rules of decision-list", rules)
    if given and all(isinstance(item, int) for item in given):
        if len(given) % 3:
            raise UsageError(
                f"rules of decision-list has {len(given)} numbers; expected triples of coordinate, value and output"
            )
        given = [given[start : start + 3] for start in range(0, len(given), 3)]
    found = []
    for position, rule in enumerate(given):
        name = f"rules[{position}] of decision-list"
        parts = as_list(name, rule)
        if len(parts) != 3:
            raise wrong(name, rule, "a triple (coordinate, value, output)")
        coordinate = whole(f"coordinate of {name}", parts[0], least=0, most=n - 1)
        value = sign(f"value of {name}", parts[1])
        found.append((coordinate, value, sign(f"output of {name}", parts[2])))
    return found


def _remove_repeats(rules: list[Rule], default: int) -> tuple[list[Rule], int]:
    """The same function with at most one rule for each coordinate.

    A rule that repeats an earlier condition never fires. A rule with the opposite condition always fires when it is
    reached, so its output becomes the default.
    """
    kept: dict[int, Rule] = {}
    for rule in rules:
        coordinate, value, output = rule
        if coordinate not in kept:
            kept[coordinate] = rule
        elif kept[coordinate][1] != value:
            return list(kept.values()), output
    return list(kept.values()), default


def _exact(n: int, rules: list[Rule], default: int) -> Exact:
    mean = Fraction(default)
    weights = [Fraction(1)]
    influences = [Fraction(0)] * n
    profile = [0] * (n + 1)
    outputs = [output for _, _, output in rules]
    profile[_opposed(outputs, default)] += 2 ** (n - len(rules))
    for i in range(len(rules) - 1, -1, -1):
        coordinate, _, output = rules[i]
        differs = (1 - output * mean) / 2  # Pr[L_(i+1) != o_i]
        influences[coordinate] = differs / 2**i
        fired, opposed = 2 ** (n - 1 - i), _opposed(outputs[:i], output)
        changed = int(fired * differs)
        profile[opposed] += fired - changed
        profile[opposed + 1] += changed
        weights = _prepend_rule(weights, mean, output)
        mean = (output + mean) / 2
    return exact_of_signs(n, mean, influences, profile, weights)


def _opposed(outputs: list[int], output: int) -> int:
    """How many of ``outputs`` differ from ``output``."""
    return sum(1 for other in outputs if other != output)


def _prepend_rule(weights: list[Fraction], mean: Fraction, output: int) -> list[Fraction]:
    """The weights after one more rule in front of the list."""
    rest = [Fraction(0), *weights[1:], Fraction(0)]
    found = [(here + below) / 4 for here, below in zip(rest, [Fraction(0), *rest], strict=False)]
    found[0] += (output + mean) ** 2 / 4
    found[1] += (output - mean) ** 2 / 4
    return found
