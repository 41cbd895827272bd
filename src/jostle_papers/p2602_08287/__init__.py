"""Noise Stability of Transformer Models (arXiv 2602.08287): does its regulariser speed up learning?

``speed`` trains with and without the regulariser and judges the steps to 99 %; ``grokking`` and ``parity`` are the two
tasks as studies. ``juntas`` asks language models how few tokens their predictions depend on.

The paper's code is not released, and we had its abstract and summaries, not its appendix: sizes, noise and the exact
form of the regulariser here are ours.
"""
