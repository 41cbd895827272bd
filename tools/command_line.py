"""For the documentation site: the reference of all commands, written from their help when the site is built.

mkdocs.yml names this file as a hook.
"""

import re
import textwrap
from typing import Any

PLACE = "<!-- commands: written when the site is built -->"
EXAMPLE = re.compile(r"(?:^ {2,}[^\s*-].*\n|^ {4,}-.*\n)+", re.MULTILINE)


def on_page_markdown(markdown: str, **_: Any) -> str:
    """A page with the reference at its place."""
    return markdown.replace(PLACE, commands()) if PLACE in markdown else markdown


def commands() -> str:
    """The help of every command; examples, which help texts indent by two spaces, become blocks of code."""
    from jostle.cli.app import app

    text = app.generate_docs(output_format="markdown", recursive=True)
    text = text[text.index("\n## jostle ") :]
    return EXAMPLE.sub(lambda found: f"\n```console\n{textwrap.dedent(found[0]).strip()}\n```\n", text)
