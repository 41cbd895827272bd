"""``jostle influence``, and language models in ``jostle measure``, as people type them."""

import json
import os
from pathlib import Path

import numpy as np
import pytest

import jostle
from jostle.cli import main
from tests.integrations.families import network

pytest.importorskip("transformers")

NETWORKS = Path(os.environ.get("JOSTLE_NETWORKS", "/nowhere"))
PROMPT = "the film is good, not bad"


def said(capsys, *words):
    main(["influence", *map(str, words), "--quiet"])
    return capsys.readouterr().out


def test_a_prompt_becomes_a_page_a_figure_and_a_file(gpt2_folder, tmp_path, capsys):
    page, figure, file = tmp_path / "i.html", tmp_path / "i.svg", tmp_path / "i.json"
    words = ("--model", f"tiny=hf:{gpt2_folder}", "--prompt", PROMPT, "--half-width", 0.2)
    out = said(capsys, *words, "--report", page, "--plot", figure, "-o", file)
    assert "tiny: next-token-flip of predictions, one token of a prompt of 7 tokens moved" in out
    assert "90 % of the influence on the last prediction is carried by" in out
    text = page.read_text()
    for part in ("Which token does the next one hang on?", "film", "Every token and every prediction", "<mark"):
        assert part in text
    assert figure.read_text().startswith("<svg")
    saved = jostle.load(file)
    assert [token.strip() for token in saved[0].tokens] == ["the", "film", "is", "good", ",", "not", "bad"]
    same = jostle.influence(jostle.integrations.load(f"hf:{gpt2_folder}"), PROMPT, half_width=0.2)
    assert np.array_equal(same.matrix, saved.matrix, equal_nan=True)


def test_prompts_of_a_table_and_ids_of_a_file(gpt2_folder, tmp_path, capsys):
    (tmp_path / "p.csv").write_text("prompt\nthe film\na dull plot\n")
    words = ("--data", f"csv:{tmp_path / 'p.csv'}", "--text", "prompt", "--response", "total-variation", "--json")
    record = json.loads(said(capsys, "--model", f"hf:{gpt2_folder}", *words))
    assert [len(prompt["tokens"]) for prompt in record["prompts"]] == [2, 3]
    assert record["settings"]["response"] == "total-variation"
    np.save(tmp_path / "ids.npy", np.array([[5, 6, 7]]))
    out = said(capsys, "--model", f"hf:{gpt2_folder}", "--data", tmp_path / "ids.npy", "--perturbation", "deletion")
    assert "every token was jostled, and there is no randomness" in out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "give the inputs: --data, or texts as --prompt TEXT"),
        (("--prompt", "a", "--data", "csv:x.csv"), "and not both"),
        (("--prompt", "a film", "--response", "margin"), "says nothing about single tokens"),
        (("--prompt", "a film", "--plot", "x.txt"), "must end in .svg"),
        (("--prompt", "a film", "--half-width", "nan"), "half_width=nan must be a finite number above 0"),
        (("--prompt", "a film", "--half-width", 0), "half_width=0.0 must be a finite number above 0"),
        (("--prompt", "a film", "--max-passes", 0), "max_passes=0 must be a whole number, at least 1"),
    ],
)
def test_wrong_words_are_one_line(gpt2_folder, words, message, capsys):
    with pytest.raises(SystemExit) as ended:
        said(capsys, "--model", f"hf:{gpt2_folder}", *words)
    assert ended.value.code == 2
    assert message in capsys.readouterr().err


def test_changes_without_bounds_are_asymptotic(gpt2_folder, tmp_path, capsys):
    words = ("--model", f"hf:{gpt2_folder}", "--prompt", "a film", "--max-passes", 200, "-o", tmp_path / "i.json")
    out = said(capsys, *words, "--response", "kl", "--report", tmp_path / "i.html")
    assert "hold together: 95% (asymptotic, too few: " in out
    assert "entries together (asymptotic, too few: " in (tmp_path / "i.html").read_text()
    saved = jostle.load(tmp_path / "i.json")
    assert saved.caveat.startswith("asymptotic, too few: ")
    assert saved.concentration[0.5].interval.caveat == saved.caveat
    assert "asymptotic" not in said(capsys, *words)


def test_measure_takes_a_language_model_too(gpt2_folder, tmp_path, capsys):
    (tmp_path / "p.csv").write_text("text\nthe film is good\na dull plot\n")
    page = tmp_path / "m.html"
    words = ["--model", f"hf:{gpt2_folder}", "--data", f"csv:{tmp_path / 'p.csv'}", "--report", str(page), "--quiet"]
    main(["measure", *words, "--half-width", "0.1", "--example-draws", "3"])
    out = capsys.readouterr().out
    assert "next-token-flip 0." in out
    assert "no column 'label'" not in out
    assert "predicted " in page.read_text()
    for response in ("kl", "surprisal:later"):
        main(["measure", *words[:4], "--tokens", "words", "--response", response, "--quiet", "--json"])
        assert json.loads(capsys.readouterr().out)["settings"]["response"] == response


def measured(capsys, gpt2_folder, *words):
    main(["measure", "--model", f"hf:{gpt2_folder}", *map(str, words), "--quiet", "--json"])
    return json.loads(capsys.readouterr().out)


def test_measure_takes_prompts_as_they_are_typed(gpt2_folder, tmp_path, capsys):
    typed = measured(capsys, gpt2_folder, "--prompt", PROMPT, "--prompt", "a dull plot", "--tokens", "words")
    (tmp_path / "p.csv").write_text(f'text\n"{PROMPT}"\na dull plot\n')
    same = measured(capsys, gpt2_folder, "--data", f"csv:{tmp_path / 'p.csv'}", "--tokens", "words")
    assert typed["value"] == same["value"]
    assert typed["settings"]["num_inputs"] == 2


def test_answers_make_a_language_model_a_classifier(gpt2_folder, tmp_path, capsys):
    """Predictions are those of ``AnswerChoices``, and labels are the answers' own words."""
    texts = ["the film is", "a dull plot is", "not bad"]
    choices = jostle.AnswerChoices(jostle.integrations.load(f"hf:{gpt2_folder}"), ["good", "bad"])
    prompts = jostle.Prompts.of(texts, gpt2_folder / "tokenizer.json")
    said = [("good", "bad")[number] for number in choices(**_of(prompts)).argmax(dim=1).tolist()]
    rows = "".join(f"{text},{word}\n" for text, word in zip(texts, said, strict=True))
    (tmp_path / "p.csv").write_text("text,label\n" + rows)
    words = ("--answer", "good", "--answer", "bad", "--tokens", "words")
    record = measured(capsys, gpt2_folder, "--data", f"csv:{tmp_path / 'p.csv'}", *words)
    assert record["certainty"]["accuracy"]["value"] == 1.0
    by_hand = jostle.measure(choices, prompts, tokens=jostle.Words(special=False), perturbation="deletion")
    assert record["value"] == pytest.approx(by_hand.value)


def _of(prompts):
    return {key: prompts.inputs[key] for key in ("input_ids", "attention_mask")}


def test_measure_takes_a_token_classifier_too(tmp_path, capsys):
    from tests.integrations.text_folders import tokenizer

    network("bert").float().save_pretrained(tmp_path / "bert")
    tokenizer("gpt2").save(str(tmp_path / "bert" / "tokenizer.json"))
    words = ("--prompt", PROMPT, "--tokens", "words", "--report", tmp_path / "r.html")
    record = measured(capsys, tmp_path / "bert", *words)
    assert record["settings"]["response"] == "label-flip"
    assert (tmp_path / "r.html").is_file()


def test_clusters_are_a_column(gpt2_folder, tmp_path, capsys):
    rows = "".join(f"the film is {word},{number // 3}\n" for number, word in enumerate(["good", "bad", "not"] * 4))
    (tmp_path / "p.csv").write_text("text,story\n" + rows)
    words = ("--data", f"csv:{tmp_path / 'p.csv'}", "--tokens", "words")
    alone = measured(capsys, gpt2_folder, *words, "--draws", 1)
    together = measured(capsys, gpt2_folder, *words, "--draws", 1, "--cluster", "story")
    assert together["value"] == alone["value"]
    assert together["population"]["method"].startswith("4 clusters of 1 to 3 inputs")


@pytest.mark.skipif(not (NETWORKS / "stories260K").is_dir(), reason="JOSTLE_NETWORKS names no folder with stories260K")
def test_stories260k_in_one_line(tmp_path, capsys):
    place, page = NETWORKS / "stories260K", tmp_path / "i.html"
    words = ("--model", f"hf:{place / 'hf'}", "--tokenizer", place / "tok512.bin", "--report", page)
    out = said(capsys, *words, "--prompt", "Once upon a time, there was a", "--half-width", 0.2)
    assert "the last prediction, ' little', hangs on ' a' " in out
    assert "little" in page.read_text()


def test_a_text_that_does_not_say_what_it_belongs_to_is_refused(gpt2_folder, tmp_path, capsys):
    (tmp_path / "p.csv").write_text("text,story\nthe film,1\na dull plot,\nthe plot,2\n")
    words = ["--model", f"hf:{gpt2_folder}", "--data", f"csv:{tmp_path / 'p.csv'}", "--cluster", "story", "--quiet"]
    with pytest.raises(SystemExit):
        main(["measure", *words])
    assert "p.csv does not say what its text belongs to" in capsys.readouterr().err
