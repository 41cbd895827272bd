"""Damage: bytes of a file, and words of a command line, changed at random."""

import random
import re
from collections.abc import Sequence

_NUMBERS = (b"0", b"-1", b"1e999", b"NaN", b"null", b"99999999999999999999", b"0.5", b"[]", b"{}", b'""', b"true")
_ODD_BYTES = (
    b"\x00",
    b"\xff",
    b"\n",
    b"\r",
    b'"',
    b",",
    b";",
    b"\t",
    b"{",
    b"}",
    b"[",
    b"]",
    b"\xf0\x9f\x99\x82",
    b"\x80",
)
_EXTREMES = (
    b"\x00\x00\x00\x00",
    b"\xff\xff\xff\xff",
    b"\x7f\xff\xff\xff",
    b"\x00\x00\x00\x80",
    b"\xff" * 8,
    b"\x00" * 8,
)
ODD_WORDS = (
    "", " ", "-1", "0", "1", "2", "nan", "inf", "-inf", "1e999", "-0.0", "0.5", "1.5", "1e-300", "99999999999999999999",
    "true", "none", ":", "=", ",", "/", "//", "a=b", "=a", "a:", ":a", "py:", "zoo:", "hf:", "csv:", "images:", "timm:",
    "sample:", "--", "-", "---", "-o", "--json", "--help", "--version", "--force", "--quiet", "--debug", "🙂", "ß",
    "..", ".", "/", "/dev/null", "/dev/full", "/nonexistent/x", "~", "*", "x" * 5000, "patches:0", "patches:-1",
    "patches:99", "patches:2,key=a", "gaussian-noise:std=-1", "gaussian-noise:std=nan", "gaussian-noise", "sphere:0",
    "uniform-token:", "replace-by:", "replace-by:[MASK]", "sign-flip:3", "until:", "grid:0", "grid:draws=-3",
    "1/2/3", "1,2", "0/0", "a/b", "mine.py", "mine.txt", "inputs.npy", "sub", "py:net.py:make", "py:net.py:nope",
    "py:net.py", "zoo:mlp", "zoo:mlp:image_size=99999999", "zoo:nope", "sample:mlp", "drawn-digits", "mnist-5000",
)  # fmt: skip


def damage(content: bytes, rng: random.Random, other: bytes = b"") -> bytes:
    """The same bytes with one to three changes.

    Arguments:
        content: of a file.
        rng: decides.
        other: of another file of the same format, parts of which may be put in.
    """
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        content = _damage_once(content, rng, other)
    return content


def _damage_once(content: bytes, rng: random.Random, other: bytes) -> bytes:  # noqa: C901 - one line for each kind
    size = len(content)
    # Headers, which say how the rest is read, are at the beginning or at the end.
    at = rng.randrange(size + 1) if rng.random() < 0.5 else min(rng.randrange(300), size)
    if rng.random() < 0.15:
        at = max(size - rng.randrange(200), 0)
    how = rng.randrange(9)
    if how == 0:
        return content[:at]
    if how == 1 and size:
        at = min(at, size - 1)
        return content[:at] + bytes([content[at] ^ (1 << rng.randrange(8))]) + content[at + 1 :]
    if how == 2:
        return content[:at] + rng.choice(_ODD_BYTES) * rng.choice((1, 1, 3)) + content[at + rng.randrange(2) :]
    if how == 3:
        return content[:at] + content[at + rng.randrange(1, 40) :]
    if how == 4:
        end = at + rng.randrange(1, 60)
        return content[:end] + content[at:end] * rng.choice((1, 1, 50)) + content[end:]
    if how == 5:
        return content[:at] + rng.choice(_EXTREMES) + content[at + 4 :]
    if how == 6:
        numbers = list(re.finditer(rb"-?\d+(\.\d+)?(e-?\d+)?", content))
        if numbers:
            found = rng.choice(numbers)
            return content[: found.start()] + rng.choice(_NUMBERS) + content[found.end() :]
        return content[:at] + rng.randbytes(8) + content[at + 8 :]
    if how == 7 and other:
        start = rng.randrange(len(other))
        return content[:at] + other[start : start + rng.randrange(1, 400)] + content[at + rng.randrange(400) :]
    return content[:at] + rng.randbytes(rng.randrange(1, 30)) + content[at:]


def mutate(words: Sequence[str], rng: random.Random, others: Sequence[str]) -> list[str]:
    """A command line with one to three words changed, left out, doubled, swapped or put in.

    Arguments:
        words: of a command that works.
        rng: decides.
        others: words of other commands, which may be put in.
    """
    found = list(words)
    for _ in range(rng.choice((1, 1, 2, 3))):
        at = rng.randrange(len(found) + 1)
        how = rng.randrange(7)
        if how == 0 and at < len(found):
            del found[at]
        elif how == 1 and at < len(found):
            found[at] = rng.choice(ODD_WORDS)
        elif how == 2:
            found.insert(at, rng.choice(ODD_WORDS))
        elif how == 3:
            found.insert(at, rng.choice(others))
        elif how == 4 and at < len(found):
            found[at] = rng.choice(others)
        elif how == 5 and at < len(found) and found[at]:
            place = rng.randrange(len(found[at]))
            found[at] = found[at][:place] + rng.choice("-=:,/.0aé\n ") + found[at][place + rng.randrange(2) :]
        elif len(found) > 1:
            one, other = rng.sample(range(len(found)), 2)
            found[one], found[other] = found[other], found[one]
    return found
