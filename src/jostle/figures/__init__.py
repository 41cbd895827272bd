"""Figures from records; no statistics here.

Every function returns a ``matplotlib.figure.Figure`` made without pyplot, so that nothing global changes and no window
opens. ``svg`` turns it into text for an HTML page, ``save`` into a file. To add a figure, imitate ``lines.py`` and take
colours, lines and markers from ``looks``: a network family has the same look in all figures (``style.FAMILIES``).

The names are in ``__init__.pyi`` and are imported on first use: matplotlib takes half a second, and a program that
draws nothing does not wait for it.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
