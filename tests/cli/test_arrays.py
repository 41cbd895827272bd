"""Files of arrays on the command line: labels, token ids, text by mistake, paths without their prefix."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch

import jostle
from jostle.cli.subject import load_inputs, load_model
from tests.cli.test_cli import MODEL, basic, run

WORDS = "zoo:text-encoder:vocabulary=30,dim=16,depth=1,heads=2,mlp_dim=16"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("JOSTLE_DATA", str(tmp_path / "nowhere"))
    numbers = np.random.default_rng(0)
    (tmp_path / "my_model.py").write_text(MODEL)
    np.save("inputs.npy", numbers.standard_normal((50, 6)).astype(np.float32))
    np.save("ids.npy", numbers.integers(1, 30, (20, 5)))
    np.save("words.npy", np.array(["one", "two"]))
    np.save("dates.npy", np.array(["2020-01-01"], dtype="datetime64[D]"))
    return tmp_path


def right(model, inputs, labels):
    return float((model(inputs).argmax(dim=1) == labels).double().mean())


@pytest.mark.parametrize("name", ["labels", "y"])
def test_labels_beside_the_inputs_are_for_the_accuracy(capsys, folder, name):
    model, inputs = load_model("py:my_model.py:make"), torch.from_numpy(np.load("inputs.npy"))
    labels = model(inputs).argmax(dim=1).numpy()
    labels[:11] = (labels[:11] + 1) % 3
    np.savez("both.npz", x=inputs.numpy(), **{name: labels})
    plain = json.loads(run(capsys, "measure", *basic(), "--draws", 1, "--json")[1])
    code, out, err = run(capsys, "measure", *basic(data="both.npz"), "--draws", 1, "--report", "r.html")
    assert (code, err) == (0, "")
    assert f"flip {plain['value']:.4g} " in out
    assert "py:my_model.py:make: 78 % accuracy on all 50 inputs" in out
    page = (folder / "r.html").read_text(encoding="utf-8")
    assert "accuracy on all 50 inputs" in page
    assert "78 %" in page
    code, out, _ = run(capsys, "measure", *basic(data="both.npz"), "--draws", 1, "--limit", 20, "--batch-size", 7)
    assert "45 % accuracy on all 20 inputs" in out


def test_accuracy_is_of_all_inputs_if_flips_are_compared_with_errors_of_all(capsys, folder):
    inputs = np.concatenate([np.load("inputs.npy")] * 11)  # more than are asked first
    labels = load_model("py:my_model.py:make")(torch.from_numpy(inputs)).argmax(dim=1).numpy()
    labels[-1] = (labels[-1] + 1) % 3
    np.savez("many.npz", x=inputs, y=labels)
    code, out, err = run(capsys, "measure", *basic(data="many.npz"), "--draws", 1, "--report", "r.html")
    assert (code, err) == (0, "")
    assert "1 of 550 predictions are wrong" in out
    assert out.count("accuracy") == 1
    assert "99.8 % accuracy on all 550 inputs" in out
    assert "accuracy on all 550 inputs" in (folder / "r.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "labels",
    [
        np.zeros(49, dtype=int),
        np.zeros((50, 2), dtype=int),
        np.full(50, 3),
        np.full(50, -1),
        np.array(["a"] * 50),
    ],
)
def test_labels_that_are_no_classes_are_left_alone(capsys, folder, labels):
    np.savez("both.npz", x=np.load("inputs.npy"), labels=labels)
    code, out, err = run(capsys, "measure", *basic(data="both.npz"), "--draws", 1)
    assert (code, err) == (0, "")
    assert "accuracy on" not in out


def test_a_file_of_labels_alone_has_no_inputs(capsys, folder):
    np.savez("labels.npz", labels=np.zeros(3), y=np.zeros(3))
    code, _, err = run(capsys, "measure", *basic(data="labels.npz"))
    assert (code, err) == (2, "jostle: --data labels.npz holds labels, y and no inputs\n")


def test_several_inputs_stay_named(folder):
    np.savez("named.npz", input_ids=np.ones((3, 2), dtype=int), attention_mask=np.ones((3, 2)), labels=[1, 0, 1])
    inputs, labels = load_inputs("named.npz", limit=2)
    assert set(inputs) == {"input_ids", "attention_mask"}
    assert labels.tolist() == [1, 0]


def test_bytes_in_the_other_order_and_endings_in_capitals_are_read(folder):
    np.save("swapped.npy", np.load("inputs.npy").astype(">f4"))
    (folder / "swapped.npy").rename("swapped.NPY")
    assert torch.equal(load_inputs("swapped.NPY")[0], torch.from_numpy(np.load("inputs.npy")))


@pytest.mark.parametrize("command", ["measure", "corrupt"])
def test_arrays_of_text_are_one_line(capsys, folder, command):
    more = ("--model", "py:my_model.py:make", "--tokens", "rows") if command == "measure" else ()
    np.savez("two.npz", x=np.zeros(2), kinds=np.array(["a", "b"]))
    for file, message in {
        "words.npy": "--data words.npy holds text; expected an array of numbers, of texts csv:FILE",
        "two.npz": "--data two.npz holds text as 'kinds'; expected an array of numbers",
        "dates.npy": "--data dates.npy holds datetime64[D]; expected an array of numbers",
    }.items():
        code, out, err = run(capsys, command, "--data", file, *more)
        assert (code, out, err.count("\n")) == (2, "", 1)
        assert message in err


def test_words_of_an_array_are_deleted_unless_something_else_is_asked_for(capsys, folder):
    torch.set_default_dtype(torch.float32)
    command = ("measure", "--model", WORDS, "--data", "ids.npy", "--tokens", "words", "--quiet", "--json")
    code, out, _ = run(capsys, *command)
    wanted = jostle.measure(load_model(WORDS), load_inputs("ids.npy")[0], tokens="words", perturbation="deletion")
    assert code == 0
    assert json.loads(out)["settings"]["perturbation"] == "deletion"
    assert json.loads(out)["value"] == wanted.value


def test_any_word_is_any_that_the_model_knows(capsys, folder):
    torch.set_default_dtype(torch.float32)
    command = ("measure", "--data", "ids.npy", "--quiet", "--draws", 2, "--perturbation", "uniform-token")
    code, out, _ = run(capsys, *command, "--model", WORDS, "--tokens", "words")
    assert code == 0
    assert "a token becomes any of the 29 tokens of the vocabulary" in out  # 0 is padding
    for tokens, model in {"coordinates": WORDS, "words": "py:my_model.py:make"}.items():
        code, _, err = run(capsys, *command, "--model", model, "--tokens", tokens)
        assert (code, err.splitlines()[-1].count("uniform-token needs vocabulary=")) == (2, 1)


@pytest.mark.parametrize("command", ["measure", "corrupt"])
@pytest.mark.parametrize(
    ("data", "message"),
    [
        ("imgs", "--data imgs is a folder, not a dataset: write images:imgs"),
        ("rev.csv", "--data rev.csv is a table, not a dataset: write csv:rev.csv"),
        ("rev.tsv.gz", "write csv:rev.tsv.gz"),
        ("imgs/a.png", "is one image, not a dataset: write images:imgs for its folder"),
        ("notes.md", "a file that cannot be read: .npy, .npz, .safetensors, csv:FILE or texts:FILE expected"),
        ("mnst", "unknown dataset 'mnst'; did you mean mnist"),
    ],
)
def test_a_path_without_its_prefix_is_recognised(capsys, folder, command, data, message):
    (folder / "imgs").mkdir()
    for name in ("rev.csv", "rev.tsv.gz", "imgs/a.png", "notes.md"):
        (folder / name).write_text("")
    more = ("--model", "py:my_model.py:make", "--tokens", "rows") if command == "measure" else ()
    code, out, err = run(capsys, command, "--data", data, *more)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert message in err


@pytest.mark.parametrize("data", ["inputs.npy", "py:my_model.py:inputs"])
@pytest.mark.parametrize("command", ["measure", "corrupt"])
def test_a_split_of_what_has_none_is_refused(capsys, folder, command, data):
    more = ("--model", "py:my_model.py:make", "--tokens", "coordinates") if command == "measure" else ()
    code, out, err = run(capsys, command, "--data", data, "--split", "test", *more)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert f"--split test: --data {data} has no splits" in err


def test_random_weights_are_in_the_record(capsys, folder):
    torch.set_default_dtype(torch.float32)
    np.save("images.npy", np.zeros((4, 1, 8, 8), dtype=np.float32))
    spec = "zoo:mlp:image_size=8,channels=1,classes=3"
    said = f"{spec} has random weights; give --weights for a trained network"
    common = ("--data", "images.npy", "--tokens", "patches:4", "--draws", 1, "--quiet")
    code, out, err = run(capsys, "measure", "--model", spec, *common, "-o", "r.json", "--report", "r.html")
    assert (code, err) == (0, f"jostle: {said}\n")
    assert f"  warning: {said}\n" in out
    assert said in jostle.load("r.json").warnings
    assert said in (folder / "r.html").read_text(encoding="utf-8")
    jostle.training.save_weights(
        jostle.models.create("mlp", image_size=8, channels=1, classes=3), Path("w.safetensors")
    )
    models = ("--model", f"a={spec}", "--model", f"b={spec}", "--weights", "b=w.safetensors")
    code, out, _ = run(capsys, "compare", *models, *common, "--json")
    assert code == 0
    found = [any("random weights" in text for text in part["warnings"]) for part in json.loads(out)["measurements"]]
    assert found == [True, False]
