"""Confidence intervals: pure statistics on counts and values, no models, no tensors.

``fixed`` is for samples whose size was chosen beforehand, ``anytime`` for samples that stop when they look good enough,
``sequential`` for samples that stop because their own interval is narrow enough. ``jostle.base.estimate.Interval``
carries the ends together with the target and the method.
"""
