"""Blocks of code in README and docs, found by one rule, so that tests can run all of them.

A block is fenced as ``python`` (run), ``sh`` (commands, parsed and run), ``text`` (what the block before it prints),
or ``toml`` (read). A comment on the line before says why a block is not run, or that its commands are only parsed:

    <!-- not run: needs the files of CIFAR-10-C -->
    <!-- parsed: takes an hour -->
    <!-- slow: trains a network -->
"""

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parent.parent
LANGUAGES = {"python", "sh", "text", "toml"}
MARKS = ("not run", "parsed", "slow")
BLOCK = re.compile(
    r"(?:^<!-- (?P<mark>[a-z ]+): (?P<reason>[^>\n]+) -->\n+)?"
    r"^```(?P<language>\w*)\n(?P<code>.*?)^```$"
    r"(?:\n\n?(?:[^\n`#]+\n\n?)?(?=^```text\n(?P<printed>.*?)^```$))?",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True)
class Block:
    """A block of code.

    Arguments:
        page: where it is, relative to the repository.
        line: of its first line.
        language, code: of the fence.
        mark, reason: of the comment before it, or empty.
        printed: the block of text after it, at most one line of text between them; or empty.
    """

    page: str
    line: int
    language: str
    code: str
    mark: str
    reason: str
    printed: str


def pages() -> list[Path]:
    """README and all pages that people write or read."""
    return [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


@cache
def blocks(page: Path) -> tuple[Block, ...]:
    """All blocks of a page, in order."""
    text = page.read_text(encoding="utf-8")
    return tuple(
        Block(
            page=page.relative_to(ROOT).as_posix(),
            line=text.count("\n", 0, found.start("code")) + 1,
            language=found["language"],
            code=found["code"],
            mark=found["mark"] or "",
            reason=found["reason"] or "",
            printed=found["printed"] or "",
        )
        for found in BLOCK.finditer(text)
    )


def commands(code: str) -> list[str]:
    """The commands of a block, with continued lines joined and comments left out."""
    lines = code.replace("\\\n", " ").splitlines()
    return [line.partition("  #")[0].strip() for line in lines if line.strip() and not line.lstrip().startswith("#")]
