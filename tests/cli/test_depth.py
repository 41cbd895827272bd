"""``jostle depth``, as people type it."""

import json

import numpy as np
import pytest

import jostle
from jostle.cli import main

pytest.importorskip("transformers")
PROMPT = "the film is good, not bad"


def said(capsys, *words):
    main(["depth", *map(str, words), "--quiet"])
    return capsys.readouterr().out


def test_a_prompt_becomes_a_line_for_each_layer_a_figure_and_a_file(gpt2_folder, tmp_path, capsys):
    figure, file = tmp_path / "d.svg", tmp_path / "d.json"
    words = ("--model", f"tiny=hf:{gpt2_folder}", "--prompt", PROMPT, "--site", "mlp", "--response", "kl", "--draws", 2)
    out = said(capsys, *words, "--plot", figure, "-o", file)
    assert "tiny: kl with noise inside, site=mlp" in out
    assert "transformer.h.1.mlp" in out
    assert "<svg" in figure.read_text()
    saved = jostle.load(file)
    assert [m.name for m in saved] == ["transformer.h.0.mlp", "transformer.h.1.mlp"]
    model = jostle.integrations.load(f"hf:{gpt2_folder}")
    same = jostle.depth(model, PROMPT, site="mlp", response="kl", plan="grid:2")
    assert [m.value for m in same] == [m.value for m in saved]


def test_noise_of_std_0_changes_nothing_and_heads_are_named(gpt2_folder, capsys):
    words = ("--model", f"hf:{gpt2_folder}", "--prompt", PROMPT, "--site", "head", "--head", 1, "--std", 0, "--json")
    record = json.loads(said(capsys, *words))
    assert [one["value"] for one in record["measurements"]] == [0.0, 0.0]
    assert record["measurements"][0]["settings"]["response"] == "next-token-flip"


def test_images_and_patterns(tmp_path, capsys):
    np.save(tmp_path / "x.npy", np.random.default_rng(0).normal(size=(3, 1, 8, 8)).astype(np.float32))
    model = "zoo:vit-simple:image_size=8,channels=1,depth=2,dim=16,heads=2,mlp_dim=16"
    words = ("--model", model, "--data", tmp_path / "x.npy", "--site", "blocks.*.mlp", "--max-passes", 300)
    assert "blocks.1.mlp" in said(capsys, *words, "--absolute")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "give the inputs: --data, or texts as --prompt TEXT, and not both"),
        (("--prompt", "a", "--site", "nothing.*"), "is no module of GPT2LMHeadModel"),
        (("--prompt", "a", "--site", "head"), "give --head NUMBER with --site head, and only with it"),
        (("--prompt", "a", "--std", -1), "std=-1"),
    ],
)
def test_wrong_words_are_one_line(gpt2_folder, words, message, capsys):
    with pytest.raises(SystemExit) as ended:
        said(capsys, "--model", f"hf:{gpt2_folder}", *words)
    assert ended.value.code == 2
    assert message in capsys.readouterr().err
