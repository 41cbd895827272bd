"""Imported by the server that worker processes are forks of: all that they need, and patience with those who ask.

The server is Python's own, and would end when a run is killed in the middle of asking it for a worker.
"""

import errno
import multiprocessing.reduction
from typing import Any

from chaos.forks import warm_up

_receive = multiprocessing.reduction.recvfds


def _receive_patiently(*given: Any) -> Any:
    try:
        return _receive(*given)
    except EOFError:
        raise OSError(errno.ECONNABORTED, "the run was killed while it asked") from None


multiprocessing.reduction.recvfds = _receive_patiently
warm_up()
