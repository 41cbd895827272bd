"""What the settings of the penalty and the augmentation may be."""

from typing import Any

import numpy as np

from jostle.base.errors import UsageError


def number(value: Any) -> Any:
    """A number of numpy as Python's, so that a strength may come from ``np.linspace`` or ``np.arange``.

    >>> number(np.float32(0.25)), number("0.25")
    (0.25, '0.25')
    """
    return value.item() if isinstance(value, np.number) else value


def truth(name: str, value: Any, owner: str) -> bool:
    """``value`` if it is true or false: a text such as "no" would count as true."""
    if not isinstance(value, bool | np.bool_):
        raise UsageError(f"{name}={value!r} of {owner} must be True or False")
    return bool(value)
