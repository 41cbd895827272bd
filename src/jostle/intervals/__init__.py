"""Confidence intervals: pure statistics on counts and values, no models, no tensors.

``fixed`` is for samples whose size was chosen beforehand, ``anytime`` for samples that are looked at while they grow,
``seeds`` for a comparison of two networks over a few training seeds.
``jostle.base.estimate.Interval`` carries the ends together with the target and the method.
"""
