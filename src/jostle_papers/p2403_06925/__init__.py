"""Paper 1, "Transformers Learn Low Sensitivity Functions" (arXiv 2403.06925): one file a figure or table.

Section, figure or table of the paper, and where it is:

* Section 3, Propositions 3.1 and 3.2: ``proposition_3_1.py``, ``proposition_3_2.py``
* Section 4, Tables 1 and 3: ``table_1.py``, ``table_3.py``. Figures 3 and 12: ``figure_3.py``. All use ``synthetic/``.
* Section 5, images: Figures 4 and 16: ``figure_4.py``. Figure 13: ``figure_13.py``. Figure 14: ``figure_14.py``. Figure
  17: ``figure_17.py``. Figure 18: ``figure_18.py``. Figure 19: ``figure_19.py``. Depth and heads: ``depth_heads.py``.
  ImageNet: ``imagenet_pretrained.py``. ``cifar.py`` and ``fashion.py`` have the networks and settings that they share.
* Section 6, texts: ``language_sensitivity.py`` (QQP and MRPC), ``mrpc.py`` (MRPC at the paper's own size),
  ``language_equal_rates.py`` (one learning rate for all), ``language_positions.py``, ``language_variance.py``,
  ``language_validation.py``, ``language_gpt2.py``, ``language_init.py``, ``language_choices.py`` (choices of the
  released code). Figure 23: ``figure_23.py``. ``text.py`` has the networks and settings that they share.
* Section 7, robustness and flat minima: Figures 9, 20 and 21: ``figure_9.py`` and, with a penalty on sensitivity,
  ``figure_9_penalty.py``. Table 2: ``table_2.py``. ``robustness.py`` has what studies of robustness share.
* Table 4, noise over the whole input: ``table_4.py`` (images), ``table_4_language.py`` (texts)
* Grokking, and weight norm beside it: ``grokking/study.py``. Figure 26, sparse parity: ``figure_26.py``, with
  ``parity/``.

To add a figure of trained networks, imitate ``figure_4.py``: settings at three scales, deviations, expectations.
"""
