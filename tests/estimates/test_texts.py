"""Changes of texts against known answers, and what is aligned with what."""

import itertools
import json

import numpy as np
import pytest
import torch

import jostle
from jostle import integrations
from jostle.base.errors import UsageError
from jostle.text_changes import Alternatives, Case, Ocr, PromptSlot, Typo, neighbours
from tests.integrations.text_folders import TEXTS, save

GRID = [(a, b) for a in np.linspace(0.01, 0.99, 15) for b in np.linspace(0.01, 0.99, 15)]


def loud(texts):
    """Class 0 if there are more than two capital letters."""
    return torch.tensor([[sum(map(str.isupper, text)) - 2.5, 0.0] for text in texts])


class TestChanges:
    @pytest.mark.parametrize("kind", ["swap", "drop", "double", "neighbour", "any"])
    def test_a_typo_is_one_edit_and_never_none(self, kind):
        lengths = {"swap": {0}, "drop": {-1}, "double": {1}, "neighbour": {0}, "any": {-1, 0, 1}}[kind]
        seen = set()
        for word, uniforms in itertools.product(["film", "Good", "aab"], GRID):
            changed = Typo(kind).apply(word, uniforms)
            assert changed != word
            assert len(changed) - len(word) in lengths
            if kind == "swap":
                assert sorted(changed) == sorted(word)
            if kind == "neighbour":
                (place,) = [n for n in range(len(word)) if changed[n] != word[n]]
                assert changed[place].lower() in neighbours(word[place])
                assert changed[place].isupper() == word[place].isupper()
            seen.add(changed)
        assert len(seen) > 3

    def test_words_without_a_swap_or_a_neighbour_still_change(self):
        assert Typo("swap").apply("aaa", (0.5, 0.5)) == "aa"
        assert Typo("neighbour").apply("42", (0.5, 0.5)) == "422"

    def test_reading_errors_look_alike(self):
        found = {Ocr().apply("modern", uniforms) for uniforms in GRID}
        assert {"rnodern", "m0dern", "modem"} <= found
        assert "modern" not in found
        assert not Ocr().fits("xxx")

    def test_alternatives_from_files(self, tmp_path):
        (tmp_path / "a.json").write_text(json.dumps({"good": ["fine", "nice"], "bad": "poor"}))
        (tmp_path / "a.csv").write_text("good,fine,nice\nbad,poor,\n")
        (tmp_path / "a.tsv").write_text("good\tfine\tnice\nbad\tpoor\n")
        for ending in ("json", "csv", "tsv"):
            change = Alternatives(tmp_path / f"a.{ending}")
            assert {change.apply("GOOD", uniforms) for uniforms in GRID} == {"FINE", "NICE"}
            assert change.apply("Bad", (0.5, 0.5)) == "Poor"
            assert change.prepare("bad film, good plot")[1] == [(0, 3), (10, 14)]
        for text, message in (("[1]", "must hold a mapping"), ("{", "is not JSON"), ("{}", "hold no word")):
            (tmp_path / "b.json").write_text(text)
            with pytest.raises(UsageError, match=message):
                Alternatives(tmp_path / "b.json")
        with pytest.raises(UsageError, match=r"must end in \.json"):
            Alternatives(tmp_path / "a.txt" if (tmp_path / "a.txt").write_text("x") else "")

    def test_slots_are_filled_where_they_stand(self):
        change = PromptSlot("Please|Now", name="ask")
        text, spans = change.prepare("{ask} go, {ask}!")
        assert text == "Please go, Please!"
        assert [text[a:b] for a, b in spans] == ["Please", "Please"]
        assert change.is_deterministic
        assert change.describe() == "slot:Please|Now,name=ask"
        with pytest.raises(UsageError, match="at least two different texts"):
            PromptSlot(["one"])

    @pytest.mark.parametrize("spec", ["typo", "typo:swap", "case", "case:lower", "ocr", "slot:a|b"])
    def test_the_spec_makes_the_change_again(self, spec):
        from jostle.base import specs
        from jostle.text_changes import TEXT_CHANGES

        assert specs.build(TEXT_CHANGES, spec, "change").describe() == spec


class TestCounts:
    def test_x_of_n_is_exact_without_randomness(self):
        found = jostle.change_texts(loud, ["It is late", "Go now", "..."], change=Case())
        assert (found.changed, found.trials) == (3, 5)
        assert (found.low, found.value, found.high) == (0.6, 0.6, 0.6)
        assert found.population.low < 0.6 < found.population.high
        np.testing.assert_allclose(found.per_text, [2 / 3, 0.5, np.nan])
        assert [word.text for word in found.words[0]] == ["It", "is", "late"]
        assert found.by_word()["late"] == (1.0, 1)
        assert found.passes == 2 + 5

    def test_draws_have_an_interval_that_covers(self):
        """A typo that doubles, drops or swaps: the prediction looks at the length of the text."""

        def longer(texts):
            return torch.tensor([[len(text) - 4.5, 0.0] for text in texts])

        held = 0
        for seed in range(60):
            found = jostle.change_texts(longer, ["film"], change="typo", draws=40, seed=seed)
            held += found.low <= 0.25 <= found.high
        assert held >= 54

    def test_the_same_seed_gives_the_same_changes_and_batches_do_not_matter(self):
        first, second = (jostle.change_texts(loud, TEXTS, change="typo", draws=3, batch_size=size) for size in (128, 3))
        assert first.words == second.words
        assert jostle.change_texts(loud, TEXTS, change="typo", draws=3, words=2).trials <= 2 * 3 * len(TEXTS)

    def test_clusters_widen_the_population_interval(self):
        texts = ["It is late", "Go now", "A b c D"] * 8
        plain = jostle.change_texts(loud, texts, change="case")
        found = jostle.change_texts(loud, texts, change="case", cluster=[number % 3 for number in range(24)])
        assert found.value == plain.value
        assert found.population.high - found.population.low > plain.population.high - plain.population.low

    def test_other_responses_are_means(self):
        found = jostle.change_texts(loud, TEXTS, change="case", response="logit-change")
        assert found.value > 1
        assert "mean logit-change" in found.sentence

    def test_results_come_back_from_a_file(self, tmp_path):
        found = jostle.change_texts(loud, TEXTS, change="ocr", draws=2)
        found.save(tmp_path / "t.json")
        again = jostle.load(tmp_path / "t.json")
        assert again.to_dict() == found.to_dict()
        assert str(again) == str(found)

    @pytest.mark.parametrize(
        ("texts", "more", "message"),
        [
            ([], {}, "at least one text"),
            ([3], {}, "and 3 is none"),
            (["..."], {}, "fits no word"),
            (["a b"], {"draws": 0}, "draws=0 must be"),
            (["a b"], {"change": "typos"}, "did you mean typo"),
        ],
    )
    def test_wrong_use_is_one_line(self, texts, more, message):
        with pytest.raises(UsageError, match=message):
            jostle.change_texts(loud, texts, **{"change": "typo", **more})


def test_a_network_is_asked_about_the_encoded_text_and_words_have_tokens(tmp_path):
    torch.set_default_dtype(torch.float32)
    save(tmp_path)
    model = integrations.load(f"hf:{tmp_path}")
    found = jostle.change_texts(model, TEXTS, change=Alternatives({"good": ["bad"], "films": ["plot"]}), draws=1)
    words = [word for words in found.words for word in words]
    assert {word.text for word in words} == {"good", "films"}
    assert [len(word.tokens) for word in words if word.text == "films"] == [2]  # film and ##s
    reader = integrations.reader_of(model)
    first = found.words[0][0]
    pieces = [piece for piece in reader.pieces((TEXTS[0],)) if piece.tokens and not piece.is_special]
    assert pieces[first.tokens[0]].text.strip() == "good"

    def by_hand(text):
        ids = reader.encode(jostle.data.TextDataset("x", ((text,),), torch.zeros(1, dtype=torch.int64), 1))
        ids.pop("special_tokens_mask")
        with torch.no_grad():
            return int(model(**ids).logits.argmax())

    before = by_hand(TEXTS[0])
    after = by_hand(TEXTS[0].replace("good", "bad", 1))
    assert found.words[0][0].change == float(before != after)


def test_it_runs_from_the_command_line(capsys, tmp_path, monkeypatch):
    from tests.cli.test_cli import run

    torch.set_default_dtype(torch.float32)
    monkeypatch.chdir(tmp_path)
    save(tmp_path / "model")
    (tmp_path / "texts.csv").write_text("text\n" + "\n".join(f'"{text}"' for text in TEXTS) + "\n")
    capsys.readouterr()
    words = ("change", "--model", "hf:model", "--data", "csv:texts.csv", "--quiet")
    code, out, err = run(capsys, *words, "--change", "typo", "--draws", 2, "--report", "r.html", "-o", "t.json")
    assert (code, err) == (0, "")
    assert "changes changed the prediction" in out
    assert "of 2 changes flip the prediction" in (tmp_path / "r.html").read_text()
    assert jostle.load("t.json").trials > 10
    code, _, err = run(capsys, *words, "--change", "slot:a|b")
    assert code == 2
    assert "fits no word" in err


def test_more_changes_than_fit_into_memory_are_refused_before_they_are_drawn():
    with pytest.raises(jostle.UsageError, match="4,000,000,000 changes, more than 10,000,000: give fewer texts, draws"):
        jostle.change_texts(lambda texts: torch.zeros(len(texts), 2), ["two words"], change="typo", draws=2 * 10**9)


def test_a_number_in_the_place_of_texts_is_one_line():
    with pytest.raises(UsageError, match="texts must be a list of at least one text, and 3 is none"):
        jostle.change_texts(lambda texts: torch.zeros(len(texts), 2), 3, change="typo")


def test_a_tensor_in_the_place_of_texts_is_one_line():
    with pytest.raises(UsageError) as raised:
        jostle.change_texts(lambda texts: torch.zeros(len(texts), 2), torch.ones(2, 2, 2), change="typo")
    assert str(raised.value) == "texts must be a list of at least one text, and a Tensor is none"
