"""Benchmarks print ratios; run them with ``make benchmark``."""
