"""Sequences whose label can be read from a few sparse or from many frequent tokens, and what attention learns of them.

Source: paper 1 (2403.06925), Section 4.1 and appendix A.1.

``task`` makes the data, ``network`` is the layer of self-attention that is trained on it, ``alignment`` says which
tokens a network uses. ``predictors`` use one kind of token only, and have a formula for their sensitivity;
``replacements`` computes the sensitivity of any function exactly, by trying all replacements.
"""

from jostle_papers.p2403_06925.synthetic.alignment import alignments, attention_shares, expected_alignments
from jostle_papers.p2403_06925.synthetic.network import SelfAttention
from jostle_papers.p2403_06925.synthetic.predictors import counting, counting_sensitivity
from jostle_papers.p2403_06925.synthetic.replacements import attention_flips, exact_sensitivity, flips
from jostle_papers.p2403_06925.synthetic.task import GROUPS, SparseFrequent, swap_sparse

__all__ = [
    "GROUPS",
    "SelfAttention",
    "SparseFrequent",
    "alignments",
    "attention_flips",
    "attention_shares",
    "counting",
    "counting_sensitivity",
    "exact_sensitivity",
    "expected_alignments",
    "flips",
    "swap_sparse",
]
