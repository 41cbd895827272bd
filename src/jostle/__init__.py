"""jostle: jostle one input token. Does the prediction hold?

Token sensitivity of neural networks, measured, located, compared and tracked, with intervals. The public names are in
``__init__.pyi``. They are imported on first use, so that ``import jostle`` and ``jostle --help`` do not wait for torch.
"""

import lazy_loader

__version__ = "0.1.0"

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
