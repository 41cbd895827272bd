"""``python -m jostle`` is ``jostle``."""

from jostle.cli import main

main()
