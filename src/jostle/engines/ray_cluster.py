"""``Ray``: workers on a Ray cluster, or on this machine through Ray. https://docs.ray.io, package ``ray``.

A worker is an actor with the CPUs and GPUs asked for. The work is put into Ray's object store once, which brings it to
each node once. Ray tells when an actor or its node is gone; its unit then goes to a new actor.
"""

import contextlib
import io
import logging
import os
import socket
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np

from jostle.base import checks
from jostle.base.errors import FailureError, UsageError
from jostle.base.progress import State
from jostle.engines import payload
from jostle.engines.engine import MOST_THREADS, Engine, Work, describe
from jostle.engines.pool import TRIES, Death, Event, Hands, Pool, Unready, Worker
from jostle.engines.worker import do_bytes, open_work

_SECONDS_BETWEEN_LOOKS = 1.0
_SECONDS_TO_ANSWER = 10.0


@dataclass(frozen=True)
class Ray(Engine):
    """Actors of a Ray cluster.

    Arguments:
        workers: how many actors, at most as many as the cluster has room for, which is the default.
        address: of a running cluster (``auto``, ``host:6379`` or ``ray://host:10001``); None for the one that this
            process or ``RAY_ADDRESS`` knows, and otherwise for a new one on this machine.
        cpus: processors of each actor, which is also its number of threads.
        gpus: GPUs of each actor; a part of one if several share it. Models then run there.
        tries: how often a unit is tried if actors die at it.
    """

    workers: int | None = None
    address: str | None = None
    cpus: int = 1
    gpus: float = 0
    tries: int = TRIES

    def __post_init__(self) -> None:
        checks.whole("cpus", self.cpus, least=1, most=MOST_THREADS)
        checks.number("gpus", self.gpus, least=0)
        if self.workers is not None:
            checks.whole("workers", self.workers, least=1)

    @contextlib.contextmanager
    def crew(self, work: Work) -> Iterator[Pool]:
        """Actors that have opened this work."""
        with self._connected() as ray:
            file = io.BytesIO()
            payload.dump(work, file, "engine=ray: the model or its inputs")
            stored = ray.put(np.frombuffer(file.getbuffer(), dtype=np.uint8))
            actor = ray.remote(num_cpus=self.cpus, num_gpus=self.gpus, max_concurrency=2)(Actor)
            room = self._room(ray)  # an actor without room waits, and its unit with it
            pool = Pool(_Hands(ray, actor, stored, self.cpus), min(self.workers or room, room), self.tries)
            try:
                yield pool
            finally:
                pool.close()

    def _room(self, ray: Any) -> int:
        """How many actors the cluster has room for."""
        there = ray.cluster_resources()
        room = int(there.get("CPU", 0) // self.cpus)
        if self.gpus:
            room = min(room, int(there.get("GPU", 0) / self.gpus))
        if not room:
            raise UsageError(
                f"engine=ray: the cluster has {there.get('CPU', 0):g} CPUs and {there.get('GPU', 0):g} GPUs, too few "
                f"for one worker with cpus={self.cpus} and gpus={self.gpus:g}"
            )
        return room

    @contextlib.contextmanager
    def _connected(self) -> Iterator[Any]:
        """The package, connected to a cluster; a cluster that was started here is ended here."""
        os.environ.setdefault("RAY_raylet_start_wait_time_s", "120")  # a busy machine needs longer than the default
        os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
        try:
            import ray
        except ImportError:
            raise UsageError("engine=ray needs the package ray: pip install 'jostle[ray]'") from None
        if ray.is_initialized():
            yield ray
            return
        _check_address(self.address)
        is_elsewhere = self.address is not None or "RAY_ADDRESS" in os.environ
        size = {} if is_elsewhere else self._size_here()
        try:
            ray.init(
                address=self.address, include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR, **size
            )
        except Exception as error:  # each kind of address has errors of its own
            where = f"address={self.address}" if self.address else "a cluster on this machine"
            raise FailureError(f"engine=ray cannot reach {where} ({describe(error)})") from error
        try:
            yield ray
        finally:
            ray.shutdown()

    def _size_here(self) -> dict[str, Any]:
        """How large a cluster on this machine is made, if more workers are asked for than there are processors."""
        return {} if self.workers is None else {"num_cpus": self.workers * self.cpus}


def _check_address(address: str | None) -> None:
    """Raise if nobody answers there: Ray itself would try for many minutes, deaf to Ctrl-C."""
    host, _, port = (address or "").removeprefix("ray://").rpartition(":")
    if not host or not port.isdigit():
        return
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=_SECONDS_TO_ANSWER).close()
    except OSError as error:
        raise FailureError(f"engine=ray cannot reach address={address} ({describe(error)})") from None


class Actor:
    """What runs in a worker of Ray.

    Arguments:
        stored: the payload.
        cpus: threads.
    """

    def __init__(self, stored: Any, cpus: int) -> None:
        self._stored, self._cpus = stored, cpus
        self._work: Work | None = None
        self._state: State | None = None

    def do(self, unit: bytes) -> bytes:
        """The outcome of a unit, both as bytes."""
        if self._work is None:
            try:
                self._work = open_work(self._stored.tobytes(), self._cpus)
            except Exception as error:
                reason = f"engine=ray: a worker cannot open what it was sent ({describe(error)})"
                return payload.dumps(Unready(reason), "outcome")
            self._stored = None
        return do_bytes(self._work, unit, self._report)

    def _report(self, state: State) -> None:
        self._state = state

    def state(self) -> State | None:
        """How far the unit is that ``do`` is at; asked while ``do`` runs."""
        return self._state

    def process(self) -> int:
        """The number of its process."""
        return os.getpid()


@dataclass
class _Remote(Worker):
    """An actor, and the promise of the outcome of its unit."""

    ray: Any
    actor: Any
    pending: Any = None

    def give(self, unit: Any) -> None:
        """Send a unit."""
        self.pending = self.actor.do.remote(payload.dumps(unit, "engine=ray: a unit of work"))

    def end(self) -> None:
        """End the actor."""
        with contextlib.suppress(Exception):  # it or its node is gone
            self.ray.kill(self.actor)


@dataclass
class _Hands(Hands):
    """Starts actors that open the work in the object store."""

    ray: Any
    actor: Any
    stored: Any
    cpus: int
    asked: dict[int, Any] = field(default_factory=dict)

    def hire(self) -> _Remote:
        """A new actor."""
        return _Remote(self.ray, self.actor.remote(self.stored, self.cpus))

    def listen(self, workers: list[Worker]) -> Iterator[tuple[Worker, Event]]:
        """What the next of these actors say; while none has ended its unit, how far they are."""
        remotes = {cast(_Remote, worker).pending: cast(_Remote, worker) for worker in workers}
        ready, _ = self.ray.wait(list(remotes), num_returns=1, timeout=_SECONDS_BETWEEN_LOOKS)
        if not ready:
            yield from self._states(list(remotes.values()))
            return
        for reference in ready:
            yield remotes[reference], self._event(reference)

    def _event(self, reference: Any) -> Event:
        try:
            return cast(Event, payload.loads(self.ray.get(reference)))
        except self.ray.exceptions.RayError as error:
            return Death(f"was lost by Ray ({describe(error)[:200]})")

    def _states(self, workers: list[_Remote]) -> Iterator[tuple[Worker, Event]]:
        """How far units are, as far as their actors answer at once."""
        for worker in workers:
            asked = self.asked.pop(id(worker), None)
            if asked is not None and self.ray.wait([asked], timeout=0)[0]:
                with contextlib.suppress(self.ray.exceptions.RayError):
                    state = self.ray.get(asked)
                    if state is not None:
                        yield worker, state
                asked = None
            self.asked[id(worker)] = worker.actor.state.remote() if asked is None else asked
