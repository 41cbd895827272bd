"""Functions on the Boolean cube {-1, 1}^n, whose sensitivity and Fourier spectrum are computed exactly.

``analyse`` is the entrance. It makes a table of the function (``tables``, in the order of ``cube``) and computes
sensitivities (``pointwise``), Fourier weights (``fourier``) and noise stability (``stability``); where 2^n points are
too many, ``sampled`` estimates the same quantities. ``functions`` have closed forms to compare with. ``kernels`` has
the kernels of infinitely wide and of finite networks on the cube; ``networks`` are networks on bits, and ``ensembles``
the functions that random weights compute.

The names are in ``__init__.pyi`` and are imported on first use: a table is analysed without waiting for torch.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
