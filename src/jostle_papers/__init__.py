"""The studies of three papers and of our own, and what only they need. The library is ``jostle``."""
