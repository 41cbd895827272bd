"""Good files of every format that jostle reads, small, and the functions that read them."""

import gzip
import io
import json
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from PIL import Image

import jostle
from jostle.base.store import Store
from jostle.boolean.tables import read_table
from jostle.cli.arrays import read_arrays
from jostle.data.cifar_10 import RECORD, read_batches
from jostle.data.idx import read_idx
from jostle.data.preprocessing import Preprocessing, read_image
from jostle.data.svhn import read_matlab
from jostle.data.text_csv import load_csv
from jostle.data.text_tokenizer import load_tokenizer
from jostle.report import recover
from jostle.studies.folder import CellLine, RecordFile, SessionLine, StudyLine, read_summary
from jostle.text_changes import Alternatives
from jostle.training import checkpoints

if TYPE_CHECKING:
    from chaos.files import Reader

_RNG = np.random.default_rng(0)


def readers(folder: Path) -> "list[Reader]":
    """All readers, each with good files; ``folder`` is for what has to be written to a file first."""
    from chaos.files import Reader

    folder.mkdir(parents=True, exist_ok=True)
    found = [*_arrays(Reader), *_weights(Reader, folder), *_texts(Reader), *_images(Reader), *_tables(Reader)]
    return [*found, *_results(Reader, folder), *_records(Reader, folder)]


def _arrays(reader: "type[Reader]") -> "list[Reader]":
    numbers, labels = _RNG.standard_normal((6, 4)).astype(np.float32), np.arange(6) % 3

    def read(path: Path) -> Any:
        notes: list[str] = []
        inputs, right = read_arrays(path, notes)
        return {"inputs": inputs, "labels": right}

    plain = (_npy(numbers), _npy(labels), _npy(numbers.astype(">f8")))
    packed = (_npz(x=numbers, y=labels), _npz(a=numbers, b=numbers), _npz(numbers))
    from safetensors.numpy import save

    safe = (save({"x": numbers}), save({"x": numbers, "labels": labels}))
    return [
        reader("npy", ".npy", plain, read),
        reader("npz", ".npz", packed, read, notices=True),
        reader("safetensors", ".safetensors", safe, read),
    ]


def _weights(reader: "type[Reader]", folder: Path) -> "list[Reader]":
    from jostle.base.weights import read_weights

    model = torch.nn.Linear(3, 2).float()
    for name in ("plain.pt", "nested.pt"):
        state = model.state_dict()
        torch.save(state if name == "plain.pt" else {"state_dict": state, "epoch": 3}, folder / name)
    pickled = tuple((folder / name).read_bytes() for name in ("plain.pt", "nested.pt"))
    optimizer = torch.optim.AdamW(model.parameters())
    model(torch.ones(1, 3)).sum().backward()
    optimizer.step()
    from jostle.training.evaluation import Evaluation

    for seed in range(2):
        checkpoints.save(
            folder / f"{seed}.safetensors",
            model,
            optimizer,
            torch.amp.GradScaler("cpu", enabled=False),
            epochs=1 + seed,
            record={0: Evaluation(0.7, 0.5), 1: Evaluation(0.6, 0.75)},
            settings={"lr": 0.1, "seed": seed},
        )
    kept = tuple((folder / f"{seed}.safetensors").read_bytes() for seed in range(2))

    def training(path: Path) -> Any:
        found = checkpoints.load(path)
        states = {f"{index}/{name}": value for index, state in found.optimizer.items() for name, value in state.items()}
        return {**found.weights, **states, "rest": (found.epochs, str(found.record), found.settings)}

    return [
        reader("pt weights", ".pt", pickled, lambda path: read_weights(path)[0]),
        reader("training checkpoint", ".safetensors", kept, training, notices=True),
    ]


def _texts(reader: "type[Reader]") -> "list[Reader]":
    rows = b'text,label\n"A fine, film",1\nso so,0\n"two ""quoted"" words",1\n'
    pairs = "text\tlabel\nGrüße 🙂\t0\nwell\t1\n".encode()
    words = {"[PAD]": 0, "[UNK]": 1, "a": 2, "b": 3, "##a": 4}
    tokenizer = {
        "version": "1.0",
        "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##", "vocab": words,
                  "max_input_chars_per_word": 100},
        "added_tokens": [{"id": 0, "content": "[PAD]", "single_word": False, "lstrip": False, "rstrip": False,
                          "normalized": False, "special": True}],
        "normalizer": None, "pre_tokenizer": {"type": "Whitespace"}, "post_processor": None, "decoder": None,
        "truncation": None, "padding": None,
    }  # fmt: skip
    said = json.dumps(tokenizer).encode()
    alternatives = (b'{"good": ["fine", "great"], "bad": ["dull"]}', b'{"film": ["movie"]}')

    def dataset(path: Path) -> Any:
        found = load_csv(path)
        return {"texts": found.texts, "labels": found.labels}

    def tokens(path: Path) -> Any:
        return load_tokenizer(path).ids(["a b aa"])

    return [
        reader("csv", ".csv", (rows, rows.replace(b",", b";"), rows * 1 + b"last,0\n"), dataset),
        reader("csv.gz", ".csv.gz", (gzip.compress(rows, mtime=0), gzip.compress(rows * 3, mtime=0)), dataset),
        reader("tsv", ".tsv", (pairs, pairs * 2), dataset),
        reader("tokenizer.json", ".json", (said, json.dumps(tokenizer, indent=1).encode()), tokens),
        reader("tokenizer of SentencePiece", ".model", (_sentencepiece(8), _sentencepiece(12)), tokens),
        reader("tokenizer.bin", ".bin", (_llama2c(8), _llama2c(12)), tokens),
        reader("alternatives.json", ".json", alternatives, lambda path: str(Alternatives(str(path)))),
        reader("alternatives.csv", ".csv", (b"good,fine,great\nbad,dull\n", b"film,movie\n"),
               lambda path: str(Alternatives(str(path)))),
    ]  # fmt: skip


_PIECES = [
    "<unk>",
    "<s>",
    "</s>",
    *(f"<0x{byte:02X}>" for byte in range(256)),
    "▁",
    "a",
    "b",
    "▁a",
    "ab",
    "▁ab",
    "c",
    "d",
]


def _sentencepiece(more: int) -> bytes:
    """A small ``tokenizer.model``: a protocol buffer with pieces and the kind of the model."""
    found = b""
    for place, piece in enumerate(_PIECES[: 259 + more]):
        kind = 2 if place == 0 else 3 if place < 3 else 6 if place < 259 else 1
        raw = piece.encode()
        inner = b"\x0a" + bytes([len(raw)]) + raw + b"\x15" + struct.pack("<f", -float(place)) + b"\x18" + bytes([kind])
        found += b"\x0a" + bytes([len(inner)]) + inner
    return found + b"\x12\x02\x18\x02"


def _llama2c(more: int) -> bytes:
    """A small ``tokenizer.bin``."""
    found = struct.pack("<i", 8)
    for place, piece in enumerate(_PIECES[: 259 + more]):
        raw = piece.replace("▁", " ").encode()
        found += struct.pack("<fi", -float(place), len(raw)) + raw
    return found


def _images(reader: "type[Reader]") -> "list[Reader]":
    pixels = _RNG.integers(0, 255, (6, 5, 3), dtype=np.uint8)

    def image(kind: str, **options: Any) -> bytes:
        file = io.BytesIO()
        Image.fromarray(pixels).save(file, kind, **options)
        return file.getvalue()

    def picture(path: Path) -> Any:
        return Preprocessing(size=4).pixels(read_image(path), path)

    batch = _RNG.integers(0, 10, (2, RECORD), dtype=np.uint8)
    return [
        reader("png", ".png", (image("png"), image("png", optimize=True)), picture),
        reader("jpg", ".jpg", (image("jpeg"), image("jpeg", progressive=True)), picture),
        reader("idx of images", ".gz", tuple(gzip.compress(_idx(pixels[:n]), mtime=0) for n in (3, 6)),
               lambda path: read_idx(path, 3), notices=True),
        reader("idx of labels", ".gz", tuple(gzip.compress(_idx(pixels[:n, 0, 0]), mtime=0) for n in (3, 6)),
               lambda path: read_idx(path, 1), notices=True),
        reader("bin of CIFAR-10", ".bin", (batch.tobytes(), batch[:1].tobytes()),
               lambda path: read_batches([path]).pixels),
        reader("mat of SVHN", ".mat", (_mat(2), _mat(3)), lambda path: read_matlab(path).pixels),
    ]  # fmt: skip


def _idx(array: np.ndarray[Any, Any]) -> bytes:
    sizes = b"".join(size.to_bytes(4) for size in array.shape)
    return bytes([0, 0, 8, array.ndim]) + sizes + array.astype(np.uint8).tobytes()


def _mat(count: int) -> bytes:
    from scipy.io import savemat

    file = io.BytesIO()
    pixels = _RNG.integers(0, 255, (32, 32, 3, count), dtype=np.uint8)
    savemat(file, {"X": pixels, "y": np.arange(1, count + 1, dtype=np.uint8)[:, None]}, do_compression=count == 3)
    return file.getvalue()


def _tables(reader: "type[Reader]") -> "list[Reader]":
    signs = np.array([1, -1, -1, 1], dtype=np.int8)
    return [
        reader("truth table .txt", ".txt", (b"0110\n", b"01101001\n# parity\n", b"0.5, -1\n2 3\n"), read_table),
        reader("truth table .csv", ".csv", (b"1\n-1\n-1\n1\n", b"1,-1,-1,1\n"), read_table),
        reader("truth table .npy", ".npy", (_npy(signs), _npy(signs.astype(np.float64) / 3)), read_table),
    ]


def _results(reader: "type[Reader]", folder: Path) -> "list[Reader]":
    generator = torch.Generator().manual_seed(0)
    inputs = torch.randn(12, 4, generator=generator)
    options: dict[str, Any] = {"tokens": "coordinates", "perturbation": "gaussian-noise:1", "plan": jostle.Grid(2)}

    def model(x: torch.Tensor) -> torch.Tensor:
        return x[:, :3]

    def other(x: torch.Tensor) -> torch.Tensor:
        return x[:, 1:]

    def loud(texts: Sequence[str]) -> torch.Tensor:
        return torch.tensor([[sum(map(str.isupper, text)) - 2.5, 0.0] for text in texts])

    measured = jostle.measure(model, inputs, **options)
    made: dict[str, Any] = {
        "measurement": measured,
        "comparison": jostle.compare({"a": model, "b": other}, inputs, **options),
        "sweep": jostle.sweep(model, inputs, tokens="coordinates", stds=[0.5, 1.0], plan=jostle.Grid(2)),
        "worst case": jostle.worst_case(
            model, inputs[:3], tokens="coordinates", radius=1.0, draws=2, starts=1, steps=2
        ),
        "stability": jostle.stability(model, inputs, rho=[0.5, 0.9], plan=jostle.Grid(2)),
        "certificates": jostle.certify(model, inputs, std=0.5, draws=20, selection=5),
        "depth": jostle.depth(
            torch.nn.Sequential(torch.nn.Linear(4, 3)).to(inputs), inputs, site="0", plan=jostle.Grid(2)
        ),
        "text changes": jostle.change_texts(loud, ["It is late", "Go now"], change="case"),
        "influence": jostle.influence(_copying, [[1, 2, 3]], perturbation=jostle.ReplaceBy(4)),
    }
    for name, result in made.items():
        result.save(folder / f"{name}.json")
    saved = {name: (folder / f"{name}.json").read_bytes() for name in made}
    page = b'<html><script type="application/json" id="%s">{"a": [1, null]}</script></html>' % _data_id().encode()
    pages = [reader("page", ".html", (page, page.replace(b"null", b"2.5")), recover)]
    return [
        *(
            reader(f"result: {name}", ".json", (content, content), lambda path: str(jostle.load(path)))
            for name, content in saved.items()
        ),
        *pages,
    ]


def _copying(ids: torch.Tensor) -> torch.Tensor:
    """A language model whose next token is the last one."""
    return torch.nn.functional.one_hot(ids, 5).double()


def _data_id() -> str:
    from jostle.report.html import DATA_ID

    return DATA_ID


def _records(reader: "type[Reader]", folder: Path) -> "list[Reader]":
    whose = StudyLine(name="a/b", version=1, scale="smoke", settings={"n": 3}, modified={}, title="T", claim="C")
    session = SessionLine(cells=2, workers=1, device="cpu", provenance={"jostle": "0"})

    def write(place: Path, cells: int) -> bytes:
        (place / "records.jsonl").unlink(missing_ok=True)
        file = RecordFile(place)
        file.begin(whose)
        file.begin_session(session)
        for seed in range(cells):
            line = CellLine(
                values={"seed": seed}, record={"x": 1 / (seed + 3)}, session=0, seconds=0.1, warnings=["w"] * seed
            )
            file.add(f"seed={seed}", line)
        return (place / "records.jsonl").read_bytes()

    def read(path: Path) -> Any:
        place = path.parent / "of-a-study"
        place.mkdir(exist_ok=True)
        path.replace(place / "records.jsonl")
        found = RecordFile(place)
        return _Prefix((found.study(), found.sessions(), found.cells()))

    kept = tuple(write(folder, cells) for cells in (4, 6))
    summary = _summary()

    def summarised(path: Path) -> Any:
        path.replace(path.parent / "summary.json")
        return str(read_summary(path.parent))

    def stored(path: Path) -> Any:
        store = Store(path)
        return _Prefix({key: store[key] for key in store})

    return [
        reader("records of a study", ".jsonl", kept, read, notices=True),
        reader("records", ".jsonl", kept, stored, notices=True),
        reader("summary", ".json", (summary, summary.replace(b"0.25", b"0.75")), summarised),
    ]


class _Prefix:
    """Records that are equal to the first of others: a torn last line is left out, and its cell is done again."""

    def __init__(self, found: Any) -> None:
        self.text = str(found)
        self.parts = [str(part) for part in _flat(found)]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Prefix) and set(self.parts) <= set(other.parts)

    def __hash__(self) -> int:
        return hash(self.text)

    def __str__(self) -> str:
        return self.text


def _flat(found: Any) -> list[Any]:
    if isinstance(found, dict):
        return list(found.items())
    if isinstance(found, tuple):
        study, sessions, cells = found
        return [*([study] if study else []), *sessions, *cells.items()]
    return [found]


def _summary() -> bytes:
    return json.dumps(
        {
            "format": 1, "name": "a/b", "version": 1, "scale": "smoke", "settings": {}, "modified": {}, "title": "T",
            "claim": "C", "source": "S", "level": 0.95, "deviations": [], "seeds": 1, "usual_seeds": 1, "cells": 1,
            "seconds": 0.25, "verdict": "UNDECIDED", "findings": [], "figures": [], "warnings": [], "provenance": [{}],
        }
    ).encode()  # fmt: skip


def _npy(array: np.ndarray[Any, Any]) -> bytes:
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def _npz(*plain: Any, **arrays: Any) -> bytes:
    file = io.BytesIO()
    np.savez(file, *plain, **arrays)
    return file.getvalue()
