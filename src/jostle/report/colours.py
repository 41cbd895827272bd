"""The colours of a page: heat maps, and figures that follow the page from light to dark."""

import re
from collections.abc import Iterable

from jostle.report.page import HEAT_LEVELS, Page

# As ``jostle.figures.style.HEAT``, which imports matplotlib: from nearly white over orange to nearly black.
_HEAT = ("#fffaf0", "#fddc9f", "#f9a95a", "#e4692f", "#b32d3b", "#6d1141", "#2c0a2a")
_OPACITY = (0.55, 0.9)  # of the palest and the darkest colour over a picture; 0 is transparent
# Ink, paper and lines of figures, and what they become on a dark page.
_DARK = {"#ffffff": "#202327", "#22252a": "#e4e3df", "#5b6068": "#a3a7ad", "#b4b8bd": "#6b7078", "#e7e8e6": "#33373d"}
_READABLE = 0.42  # luminance that a line needs on dark paper
_STYLE = re.compile(r'style="[^"]*"')
_COLOUR = re.compile(r"#[0-9a-f]{6}\b")

Rgb = tuple[float, float, float]


def heat_style() -> str:
    """The style of the classes h0, h1, ... of squares, on light and on dark paper, and over a picture."""
    light = [_between(_HEAT, level / HEAT_LEVELS) for level in range(HEAT_LEVELS + 1)]
    return "\n".join(
        [
            *_levels(light),
            f"@media screen and (prefers-color-scheme: dark) {{\n{chr(10).join(_levels(light[::-1]))}\n}}",
            ".over .h0 { opacity: 0; }",
            *(f".over .h{level} {{ opacity: {_opacity(level):.2f}; }}" for level in range(1, HEAT_LEVELS + 1)),
        ]
    )


def _levels(colours: Iterable[Rgb]) -> list[str]:
    return [
        f".h{level} {{ background: {_hex(colour)}; color: {'#fff' if _luminance(colour) < 0.5 else '#22252a'}; }}"
        for level, colour in enumerate(colours)
    ]


def _opacity(level: int) -> float:
    return _OPACITY[0] + (_OPACITY[1] - _OPACITY[0]) * level / HEAT_LEVELS


def adaptable(svg: str) -> str:
    """A figure whose colours a page can replace: each is a variable, with the figure's own colour as its default.

    A figure with an image in it, such as a heat map, stays as it is: the words on the image would lose their contrast.

    >>> adaptable('<path style="fill: #22252a"/>')
    '<path style="fill: var(--c22252a, #22252a)"/>'
    """
    if not is_adaptable(svg):
        return svg
    return _STYLE.sub(lambda style: _COLOUR.sub(lambda c: f"var(--c{c[0][1:]}, {c[0]})", style[0]), svg)


def is_adaptable(svg: str) -> bool:
    """Whether a figure follows the page from light to dark; otherwise it stays on white paper."""
    return "<image" not in svg


def dark_figures(page: Page) -> str:
    """The colours of all figures of a page on dark paper; empty if there is no figure."""
    drawn = [svg for section in page.sections for svg in (section.figure_svg, section.narrow_svg) if svg is not None]
    drawn = [svg for svg in drawn if is_adaptable(svg)]
    found = sorted({colour for svg in drawn for style in _STYLE.findall(svg) for colour in _COLOUR.findall(style)})
    if not found:
        return ""
    variables = " ".join(f"--c{colour[1:]}: {on_dark(colour)};" for colour in found)
    return f"@media screen and (prefers-color-scheme: dark) {{ :root {{ {variables} }} }}"


def on_dark(colour: str) -> str:
    """A colour of a figure as it is on dark paper: ink becomes pale, and dark lines become light enough to be seen.

    >>> on_dark("#22252a"), on_dark("#0072b2"), on_dark("#e69f00")
    ('#e4e3df', '#1e83bb', '#e69f00')
    """
    if colour in _DARK:
        return _DARK[colour]
    red, green, blue = _rgb(colour)
    luminance = _luminance((red, green, blue))
    share = max(0.0, (_READABLE - luminance) / (1 - luminance)) if luminance < 1 else 0.0
    return _hex((red + (1 - red) * share, green + (1 - green) * share, blue + (1 - blue) * share))


def _between(stops: tuple[str, ...], share: float) -> Rgb:
    """The colour at a place of a scale of colours."""
    place = share * (len(stops) - 1)
    first = min(int(place), len(stops) - 2)
    low, high = _rgb(stops[first]), _rgb(stops[first + 1])
    red, green, blue = (a + (b - a) * (place - first) for a, b in zip(low, high, strict=True))
    return red, green, blue


def _rgb(colour: str) -> Rgb:
    red, green, blue = (int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5))
    return red, green, blue


def _hex(colour: Rgb) -> str:
    return "#" + "".join(f"{round(255 * part):02x}" for part in colour)


def _luminance(colour: Rgb) -> float:
    return 0.299 * colour[0] + 0.587 * colour[1] + 0.114 * colour[2]
