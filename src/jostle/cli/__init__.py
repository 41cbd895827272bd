"""The command line. Nothing here imports torch before a command needs it, so that ``jostle --help`` answers at once."""

from jostle.cli.app import main

__all__ = ["main"]
