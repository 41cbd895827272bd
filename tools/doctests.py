"""For the documentation site: examples of docstrings (``>>> ...``) as blocks of code.

Markdown would read the signs as nested quotations. mkdocs.yml names this file as an extension of griffe.
"""

import re
from typing import Any

import griffe

EXAMPLE = re.compile(r"^( *)(>>> .*(?:\n\1(?!```)\S.*|\n *\.\.\. .*)*)", re.MULTILINE)


class Doctests(griffe.Extension):
    """Put every example between fences."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Change the docstring of one object."""
        if obj.docstring is not None:
            obj.docstring.value = fenced(obj.docstring.value)


def fenced(text: str) -> str:
    """The text with its examples between fences; lines up to a blank one belong to an example.

    >>> print(fenced("One.\\n\\n>>> 1 + 1\\n2\\n\\nTwo."))
    One.
    <BLANKLINE>
    ```pycon
    >>> 1 + 1
    2
    ```
    <BLANKLINE>
    Two.
    """
    return EXAMPLE.sub(lambda found: f"{found[1]}```pycon\n{found[1]}{found[2]}\n{found[1]}```", text)
