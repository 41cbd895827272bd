"""What large inputs take: write docs/results/limits.json and the table of docs/limits.md from it.

Each case runs in a process of its own. Recorded are its peak memory over that of a small case of the same kind, and the
seconds until the first progress, until the first estimate, and until the end. Data is made in a temporary folder.
"""

import argparse
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
RECORD, PAGE = ROOT / "docs" / "results" / "limits.json", ROOT / "docs" / "limits.md"
MARKED = re.compile(r"(<!-- limits: written by tools/limits.py -->\n).*?(<!-- end of limits -->)", re.DOTALL)
MEGABYTE = 2**20


def _array(folder: Path, inputs: int, size: int) -> np.ndarray:
    """A memory-mapped array of which some rows are written; the others are zeros that take no space on the disk."""
    held = np.lib.format.open_memmap(folder / "inputs.npy", mode="w+", dtype=np.float32, shape=(inputs, size))
    rows = np.random.default_rng(0).integers(inputs, size=min(inputs, 1000))
    held[rows] = np.random.default_rng(1).standard_normal((len(rows), size), dtype=np.float32)
    held.flush()
    return np.load(folder / "inputs.npy", mmap_mode="r")


def _linear(size: int, classes: int = 10) -> Any:
    import torch

    torch.manual_seed(0)
    return torch.nn.Linear(size, classes)


def many_inputs(folder: Path, size: int) -> dict[str, Any]:
    """Inputs of 64 numbers, from a memory-mapped array."""
    return {"model": _linear(64), "inputs": _array(folder, size, 64), "tokens": "coordinates"}


def large_array(folder: Path, size: int) -> dict[str, Any]:
    """Inputs of 512 numbers, from a memory-mapped array."""
    return {"model": _linear(512), "inputs": _array(folder, size, 512), "tokens": "coordinates"}


def many_tokens(folder: Path, size: int) -> dict[str, Any]:
    """Twenty inputs of so many tokens."""
    return {"model": _linear(size, 2), "inputs": _array(folder, 20, size), "tokens": "coordinates"}


def many_classes(folder: Path, size: int) -> dict[str, Any]:
    """So many classes."""
    return {"model": _linear(64, size), "inputs": _array(folder, 2000, 64), "tokens": "coordinates"}


def many_images(folder: Path, size: int) -> dict[str, Any]:
    """A folder of so many files; a hundred pictures under many names."""
    from PIL import Image

    from jostle.data.image_folder import open_images

    place = folder / "images" / "train" / "one"
    place.mkdir(parents=True)
    rng = np.random.default_rng(0)
    for number in range(100):
        Image.fromarray(rng.integers(0, 256, (16, 16, 3), dtype=np.uint8)).save(folder / f"{number}.png")
    for number in range(size):
        os.link(folder / f"{number % 100}.png", place / f"{number}.png")
    import torch

    model = torch.nn.Sequential(torch.nn.Flatten(), _linear(3 * 16 * 16))
    spec = f"images:{folder / 'images'}:size=16,resize=16"
    return {"model": model, "inputs": open_images(spec), "tokens": "patches:4"}


def long_texts(folder: Path, size: int) -> dict[str, Any]:
    """Ten texts of so many tokens."""
    import torch

    torch.manual_seed(0)
    del folder
    model = torch.nn.Sequential(torch.nn.Embedding(1000, 16), _Mean(), torch.nn.Linear(16, 2))
    ids = torch.randint(1000, (10, size), generator=torch.Generator().manual_seed(0))
    return {"model": model, "inputs": ids, "tokens": "words", "perturbation": "uniform-token:1000"}


def _Mean() -> Any:  # noqa: N802
    import torch

    class Mean(torch.nn.Module):
        """The mean over tokens."""

        def forward(self, x: Any) -> Any:
            return x.mean(dim=1)

    return Mean()


# What, and its sizes: of a small case, and of a large one.
CASES: dict[str, tuple[Callable[[Path, int], dict[str, Any]], int, int]] = {
    "a million inputs": (many_inputs, 10_000, 1_000_000),
    "an array of 2 GB": (large_array, 10_000, 1_000_000),
    "100,000 tokens": (many_tokens, 1_000, 100_000),
    "10,000 classes": (many_classes, 10, 10_000),
    "50,000 images": (many_images, 500, 50_000),
    "texts of 10,000 tokens": (long_texts, 100, 10_000),
}
TABLE_ROWS = 200_000
LOUD = """
def loud(texts):
    return [text.count("!") - 0.5 for text in texts]


def make():
    return loud
"""


def child(case: str, size: int) -> None:
    """Measure one case and print what it took."""
    import jostle

    make = CASES[case][0]
    with tempfile.TemporaryDirectory() as name:
        asked = {"perturbation": "gaussian-noise:1", "seed": 0, **make(Path(name), size)}
        started, firsts = time.perf_counter(), list[float]()

        def tell(_: Any) -> None:
            if not firsts:
                firsts.append(time.perf_counter() - started)

        model, inputs = asked.pop("model"), asked.pop("inputs")
        plan = jostle.Until(half_width=0.01)
        found = jostle.measure(model, inputs, plan=plan, progress=tell, batch_size=64, **asked)
        took = time.perf_counter() - started
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    sys.stdout.write(json.dumps({
        "megabytes": round(peak), "first": round(firsts[0], 2), "seconds": round(took, 2), "passes": found.passes,
    }) + "\n")  # fmt: skip


def read_rows(count: int) -> dict[str, Any]:
    """``jostle measure`` on a table of texts with so many rows, by a function of strings."""
    with tempfile.TemporaryDirectory() as name:
        table, model = Path(name) / "texts.csv", Path(name) / "loud.py"
        rows = (f"text number {number} of a table !,{number % 2}" for number in range(count))
        table.write_text("text,label\n" + "\n".join(rows) + "\n", encoding="utf-8")
        model.write_text(LOUD, encoding="utf-8")
        call = [
            sys.executable, "-m", "jostle", "measure", "--model", f"py:{model}:make", "--data", f"csv:{table}",
            "--tokens", "words", "--perturbation", "deletion", "--half-width", "0.02", "--json",
        ]  # fmt: skip
        started = time.perf_counter()
        with (Path(name) / "out.json").open("w+") as out:
            process = subprocess.Popen(call, stdout=out, stderr=subprocess.DEVNULL)
            _, status, usage = os.wait4(process.pid, 0)
            took = time.perf_counter() - started
            out.seek(0)
            found = json.loads(out.read())
        if status:
            raise SystemExit("jostle measure failed")
        peak = usage.ru_maxrss / 1024
    return {"size": count, "megabytes": round(peak), "first": round(took, 2), "seconds": round(took, 2),
            "passes": found["passes"]}  # fmt: skip


def main() -> None:
    """Run all cases and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--case")
    parser.add_argument("--size", type=int)
    given = parser.parse_args()
    if given.case:
        child(given.case, given.size)
        return
    from jostle.base.files import write_text

    record = {}
    for case, (_, small, large) in CASES.items():
        found = {}
        for name, size in (("small", small), ("large", large)):
            call = [sys.executable, __file__, "--case", case, "--size", str(size)]
            done = subprocess.run(call, capture_output=True, text=True, check=True)
            found[name] = {"size": size, **json.loads(done.stdout.splitlines()[-1])}
        record[case] = found
    record[f"{TABLE_ROWS:,} rows of csv"] = {"small": read_rows(2_000), "large": read_rows(TABLE_ROWS)}
    write_text(RECORD, json.dumps(record, indent=1) + "\n")
    lines = [
        "| case | memory of a small case | of this one | first estimate after | end after | passes |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for case, found in record.items():
        small, large = found["small"], found["large"]
        cells = [
            f"{case} (small: {small['size']:,})", f"{small['megabytes']:,} MB", f"{large['megabytes']:,} MB",
            f"{large['first']:.1f} s", f"{large['seconds']:.1f} s", f"{large['passes']:,}",
        ]  # fmt: skip
        lines.append("| " + " | ".join(cells) + " |")
    text = PAGE.read_text(encoding="utf-8")
    table = "\n".join(lines) + "\n"
    write_text(PAGE, MARKED.sub(lambda marks: marks[1] + table + marks[2], text))


if __name__ == "__main__":
    main()
