"""Records in, figure out; no statistics here.

Every function returns a ``matplotlib.figure.Figure`` made without pyplot, so that nothing global changes and no window
opens. ``svg`` makes text for an HTML page of it, ``save`` a file. ``lines.py`` is the file to imitate.

The names are in ``__init__.pyi`` and are imported on first use: matplotlib takes half a second, and a program that
draws nothing does not wait for it.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
