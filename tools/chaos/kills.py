"""Kills at random moments: whatever is killed, and how, goes on when it is started again and ends with the same bytes.

What is killed: every study at smoke scale, by one process or two workers, and every other command that writes a file.
Who is killed: the process of the command, one of its workers, or all of them at once. How: SIGKILL,
SIGTERM, SIGINT, SIGHUP. A command without checkpoints, such as ``jostle measure``, writes its files at the end; each
must be whole or absent.
"""

import contextlib
import hashlib
import json
import math
import os
import random
import shutil
import signal
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from chaos import record, words
from chaos.forks import TRACEBACK, UNEXPECTED, Outcome, Running, cold_command, command, members_of
from chaos.record import Count
from jostle import studies
from jostle.base.errors import JostleError
from jostle.base.store import Store

SIGNALS = {"KILL": signal.SIGKILL, "TERM": signal.SIGTERM, "INT": signal.SIGINT, "HUP": signal.SIGHUP}
LONGEST = 900.0  # seconds, of a command that nobody kills
_PATIENCE = 60.0  # seconds between a signal and the end
_PARTS_OF_A_RUN = 6  # the mean time to a kill is this part of the whole
_SOON, _LATE = 0.05, 1.5  # seconds, bounds of that mean
_COLD = 0.7  # seconds after which Python has come to jostle
_WITH_WORKERS = 0.35  # share of the kills of commands that can have worker processes
_INTERRUPTED = 130
_LEAST, _MOST = 4, 20  # kills of a command before it is let end
_VARYING = ("provenance", "seconds", "timings")  # of results; about times, machines and processes

Essence = dict[str, str]  # a hash of each part of what a command leaves behind


@dataclass(frozen=True)
class Victim:
    """A command to be killed.

    Arguments:
        name: of it.
        words: of its command line; ``{out}`` is the folder for what it writes, ``{home}`` that of what it reads.
        can_have_workers: whether it takes ``--workers``.
    """

    name: str
    words: tuple[str, ...]
    can_have_workers: bool = False

    def command(self, out: Path, home: Path, workers: int = 1) -> list[str]:
        """The words with the folders in them."""
        filled = [word.replace("{out}", str(out)).replace("{home}", str(home)) for word in self.words]
        return [*filled, "--workers", str(workers)] if workers > 1 else filled


def victims() -> list[Victim]:
    """All commands that are killed."""
    subject = ("--data", "mnist-5000", "--tokens", "patches:7", "--limit", "200", "--quiet")
    saved = ("-o", "{out}/r.json", "--report", "{out}/r.html")
    sample = ("--model", "sample:mlp", *subject)
    whole = ("--model", "sample:mlp", "--data", "mnist-5000", "--limit", "50", "--quiet")
    noise = ("--perturbation", "gaussian-noise:std=1", "--max-passes", "20000")
    images = ("--data", "drawn-digits", "--corruption", "noise,fog")
    commands = [
        Victim("measure", ("measure", *sample, *noise, *saved), can_have_workers=True),
        Victim("compare", ("compare", *sample, "--model", "sample:cnn", *noise, *saved), can_have_workers=True),
        Victim(
            "sweep",
            ("sweep", *sample, "--stds", "0.5", "2", "--max-passes", "4000", "-o", "{out}/r.json"),
            can_have_workers=True,
        ),
        Victim("stability", ("stability", *whole, "--rho", "0.5", "0.9", "--max-passes", "4000", "-o", "{out}/r.json")),
        Victim("certify", ("certify", *whole, "--std", "0.5", "--draws", "200", "-o", "{out}/r.json")),
        Victim("worst-case", ("worst-case", *sample, "--radius", "1", "--steps", "5", "-o", "{out}/r.json")),
        *_of_texts(),
        Victim("corrupt to arrays", ("corrupt", *images, "--limit", "20", "--out", "{out}/c.npz")),
        Victim("corrupt to a picture", ("corrupt", *images, "--out", "{out}/c.png")),
        Victim("try", ("try", "--no-open", "--report", "{out}/r.html")),
        Victim("report", ("report", str(record.ROOT / "docs" / "results"), "-o", "{out}/r.html")),
        Victim("boolean", ("boolean", "majority", "--n", "13", "--figure", "{out}/f.svg")),
        Victim("demo", ("demo", "--quick", "--out", "{out}/demo")),
    ]
    runs = [
        Victim(f"run {name}", ("run", name, "--scale", "smoke", "--out", "{out}", "--quiet"), can_have_workers=True)
        for name in studies.names()
    ]
    return [*commands, *runs]


def named(names: Sequence[str]) -> list[Victim]:
    """The commands with these names."""
    known = {victim.name: victim for victim in victims()}
    unknown = [name for name in names if name not in known]
    if unknown:
        raise SystemExit(f"no command is called {', '.join(unknown)}; known: {', '.join(known)}")
    return [known[name] for name in names]


def _of_texts() -> list[Victim]:
    """Commands that read texts, with the small models of the mutated command lines."""
    texts = ("--data", "csv:{home}/texts.csv", "--quiet")
    saved = ("-o", "{out}/r.json", "--csv", "{out}/r.csv")
    classifier, language = ("--model", "hf:{home}/classifier"), ("--model", "hf:{home}/language")
    page, few = ("--report", "{out}/r.html"), ("--max-passes", "2000")
    return [
        Victim("change", ("change", *classifier, *texts, "--change", "typo", "--draws", "300", *saved, *page)),
        Victim("influence", ("influence", *language, *texts, "--response", "kl", *few, *saved, *page)),
        Victim("depth", ("depth", *language, *texts, "--site", "mlp", "--response", "kl", *few, *saved)),
        Victim("measure texts", ("measure", *classifier, *texts, "--draws", "300", *saved, *page)),
    ]


def essence(folder: Path) -> Essence:
    """What a finished command has left in ``folder``, without what may differ from run to run: times and provenance."""
    found: Essence = {}
    for path in sorted(folder.rglob("*")):
        if path.is_dir() or "networks" in path.parts or path.name in (".lock", ".finished"):
            continue
        name = str(path.relative_to(folder))
        if path.suffix == ".html":
            found[name] = _whole_page(path)
        elif path.name == "records.jsonl":
            for key, value in cells(path).items():
                found[f"{name} {key}"] = value
        elif path.suffix == ".json":
            found[name] = _hash(_steady(json.loads(path.read_text())))
        else:
            found[name] = _hash(path.read_bytes().decode("latin-1"))
    return found


def _whole_page(path: Path) -> str:
    """That a page is whole; it has times in it."""
    if not path.read_text(encoding="utf-8").rstrip().endswith("</html>"):
        raise ValueError(f"{path.name} is cut")
    return "whole"


def cells(path: Path) -> dict[str, str]:
    """The hash of each record in a file, without the number of its session, its time and its warnings."""
    store = Store(path)
    found = {}
    for key in store:
        if not key.startswith(("session/", "provenance")):
            kept = dict(store[key])
            for name in ("session", "seconds", "warnings", *_VARYING):
                kept.pop(name, None)
            found[key] = _hash(_steady(kept))
    return found


def _steady(value: object) -> object:
    """A result without what differs from run to run."""
    if isinstance(value, dict):
        return {key: _steady(one) for key, one in value.items() if key not in (*_VARYING, "warnings")}
    return [_steady(one) for one in value] if isinstance(value, list) else value


def _hash(value: object) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]


def code() -> str:
    """A hash of the code that is attacked, and of this file, which says what of a result is compared."""
    files = [*sorted((record.ROOT / "src").rglob("*.py")), Path(__file__)]
    return _hash([path.read_text(encoding="utf-8") for path in files])


class FailedError(Exception):
    """A command fails though nobody kills it."""


class Attack:
    """Kills of commands, until a number is reached.

    Arguments:
        work: folder for what the commands write; references in it are used again.
        rng: decides who is killed when.
        share_of_cold: of the kills that hit a new ``python -m jostle``, with workers by ``spawn``, and not a fork.
    """

    def __init__(self, work: Path, rng: random.Random, share_of_cold: float = 0.05) -> None:
        self.work, self.rng, self.share_of_cold = work, rng, share_of_cold
        self.count = Count()
        self._references = Store(work / "references.jsonl")
        self._code = code()
        self._home = work / "home"
        if not (self._home / "language").exists():
            words.make_folder(self._home)
            words.add_text_models(self._home)

    def reference(self, victim: Victim) -> tuple[Essence, float]:
        """What the command leaves behind if nobody kills it, and the seconds that it takes."""
        key = f"{victim.name} {_hash([self._code, *victim.words])}"  # what other code did says nothing about this one
        if key not in self._references:
            out = self.work / "reference" / _file_name(victim.name)
            shutil.rmtree(out, ignore_errors=True)
            out.mkdir(parents=True)
            ended = Running(command(victim.command(out, self._home), memory=None), out).outcome(LONGEST)
            if ended.code or ended.is_late:
                raise FailedError(f"{victim.name} fails though nobody kills it: {ended.code} {ended.err[-500:]}")
            self._references.append(key, {"essence": essence(out), "seconds": ended.seconds})
            shutil.rmtree(out)
        kept = self._references[key]
        return kept["essence"], kept["seconds"]

    def attack(self, victim: Victim, kills: int) -> None:
        """Kill a command so often, start it again each time, let it end, and compare."""
        expected, seconds = self.reference(victim)
        out = self.work / "attacked" / _file_name(victim.name)
        shutil.rmtree(out, ignore_errors=True)
        out.mkdir(parents=True)
        for _ in range(kills):
            self._kill_once(victim, out, seconds)
            self._compare(victim, out, expected, whole=False)
        for attempt in range(3):
            ended = Running(command(victim.command(out, self._home), memory=None), out).outcome(LONGEST)
            if ended.code == 0:
                break
            if attempt == 2 or TRACEBACK in ended.err or UNEXPECTED in ended.err:
                self.count.fault("not resumed", f"{victim.name}: exit code {ended.code}: {ended.err[-2000:]}")
        self._compare(victim, out, expected, whole=True)
        self.count.ended["started until the end and compared"] += 1
        shutil.rmtree(out, ignore_errors=True)

    def _kill_once(self, victim: Victim, out: Path, seconds: float) -> None:
        rng = self.rng
        is_cold = rng.random() < self.share_of_cold
        workers = 2 if victim.can_have_workers and (is_cold or rng.random() < _WITH_WORKERS) else 1
        who = rng.choice(("parent", "worker", "worker", "group", "group") if workers > 1 else ("parent",))
        how = rng.choice(list(SIGNALS))
        act = cold_command if is_cold else command
        running = Running(act(victim.command(out, self._home, workers), memory=None), out)
        mean = min(max(seconds / _PARTS_OF_A_RUN, _SOON), _LATE)
        begins = _COLD if is_cold or workers > 1 else 0.0  # Python itself has started, here or in the workers
        if running.wait(begins + rng.expovariate(1 / (mean + begins))):
            hit = "none"
        else:
            hit = self._hit(running, who, SIGNALS[how])
            self.count.tried[f"{hit} SIG{how}"] += 1
            self.count.where[victim.name] += 1
            self.count.ended["of a new process"] += is_cold
            if hit == "worker" and not running.wait(rng.expovariate(1 / mean)):
                running.kill(signal.SIGKILL)  # the run goes on without its worker; it need not be waited for
        ended = running.outcome(_PATIENCE)
        self._judge(ended, f"{victim.name}, {hit} SIG{how}", hit, SIGNALS[how])
        self._bury_workers(victim.name, running.pid)

    def _hit(self, running: Running, who: str, number: int) -> str:
        """Send a signal; who got it."""
        workers = members_of(running.pid)
        if who == "worker" and workers:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.rng.choice(workers), number)
                return "worker"
        if who == "group":
            for pid in workers:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, number)
        running.kill(number)
        return "group" if who == "group" else "parent"

    def _judge(self, ended: Outcome, what: str, hit: str, number: int) -> None:
        """Whether a command that was killed ended as it should."""
        usual = {0, -number, _INTERRUPTED if number == signal.SIGINT else -number}
        if hit in ("worker", "group"):
            usual |= {1, -signal.SIGKILL}  # its cell failed, and that is said
        if ended.is_late:
            self.count.fault("hang", f"{what}: {ended.err[-1000:]}")
        elif any(sign in ended.err + ended.out for sign in (TRACEBACK, UNEXPECTED)):
            self.count.fault("traceback", f"{what}: {ended.err[-3000:]}")
        elif ended.code not in usual:
            self.count.fault("wrong exit code", f"{what}: {ended.code}: {ended.err[-1000:]}")

    def _bury_workers(self, what: str, group: int) -> None:
        """Workers must end with their run."""
        end = time.monotonic() + _PATIENCE
        while left := members_of(group):
            if time.monotonic() > end:
                self.count.fault("orphan", f"{what}: {len(left)} workers outlived their run")
                for pid in left:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
                return
            time.sleep(0.01)

    def _compare(self, victim: Victim, out: Path, expected: Essence, *, whole: bool) -> None:
        """What is there must be as expected; all of it, if the command has ended."""
        try:
            found = essence(out) if whole else _written(out)
        except (JostleError, ValueError) as error:
            self.count.fault("unreadable", f"{victim.name}: {error}")
            return
        changed = [name for name, value in found.items() if expected.get(name) != value]
        if changed:
            self.count.fault("changed", f"{victim.name}: {', '.join(changed[:5])}")
        lost = [name for name in expected if name not in found]
        if whole and lost:
            self.count.fault("lost", f"{victim.name}: {', '.join(lost[:5])}")


def _written(out: Path) -> Essence:
    """Records that a killed command has left, and whole files; files of an interrupted measurement may be others."""
    found: Essence = {}
    for path in out.rglob("records.jsonl"):
        name = str(path.relative_to(out))
        found |= {f"{name} {key}": value for key, value in cells(path).items()}
    found |= {path.name: _whole_page(path) for path in out.glob("r.html")}
    for path in out.glob("r.json"):
        result = json.loads(path.read_text())
        if not is_partial(result):
            found[path.name] = _hash(_steady(result))
    return found


def is_partial(result: dict[str, object]) -> bool:
    """Whether a result says of itself that Ctrl-C ended it; a sweep names the strengths that are missing."""
    return "interrupted" in json.dumps(result) or bool(result.get("missing"))


def _file_name(name: str) -> str:
    return name.replace("/", "_").replace(" ", "_")


def run(
    work: Path,
    number: int,
    seed: int,
    keep: Callable[[Count], None],
    killed: Mapping[str, int],
    chosen: Sequence[Victim] | None = None,
) -> None:
    """Kill commands until there are so many kills: those first that were killed least, and otherwise in a random order.

    The kills are spread over all commands; as some come too late, there may be several rounds.

    Arguments:
        work: a folder.
        number: of kills.
        seed: decides all.
        keep: is given the counts after each command, and empties them.
        killed: how often each command was killed before.
        chosen: the commands; by default all.
    """
    rng = random.Random(seed)
    done, so_far = 0, Counter(killed)
    attack = Attack(work, rng)
    while done < number:
        order = victims() if chosen is None else list(chosen)
        rng.shuffle(order)
        order.sort(key=lambda one: so_far[one.name])
        for place, victim in enumerate(order):
            if done < number:
                try:
                    attack.attack(victim, min(max(math.ceil((number - done) / (len(order) - place)), _LEAST), _MOST))
                except FailedError as error:
                    attack.count.fault("fails by itself", str(error))
                done += sum(attack.count.tried.values())
                so_far.update(attack.count.where)
                keep(attack.count)
