"""``jostle demo``."""


def demo() -> None:
    """Demo."""
