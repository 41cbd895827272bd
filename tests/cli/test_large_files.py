"""Files that do not fit into memory: csv files of texts and numbers, packed and not, .npy files, folders of images."""

import gzip
import json
import random
import subprocess
import sys

import numpy as np
import pytest
import torch
from PIL import Image

import jostle
from jostle.base.errors import UsageError
from jostle.cli import arrays, large_csv, main, mapped
from jostle.cli.subject import load_inputs, load_model, match_inputs
from jostle.data import table_file, text_csv

MODELS = """
import torch
from torch import nn

torch.manual_seed(0)

def loud(texts):
    return [text.count("!") - 0.5 for text in texts]

def linear():
    return nn.Linear(3, 2)

def network():
    return nn.Sequential(nn.Flatten(), nn.Linear(8 * 8, 2))

def strings():
    return loud
"""
TEXTS = [f"{'a; b' if row % 3 else 'line, one!'} {row}\nmore" for row in range(50)]


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own.py").write_text(MODELS)
    rows = "".join(f'"{text}",{"loud" if "!" in text else "calm"},{row}\n' for row, text in enumerate(TEXTS))
    (tmp_path / "texts.csv").write_text(f"text,label,row\n\n{rows}")
    numbers = np.random.default_rng(0).normal(size=(60, 3)).round(3)
    (tmp_path / "numbers.csv").write_text(
        "a,b,c,class\n" + "".join(f"{x},{y},{z},{'ab'[int(x > 0)]}\n" for x, y, z in numbers)
    )
    return tmp_path


@pytest.fixture
def large(monkeypatch):
    """Every file is a large one, and none but a copy of some rows may be read whole."""
    monkeypatch.setattr(table_file, "LARGE", 0)

    def check(path):
        assert "jostle-" in str(path), f"{path} is read whole"
        return read(path)

    read = text_csv.read_bytes
    monkeypatch.setattr(text_csv, "read_bytes", check)


def run(capsys, *words):
    main(["measure", *words, "--json", "--quiet"])
    return json.loads(capsys.readouterr().out)


TEXT = ("--model", "py:own.py:strings", "--data", "csv:texts.csv")
TABLE = ("--model", "py:own.py:linear", "--data", "csv:numbers.csv", "--draws", "4")


def test_texts_of_a_large_file_are_drawn_at_random(here, capsys, large, monkeypatch):
    monkeypatch.setattr(large_csv.small_file.__wrapped__, "__defaults__", (None, None, 20))
    found = run(capsys, *TEXT)
    assert len(found["per_input"]) == 20
    assert any("20 of its 50 rows, drawn at random" in note for note in found["notes"])
    assert run(capsys, *TEXT)["value"] == found["value"]
    kept = [large_csv._draw(iter([[str(row)] for row in range(50)]), 20)[1] for _ in range(2)]
    assert kept[0] == kept[1]
    assert [int(row) for [row] in kept[0]] == sorted(int(row) for [row] in kept[0])


def test_every_row_is_drawn_as_often():
    """Mean and variance of the numbers of rows drawn are those of numbers that are uniform."""
    drawn = np.asarray([int(row) for [row] in large_csv._draw(iter([[str(row)] for row in range(8000)]), 2000)[1]])
    assert len(set(drawn)) == 2000
    assert abs(drawn.mean() - 3999.5) < 4 * 8000 / np.sqrt(12 * 2000)
    assert abs((drawn < 1024).mean() - 0.128) < 4 * np.sqrt(0.128 * 0.872 / 2000)


def test_all_rows_of_a_large_file_give_what_the_whole_file_gives(here, capsys, monkeypatch):
    whole, first = run(capsys, *TEXT), run(capsys, *TEXT, "--limit", "7")
    monkeypatch.setattr(table_file, "LARGE", 0)
    for data in ("texts.csv", "texts.csv.gz"):
        (here / "texts.csv.gz").write_bytes(gzip.compress((here / "texts.csv").read_bytes()))
        words = (*TEXT[:3], f"csv:{data}")
        assert run(capsys, *words)["value"] == whole["value"]
        assert run(capsys, *words, "--limit", "7")["value"] == first["value"]
        assert not any("drawn" in note for note in run(capsys, *words, "--limit", "7")["notes"])


def test_tabs_and_semicolons(tmp_path, large):
    (tmp_path / "t.tsv").write_text('text\tlabel\nsay "hi\t1\nb, c\t0\n')
    (tmp_path / "s.csv").write_text('text;label\n"a;\nb";1\nc;0\n')
    for name, texts in (("t.tsv", ['say "hi', "b, c"]), ("s.csv", ["a;\nb", "c"])):
        assert large_csv.first_rows(tmp_path / name, 1) == [["text", "label"]]
        with large_csv.small_file(tmp_path / name) as (small, _):
            assert [text for (text,) in text_csv.load_csv(small).texts] == texts


def test_numbers_of_a_large_file_are_read_row_by_row(here, capsys, monkeypatch):
    whole = run(capsys, *TABLE)
    monkeypatch.setattr(table_file, "LARGE", 0)
    monkeypatch.setattr(text_csv, "read_bytes", None)
    found = run(capsys, *TABLE)
    assert {"value", "profile"} <= set(found)
    assert (found["value"], found["profile"], found["notes"]) == (whole["value"], whole["profile"], whole["notes"])
    assert len(run(capsys, *TABLE, "--limit", "10")["per_input"]) == 10
    table, labels, notes = large_csv.open_table("numbers.csv")
    assert labels.tolist() == (table.inputs[:, 0] > 0).long().tolist()
    assert notes == ["labels: 0 = a, 1 = b"]


def test_a_large_table_with_words_or_packed_is_drawn(here, capsys, large):
    pytest.importorskip("pandas", reason="pandas is not installed")
    assert large_csv.open_table("numbers.csv", label="a") is None
    (here / "numbers.csv.gz").write_bytes(gzip.compress((here / "numbers.csv").read_bytes()))
    found = run(capsys, *TABLE[:3], "csv:numbers.csv.gz", "--draws", "4")
    assert any("60 of its 60 rows" in note for note in found["notes"])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b'text,label\n"open,1\nb,2\n', "is a quotation mark not closed"),
        (b"text,label\nb\xff,2\n", "is not UTF-8"),
        (b"text,label\na,1\nb\n", "drawn at random) row 2, column 'label': missing"),
        (b"text,label\n", "holds no rows"),
        (b"", "empty"),
    ],
)
def test_bad_large_files_are_one_line(tmp_path, large, text, said):
    path = tmp_path / "t.csv"
    path.write_bytes(text or b"\n")
    with (
        pytest.raises(UsageError) as caught,
        large_csv.small_file(path) as (small, _),
    ):
        text_csv.load_csv(small)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)
    assert "/jostle-" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a,b\n1,2\n3\n", "row 2 has 1 columns where the line of names has 2"),
        ("a,b\n1,2\n3,x\n", "row 2, column 'b': 'x' is no finite number"),
        ("a,b\n1,2\n\n3,\n", "row 2, column 'b': '' is no finite number"),
        ("a,b\n1,inf\n", "row 1, column 'b': 'inf' is no finite number"),
    ],
)
def test_bad_large_tables_are_one_line(tmp_path, large, text, said):
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises(UsageError) as caught:
        large_csv.open_table(tmp_path / "t.csv")
    assert said in str(caught.value)


def test_many_different_labels_are_no_classes(here, monkeypatch):
    monkeypatch.setattr(table_file, "LARGE", 0)
    monkeypatch.setattr(large_csv, "_MOST_LABELS", 5)
    table, labels, _ = large_csv.open_table("numbers.csv")
    assert (len(table), len(labels)) == (60, 60)
    (here / "y.csv").write_text("a,y\n" + "".join(f"1,{row}.5\n" for row in range(9)))
    _, labels, notes = large_csv.open_table("y.csv")
    assert labels is None
    assert "more than 5 different ones" in notes[0]


def test_an_npy_file_is_mapped_and_cast_row_by_row(here, monkeypatch):
    numbers = np.random.default_rng(0).normal(size=(20, 1, 8, 8))
    np.save("x.npy", numbers)
    inputs, _ = load_inputs("x.npy")
    network = load_model("py:own.py:network").float()
    choices = {"tokens": "patches:4", "perturbation": "gaussian-noise:std=1", "plan": jostle.Grid(4)}
    small = match_inputs(inputs, [network])
    assert small.dtype == torch.float32
    monkeypatch.setattr(mapped, "LARGE", 0)
    monkeypatch.setattr(arrays, "LARGE", 0)
    assert isinstance(arrays._read_npy(here / "x.npy"), np.memmap)
    monkeypatch.setattr(mapped, "_AT_ONCE", 1600)
    rows = match_inputs(load_inputs("x.npy", limit=20)[0], [network])
    assert torch.equal(rows, small)
    assert rows.untyped_storage().data_ptr() != small.untyped_storage().data_ptr()
    assert jostle.measure(network, rows, **choices).value == jostle.measure(network, small, **choices).value
    np.testing.assert_array_equal(np.load("x.npy"), numbers)


def test_too_little_room_on_disk_is_one_line():
    with pytest.raises(UsageError, match=r"need 8,000,000\.0 GB on disk, and .* has .*: give --limit"):
        mapped.mapped((10**15,), torch.float64)


PEAK = """
import resource, sys
from jostle.cli import main
main(sys.argv[1:])
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, file=sys.stderr)
"""


PIXELS = "size=224,mean=0.5,std=0.2"
FEW = ("--max-passes", "2000", "--half-width", "0.02")


def peak(*words):
    """Megabytes at most in memory while a command runs."""
    found = subprocess.run([sys.executable, "-c", PEAK, "measure", *words], capture_output=True, text=True, check=True)
    return float(found.stderr.split()[-1]), found.stdout


@pytest.mark.slow
def test_a_large_csv_takes_no_more_memory_than_a_small_one(here):
    chance, size = random.Random(0), 300 * 2**20
    words = ["good", "bad!", "film", "plot", "long"]
    block = "".join(f"{' '.join(chance.choices(words, k=40))},{chance.randrange(2)}\n" for _ in range(5000))
    lines = [",".join(f"{chance.gauss(0, 1):.12f}" for _ in range(40)) for _ in range(2000)]
    numbers = "".join(f"{line},{row % 2}\n" for row, line in enumerate(lines))
    names = ",".join(f"c{column}" for column in range(40))
    (here / "own.py").write_text(MODELS.replace("Linear(3, 2)", "Linear(40, 2)"))
    for path, head, part in (("t.csv", "text,label", block), ("n.csv", f"{names},class", numbers)):
        with (here / path).open("w") as file:
            file.write(f"{head}\n")
            for _ in range(size // len(part) + 1):
                file.write(part)
        (here / f"small-{path}").write_text(f"{head}\n{part}")
    for model, path in (("strings", "t.csv"), ("linear", "n.csv")):
        common = ("--model", f"py:own.py:{model}", *FEW)
        little, _ = peak(*common, "--data", f"csv:small-{path}")
        much, out = peak(*common, "--data", f"csv:{path}")
        assert "inputs of" in out or "texts" in out
        assert (here / path).stat().st_size > size
        assert much < little + 160, (path, little, much)


@pytest.mark.slow
def test_a_large_npy_file_takes_little_memory(here):
    """What is mapped counts as memory of a process while there is room for it; the limit of data does not count it."""
    array = np.lib.format.open_memmap(here / "x.npy", mode="w+", dtype=np.float64, shape=(3_000_000, 1, 8, 8))
    part = np.random.default_rng(0).normal(size=(100_000, 1, 8, 8))
    for start in range(0, len(array), len(part)):
        array[start : start + len(part)] = part
    del array
    limited = PEAK.replace("\nmain", "\nresource.setrlimit(resource.RLIMIT_DATA, (2**30, 2**30))\nmain")
    words = ("--model", "py:own.py:network", "--data", "x.npy", "--tokens", "patches:4", *FEW)
    found = subprocess.run(
        [sys.executable, "-c", limited, "measure", *words], capture_output=True, text=True, check=False
    )
    assert found.returncode == 0, found.stderr
    assert "3,000,000 inputs" in found.stdout


@pytest.mark.slow
def test_a_large_folder_of_images_takes_little_memory(here):
    """1,200 photographs of 224 x 224 pixels are 720 MB, of which half a gigabyte is kept."""
    (here / "photos").mkdir()
    picture = np.random.default_rng(0).integers(0, 255, (224, 224, 3), dtype=np.uint8)
    for number in range(1200):
        Image.fromarray(np.roll(picture, number)).save(here / "photos" / f"{number}.jpg")
    (here / "own.py").write_text(MODELS.replace("8 * 8", "3 * 224 * 224"))
    words = ("--model", "py:own.py:network", "--tokens", "patches:16", *FEW)
    little, _ = peak(*words, "--data", f"images:photos:{PIXELS}", "--limit", "20")
    much, out = peak(*words, "--data", f"images:photos:{PIXELS}")
    assert "1,200 inputs" in out
    assert much < little + 650, (little, much)
