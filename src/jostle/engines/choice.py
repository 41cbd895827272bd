"""From what people type to an engine."""

from jostle.base import checks
from jostle.base.errors import UsageError
from jostle.engines.automatic import Automatic
from jostle.engines.engine import Engine
from jostle.engines.processes import Processes
from jostle.engines.ray_cluster import Ray
from jostle.engines.serial import Serial
from jostle.engines.torchrun import Torchrun

NAMES = ("serial", "processes", "ray", "torchrun")


def choose(
    engine: Engine | str | None = None,
    workers: int | None = None,
    *,
    address: str | None = None,
    cpus: int | None = None,
    gpus: float | None = None,
) -> Engine:
    """The engine that these arguments ask for; without any, this process, and others if that pays.

    >>> choose(workers=2)
    Processes(workers=2, cpus=1, tries=3)
    >>> choose("ray", address="auto", gpus=0.5)
    Ray(workers=None, address='auto', cpus=1, gpus=0.5, tries=3)

    Arguments:
        engine: ``serial``, ``processes``, ``ray`` or ``torchrun``, or an engine, which then takes no further arguments.
        workers: how many processes or actors; 1 is this process, with ``cpus`` threads like every other worker.
        address: of a Ray cluster.
        cpus: threads of a worker; by default 1 where ``workers`` are asked for, so that the number of workers changes
            no bit: a sum over several threads may be rounded in another way.
        gpus: of each actor of Ray.
    """
    if isinstance(engine, Engine):
        if (workers, address, cpus, gpus) != (None,) * 4:
            raise UsageError("workers, address, cpus and gpus are arguments of the engine: give them there")
        return engine
    if engine is not None and (not isinstance(engine, str) or engine not in NAMES):
        raise checks.wrong("engine", engine, ", ".join(NAMES))
    if workers is not None:
        checks.whole("workers", workers, least=1)
    for name, value in (("address", address), ("gpus", gpus)):
        if value is not None and engine != "ray":
            raise UsageError(f"{name}={value} is for engine=ray")
    return _make(engine, workers, address, cpus, gpus)


def _make(engine: str | None, workers: int | None, address: str | None, cpus: int | None, gpus: float | None) -> Engine:
    threads = 1 if cpus is None else cpus
    if engine == "ray":
        return Ray(workers, address, threads, 0 if gpus is None else gpus)
    if engine == "torchrun":
        if workers is not None:
            raise UsageError(f"workers={workers}: torchrun has started as many as --nproc-per-node says")
        return Torchrun(threads)
    if engine == "serial" and workers not in (None, 1):
        raise UsageError(f"engine=serial has one worker, not {workers}")
    if engine == "serial" or (engine is None and workers == 1):
        return Serial(cpus if workers is None else threads)
    if engine == "processes" or workers is not None:
        return Processes(workers, threads)
    return Automatic() if cpus is None else Serial(cpus)
