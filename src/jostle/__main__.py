"""``python -m jostle``: the command line."""

import sys

try:
    from jostle.cli import main

    main()
except KeyboardInterrupt:  # before main can see to it
    print("jostle: interrupted", file=sys.stderr)  # noqa: T201
    sys.exit(130)
finally:
    # After a Ctrl-C inside ``exec``, of a dataclass for example, ``python -m`` ends by the signal and not with the code
    # that was asked for, until it runs another text.
    exec("")
