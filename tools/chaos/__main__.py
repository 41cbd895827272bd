"""``make chaos``: run the attacks, add to the record, and write docs/chaos.md from it."""

import argparse
import functools
import os
import signal
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from chaos import files, forks, functions, kills, page, record, words
from chaos.record import Count

Attack = Callable[[Path, int, int, Callable[[Count], None], Mapping[str, int]], None]
ATTACKS: dict[str, Attack] = {"kills": kills.run, "files": files.run, "words": words.run, "functions": functions.run}


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(prog="make chaos", description=__doc__)
    for name in ATTACKS:
        parser.add_argument(f"--{name}", type=int, default=0, metavar="N", help="how many more")
    parser.add_argument("--seed", type=int, default=time.time_ns() % 2**32, help="of what is tried")
    parser.add_argument("--work", type=Path, default=record.ROOT / "runs" / "chaos", help="folder for files")
    parser.add_argument("--record", type=Path, default=record.RECORD, help="file of all counts")
    parser.add_argument("--page", type=Path, default=record.ROOT / "docs" / "chaos.md", help="page that is written")
    parser.add_argument("--only", nargs="+", metavar="COMMAND", help="kill these commands, by the names on the page")
    parser.add_argument("--fresh", action="store_true", help="forget earlier counts of the attacks that are asked for")
    parser.add_argument(
        "--mended", nargs=3, metavar=("ATTACK", "WORDS", "TEST"), help="faults with these words have this test now"
    )
    given = parser.parse_args()
    chosen = [name for name in ATTACKS if getattr(given, name)]
    if given.fresh:
        record.start_again(given.record, chosen)
    if given.mended:
        print(record.mend(given.record, *given.mended), "faults are mended")  # noqa: T201
    os.environ["OMP_NUM_THREADS"] = "1"
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    if chosen:
        forks.warm_up()
    try:
        _run(given)
    finally:
        record.note_unreached(given.record, [victim.name for victim in kills.victims()])
        page.write_page(record.read(given.record), given.page)


def _run(given: argparse.Namespace) -> None:
    """All attacks that are asked for."""
    for name, attack in ATTACKS.items():
        number = getattr(given, name)
        if number:
            work = given.work.resolve() / name
            work.mkdir(parents=True, exist_ok=True)
            before = record.read(given.record).get(name, {}).get("where", {})
            keep = functools.partial(_keep, given.record, name)
            if name == "kills" and given.only:
                kills.run(work, number, given.seed, keep, before, kills.named(given.only))
            else:
                attack(work, number, given.seed, keep, before)


def _keep(path: Path, name: str, count: Count) -> None:
    tried, faults = sum(count.tried.values()), list(count.faults)
    record.add(path, name, count)
    print(f"{time.strftime('%H:%M:%S')} {name}: {tried} more", *faults, sep="\n  ", flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
