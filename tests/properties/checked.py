"""The settings of all property tests: the same examples in every run, on every machine."""

import hypothesis

MODEST = hypothesis.settings(deadline=None, max_examples=40, derandomize=True)
FEW = hypothesis.settings(deadline=None, max_examples=15, derandomize=True)
