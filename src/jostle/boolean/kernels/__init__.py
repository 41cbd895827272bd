"""Kernels on the cube: which functions wide and finite networks prefer before training.

``kernel_spectrum`` gives the eigenvalues mu_0..mu_n of kernels that depend on <x, y> alone, for n up to 1000. All other
kernels are Gram matrices over the whole cube of up to 10 or 12 bits (``attention_gram``, ``empirical_ntk``,
``empirical_ck``), which ``fourier_projection`` and ``premise`` examine.
"""

from jostle.boolean.kernels.attention import attention_gram, default_scale
from jostle.boolean.kernels.finite import FiniteAttention, FiniteMlp, empirical_ck, empirical_ntk
from jostle.boolean.kernels.gram import Premise, Projection, fourier_projection, gram_eigenvalues, premise
from jostle.boolean.kernels.named import KERNELS, kernel_spectrum
from jostle.boolean.kernels.spectrum import Spectrum, spectrum_of

__all__ = [
    "KERNELS",
    "FiniteAttention",
    "FiniteMlp",
    "Premise",
    "Projection",
    "Spectrum",
    "attention_gram",
    "default_scale",
    "empirical_ck",
    "empirical_ntk",
    "fourier_projection",
    "gram_eigenvalues",
    "kernel_spectrum",
    "premise",
    "spectrum_of",
]
