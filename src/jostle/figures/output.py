"""A figure as SVG text for an HTML page, or as a file. The same figure gives the same bytes on every machine."""

import hashlib
import io
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jostle.base.errors import UsageError
from jostle.base.files import replacing

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Left out: dates, which differ between runs, and web addresses. The program is named: its files can be told.
_METADATA: dict[str, dict[str, Any]] = {
    ".svg": {"Date": None, "Creator": None, "Format": None, "Type": None},
    ".png": {"Software": "jostle"},
    ".pdf": {"CreationDate": None, "Creator": "jostle", "Producer": None},
}
_FONTS = "system-ui,'Segoe UI','Helvetica Neue','DejaVu Sans',sans-serif"
_ROOT = f"stroke-linejoin:round;stroke-linecap:butt;font-family:{_FONTS}"

_TAG = re.compile(r"<[^>]*>")
_ID = re.compile(r'\sid="([^"]*)"')
_REFERENCE = re.compile(r'url\(#([^)]+)\)|href="#([^"]+)"')


def svg(figure: "Figure") -> str:
    """``figure`` as one ``<svg>`` element for an HTML page.

    Text stays text: small, searchable, and drawn with the reader's fonts. There is no prolog, no metadata and no style
    sheet that would change the page, and ids are unique, so that a page can hold several figures.
    """
    text = compact(_render(figure, ".svg").decode())
    return prefix_ids(text, f"j{hashlib.sha256(text.encode()).hexdigest()[:8]}-")


def save(figure: "Figure", path: str | Path) -> None:
    """Write ``figure`` to an .svg, .png (200 dots an inch) or .pdf file, whole or not at all."""
    suffix = Path(path).suffix.lower()
    if suffix not in _METADATA:
        raise UsageError(f"figure file {path} must end in {', '.join(_METADATA)}; its ending decides the format")
    with replacing(path) as temporary:
        temporary.write_bytes(svg(figure).encode() + b"\n" if suffix == ".svg" else _render(figure, suffix))


def compact(text: str) -> str:
    """Matplotlib's SVG ``text`` as a bare element, without what a browser does not need, and with rounded numbers."""
    text = text[text.index("<svg") :]
    text = re.sub(r"<defs>\s*<style.*?</style>\s*</defs>", "", text, count=1, flags=re.DOTALL)
    text = text.replace("<svg ", f'<svg style="{_ROOT}" ', 1)
    text = _TAG.sub(lambda tag: _compact_tag(tag[0]), text)
    return re.sub(r">\s+<", "><", text).strip()


def prefix_ids(text: str, prefix: str) -> str:
    """The SVG ``text`` with every id that something refers to prefixed, and every other id dropped.

    >>> prefix_ids('<g id="a"><path id="m"/><use href="#m"/></g>', "one-")
    '<g><path id="one-m"/><use href="#one-m"/></g>'
    """
    used = {a or b for tag in _TAG.findall(text) for a, b in _REFERENCE.findall(tag)}

    def rename(tag: re.Match[str]) -> str:
        named = _ID.sub(lambda m: f' id="{prefix}{m[1]}"' if m[1] in used else "", tag[0])
        return _REFERENCE.sub(lambda m: m[0].replace("#", f"#{prefix}", 1), named)

    return _TAG.sub(rename, text)


def _compact_tag(tag: str) -> str:
    if "base64," in tag:
        return re.sub(r"\s*\n\s*", "", tag)
    tag = re.sub(r"\s+", " ", tag)
    tag = re.sub(r' font-family: [^;"]*;?', "", tag)  # the root element has the font family of all
    tag = re.sub(r' transform="rotate\(-0 [^"]*"', "", tag)
    return tag if "transform=" in tag else re.sub(r"(\d\.\d\d)\d+", r"\1", tag)  # a factor needs all its digits


def _render(figure: "Figure", suffix: str) -> bytes:
    from jostle.figures.style import styled  # imports matplotlib, which a page of finished figures does not need

    buffer = io.BytesIO()
    with styled():
        figure.savefig(buffer, format=suffix[1:], dpi=200, facecolor="white", metadata=_METADATA[suffix])
    return buffer.getvalue()
