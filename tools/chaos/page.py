"""docs/chaos.md, written from the record."""

from collections import Counter
from pathlib import Path
from typing import Any

from jostle.base.files import write_text

_TITLES = {
    "kills": "Kills at random moments",
    "files": "Mutated files",
    "words": "Mutated command lines",
    "functions": "Odd arguments",
}
_ABOUT = {
    "kills": "Commands are killed, started again, let end, and compared with a run that nobody killed: records, "
    "result files and figures must be the same, without times and provenance. `parent` is the process of "
    "the command, `worker` one of its worker processes, `group` all of them at once. Most processes are "
    "forks of one that has imported torch, which makes a kill cheap; {cold} kills hit a new `python -m "
    "jostle` with two workers. `jostle measure` and its kin have no checkpoints: runs are short, "
    "Ctrl-C gives the interval so far, and their files are whole or absent.",
    "files": "Good files of every format that jostle reads, with one to three changes: bits, bytes, lengths, "
    "numbers, cuts, parts of other files, pickles that would run code. A file must be read or refused in "
    "one line. Where a format has a checksum, what is read must be what was written.",
    "words": "Command lines that work, with one to three words changed, left out, doubled, swapped or put in. Each "
    "must end in time, with exit code 0, 1 or 2 and, if it fails, a message; no file that jostle did not "
    "write may change.",
    "functions": "Public functions of the library with arguments that hypothesis draws. Each must answer with a sound "
    "number or refuse in one line.",
}
_FAULTS = {
    "kills": ("lost", "changed", "unreadable", "not resumed", "fails by itself", "traceback", "hang", "wrong exit code",
              "orphan"),
    "files": ("traceback", "hang", "crash", "memory", "several lines", "silent wrong number", "code executed"),
    "words": ("traceback", "hang", "wrong exit code", "no message", "many lines", "a file of the user's was changed"),
    "functions": ("traceback", "several lines", "silent wrong number"),
}  # fmt: skip


def write_page(record: dict[str, Any], path: Path) -> None:
    """Write the page."""
    write_text(path, page(record))


def page(record: dict[str, Any]) -> str:
    """The page as text."""
    lines = [
        "# Chaos",
        "",
        "An attack on jostle that is kept: `make chaos` runs it, adds to "
        "[the record](results/chaos.json) and writes this page. A slice of it runs in `make test`.",
        "",
        "| attack | tried | faults now | found on the way and mended |",
        "|---|---:|---:|---:|",
    ]
    for name, title in _TITLES.items():
        found = record.get(name)
        if found:
            tried = sum(found["tried"].values())
            lines.append(f"| {title} | {tried:,} | {len(found['faults'])} | {len(found.get('mended', []))} |")
    for name in _TITLES:
        if name in record:
            lines += ["", *_section(name, record[name])]
    return "\n".join(lines) + "\n"


def _section(name: str, found: dict[str, Any]) -> list[str]:
    cold = found["ended"].get("of a new process", 0)
    tried = sum(found["tried"].values())
    lines = [f"## {_TITLES[name]}", "", _ABOUT[name].format(cold=f"{cold:,}"), ""]
    counted = Counter(fault["kind"] for fault in found["faults"])
    kinds = [*_FAULTS[name], *(kind for kind in counted if kind not in _FAULTS[name])]
    lines += [
        f"{tried:,} tried, of {len(found['where'])} kinds. "
        + ", ".join(f"{kind}: {counted[kind]}" for kind in kinds)
        + "."
    ]
    lines += ["", *_table("how", found["tried"] if name == "kills" else found["ended"])]
    if name != "kills":
        lines += ["", *_table("what", found["where"])]
    else:
        ended = found["ended"].get("started until the end and compared", 0)
        lines += ["", f"Commands: {len(found['where'])}, started until the end and compared {ended:,} times."]
        if found.get("unreached"):
            lines += ["", f"Not reached so far: {', '.join(found['unreached'])}."]
    if found.get("mended"):
        lines += ["", "Found on the way, and mended with a test:", ""]
        said = Counter(f"- {fault['kind']}: {_short(fault['what'])}{_tested(fault)}" for fault in found["mended"])
        lines += [text if times == 1 else f"{text}, {times} times" for text, times in said.items()]
    sources = sorted({session["source"] for session in found["sessions"] if "source" in session})
    commits = sorted({session["commit"] for session in found["sessions"] if "commit" in session})
    code = [f"the source {', '.join(sources)} (`git rev-parse --short HEAD:src`)"] if sources else []
    code += [f"commits of before a rebase, then called {', '.join(commits)}"] if commits else []
    machine = found["sessions"][-1]
    lines += [
        "",
        f"At {' and '.join(code)}; torch {machine['torch']}, Python {machine['python']}, {machine['machine']}.",
    ]
    return lines


def _table(head: str, counts: dict[str, int]) -> list[str]:
    rows = [f"| {key} | {count:,} |" for key, count in sorted(counts.items())]
    return [f"| {head} | count |", "|---|---:|", *rows]


def _tested(fault: dict[str, str]) -> str:
    return f" (`{fault['test']}`)" if "test" in fault else ""


def _short(text: str) -> str:
    return " ".join(text.split())[:160].replace("|", "/").replace("<", "(").replace(">", ")")
