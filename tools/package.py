"""Build the wheel and the source distribution, look into them, and try both in an environment of its own.

    python tools/package.py             build, look, install with everything it needs (minutes), try
    python tools/package.py --borrow    the same, with the packages of this environment instead of fresh ones
    python tools/package.py --look      build and look only (seconds)

The wheel must hold every file of src/ that git knows, and nothing else; the source distribution those of ``SHIPPED``.
"""

import argparse
import os
import subprocess
import sys
import tarfile
import tempfile
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SHIPPED = (
    "src",
    "README.md",
    "LICENSE",
    "CHANGELOG.md",
    "CITATION.cff",
    "constraints.txt",
    "pyproject.toml",
    ".gitignore",
)
MADE = ("PKG-INFO",)
MOST_BYTES = 4_000_000  # of either file
LENT = "borrowed.pth"
TORCH = "torch==2.13.0"  # first and pinned, as in the Makefile

TRIES = (
    ["jostle", "--version"],
    ["jostle", "--help"],
    ["jostle", "list", "models"],
    ["jostle", "list", "studies"],
    ["jostle", "boolean", "majority", "--n", "5"],
    ["jostle", "try", "--no-open"],
    ["jostle", "completion", "bash"],
)
LAZY = """
import sys, jostle
heavy = {"torch", "transformers", "lightning", "torchmetrics", "ray", "pandas", "onnxruntime", "sklearn", "matplotlib"}
assert not heavy & set(sys.modules), heavy & set(sys.modules)
assert ".tmp" not in jostle.__file__ and "site-packages" in jostle.__file__, jostle.__file__
"""


def tracked(*under: str) -> set[str]:
    """The files that git knows, and new ones that it does not ignore."""
    words = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "--", *under]
    listed = subprocess.run(words, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return {name for name in listed.splitlines() if (ROOT / name).exists()}


def build(out: Path) -> tuple[Path, Path]:
    """The wheel and the source distribution, made by hatchling."""
    for kind in ("wheel", "sdist"):
        made = [sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", str(out)]
        subprocess.run(made, cwd=ROOT, check=True, capture_output=True)
    (wheel,), (sdist,) = out.glob("*.whl"), out.glob("*.tar.gz")
    return wheel, sdist


def problems(wheel: Path, sdist: Path) -> list[str]:
    """What is missing, what should not be there, and what is too large."""
    with zipfile.ZipFile(wheel) as file:
        held = {name for name in file.namelist() if ".dist-info/" not in name}
    with tarfile.open(sdist) as file:
        shipped = {name.partition("/")[2] for name in file.getnames() if name.partition("/")[2]}
    wanted = {name.removeprefix("src/") for name in tracked("src")}
    allowed = tracked(*SHIPPED) | set(MADE)
    found = [f"wheel lacks {name}" for name in sorted(wanted - held)]
    found += [f"wheel holds {name}" for name in sorted(held - wanted)]
    found += [f"sdist lacks {name}" for name in sorted(allowed - shipped)]
    found += [f"sdist holds {name}" for name in sorted(shipped - allowed)]
    found += [
        f"{path.name} has {path.stat().st_size:,} bytes" for path in (wheel, sdist) if path.stat().st_size > MOST_BYTES
    ]
    return found


def install(wheel: Path, folder: Path, *, borrow: bool) -> Path:
    """An environment with the wheel in it; returns the folder of its programs."""
    venv.create(folder, with_pip=True)
    pip = _pip(folder)
    if borrow:
        subprocess.run([*pip, "--no-deps", str(wheel)], check=True)
        _lend(folder)
    else:
        pinned = ["--constraint", str(ROOT / "constraints.txt")]
        subprocess.run([*pip, *pinned, TORCH], check=True)
        subprocess.run([*pip, *pinned, str(wheel)], check=True)
    return folder / "bin"


def replace_by(sdist: Path, folder: Path, *, borrow: bool) -> None:
    """Put what the source distribution builds into the place of the wheel; what it needs is there already."""
    pip = [*_pip(folder), "--no-deps", "--force-reinstall"]
    if not borrow:
        subprocess.run([*pip, str(sdist)], check=True)
        return
    made = folder / "made"  # built by the hatchling of this environment, without a network
    build_it = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "-w", str(made)]
    subprocess.run([*build_it, str(sdist)], check=True)
    _site(folder).joinpath(LENT).unlink()  # pip must not see, and remove, the jostle that is lent
    (wheel,) = made.glob("*.whl")
    subprocess.run([*pip, str(wheel)], check=True)
    _lend(folder)


def _pip(folder: Path) -> list[str]:
    return [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]


def _site(folder: Path) -> Path:
    (site,) = (folder / "lib").glob("python*/site-packages")
    return site


def _lend(folder: Path) -> None:
    """Lend the packages of this environment to another; its own come first."""
    others = [path for path in map(Path, sys.path) if path.name == "site-packages" and path != _site(folder)]
    (_site(folder) / LENT).write_text("".join(f"{path}\n" for path in others))


def try_out(programs: Path, where: Path) -> None:
    """Run commands of the installed package in an empty folder; the first that fails raises."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    environment |= {"PATH": f"{programs}:{os.environ['PATH']}", "OMP_NUM_THREADS": "1"}
    for words in [*TRIES, ["python", "-c", LAZY]]:
        program = [str(programs / words[0]), *words[1:]]
        ended = subprocess.run(program, cwd=where, env=environment, capture_output=True, text=True, check=False)
        if ended.returncode:
            raise SystemExit(f"{' '.join(words)} failed in the clean environment:\n{ended.stdout}{ended.stderr}")
        say(f"  {' '.join(words)[:60].splitlines()[0]}")


def say(text: str) -> None:
    """Print a line."""
    sys.stdout.write(f"{text}\n")


def main() -> None:
    """Do what the arguments ask for; the first problem ends it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--borrow", action="store_true", help="use the packages of this environment")
    parser.add_argument("--look", action="store_true", help="do not install")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        wheel, sdist = build(Path(folder))
        wrong = problems(wheel, sdist)
        say(f"{wheel.name} {wheel.stat().st_size:,} bytes, {sdist.name} {sdist.stat().st_size:,} bytes")
        if wrong:
            raise SystemExit("\n".join(wrong))
        if not chosen.look:
            place, empty = Path(folder) / "environment", Path(folder) / "empty"
            empty.mkdir()
            programs = install(wheel, place, borrow=chosen.borrow)
            try_out(programs, empty)
            say(f"the same from {sdist.name}")
            replace_by(sdist, place, borrow=chosen.borrow)
            try_out(programs, empty)


if __name__ == "__main__":
    main()
