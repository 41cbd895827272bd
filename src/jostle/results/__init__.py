"""Records that are kept. Left of here: estimates. Right of here: figures."""

from jostle.results.store import Record, Store

__all__ = ["Record", "Store"]
