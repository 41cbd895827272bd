"""``python -m jostle``: the command line."""

import sys

try:
    from jostle.cli import main
except KeyboardInterrupt:  # before main can see to it
    print("jostle: interrupted", file=sys.stderr)  # noqa: T201
    sys.exit(130)

main()
