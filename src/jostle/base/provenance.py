"""Where a number came from: versions, machine kind, time."""

import datetime
import functools
import platform
from importlib import metadata


def provenance() -> dict[str, str]:
    """What to write beside every result."""
    versions = {name: _version(name) for name in ("jostle", "torch", "numpy", "scipy")}
    return {
        **versions,
        "python": platform.python_version(),
        "machine": f"{platform.system()} {platform.machine()}",
        "time": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
    }


@functools.cache
def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "unknown"
