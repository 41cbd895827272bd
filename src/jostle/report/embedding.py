"""Data inside a page, and out of it again."""

import json
import math
import re
from pathlib import Path
from typing import Any

from jostle.errors import UsageError
from jostle.files import read_text

DATA_ID = "jostle-data"
_BLOCK = re.compile(rf'<script type="application/json" id="{DATA_ID}">(.*?)</script>', re.DOTALL)


def embedded(data: Any) -> str:
    r"""``data`` as JSON that cannot end the script element it stands in, whatever text it holds.

    >>> embedded({"name": "</script>"})
    '{"name":"\\u003c/script\\u003e"}'
    """
    try:
        text = json.dumps(_finite(data), separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError) as error:
        raise UsageError(f"data of the page cannot become JSON ({error}); use numbers, text, lists and dicts") from None
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def recover(path: str | Path) -> Any:
    """The ``data`` of the page that ``write`` put at ``path``."""
    found = _BLOCK.search(read_text(path, "report"))
    if found is None:
        raise UsageError(f"report file {path} holds no data: it has no script element with the id {DATA_ID}")
    try:
        return json.loads(found[1])
    except json.JSONDecodeError as error:
        raise UsageError(f"report file {path} holds damaged data ({error})") from None


def _finite(data: Any) -> Any:
    if isinstance(data, dict):
        return {key: _finite(value) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return [_finite(value) for value in data]
    return None if isinstance(data, float) and not math.isfinite(data) else data
