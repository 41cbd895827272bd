"""Influence: exact twins by enumeration, intervals of all entries together, and results that travel."""

import re

import numpy as np
import pytest
import torch

import jostle
from jostle import Deletion, Embeddings, GaussianNoise, Prompts, ReplaceBy, UniformToken, UsageError
from jostle.estimates.influence import InfluenceRun
from tests.integrations.families import TOKEN_CLASSIFIERS, network

VOCABULARY = 6


def running_maximum(ids):
    """A language model that predicts the largest token so far, by hand."""
    return torch.nn.functional.one_hot(ids.cummax(dim=1).values, VOCABULARY).double()


def last_and_second(ids):
    """One that predicts the sum of this token and the one before it, modulo the vocabulary."""
    before = torch.cat([torch.zeros_like(ids[:, :1]), ids[:, :-1]], dim=1)
    return torch.nn.functional.one_hot((ids + before) % VOCABULARY, VOCABULARY).double()


def exact(model, text):
    """The influence matrix under a uniform token: every token replaced by every word, without jostle."""
    matrix = np.full((len(text), len(text)), np.nan)
    clean = model(torch.tensor([text])).argmax(dim=-1)[0]
    for i in range(len(text)):
        moved = torch.tensor([[*text[:i], word, *text[i + 1 :]] for word in range(VOCABULARY)])
        changed = (model(moved).argmax(dim=-1) != clean).double().mean(dim=0)
        matrix[i, i:] = changed[i:]
    return matrix


TEXT = [3, 1, 4, 1, 5, 2]


def test_matrices_that_are_known_in_closed_form():
    """Only tokens that hold the maximum matter to its end: 5 stays, unless it is moved itself; 4 mattered before."""
    maximum = exact(running_maximum, TEXT)
    assert maximum[0].tolist() == pytest.approx([5 / 6, 5 / 6, 1 / 6, 1 / 6, 0, 0])
    assert maximum[4, 4:].tolist() == pytest.approx([5 / 6, 5 / 6])
    sums = exact(last_and_second, TEXT)
    assert np.nansum(np.triu(sums, 2)) == 0
    assert np.diag(sums) == pytest.approx([5 / 6] * 6)


@pytest.mark.parametrize("model", [running_maximum, last_and_second])
def test_every_entry_is_covered_and_as_precise_as_asked_for(model):
    found = jostle.influence(model, [TEXT], perturbation=UniformToken(VOCABULARY), half_width=0.08)
    known = exact(model, TEXT)
    measured = np.isfinite(found.matrix)
    assert np.array_equal(measured, np.isfinite(known))
    assert (found.low[measured] <= known[measured]).all()
    assert (known[measured] <= found.high[measured]).all()
    assert (found.high - found.low)[measured].max() <= 0.16 + 1e-9
    assert found.stopped == "precision"
    assert np.abs(found.matrix - known)[measured].max() < 0.08


def test_tokens_whose_intervals_are_wide_are_drawn_more_often():
    found = jostle.influence(running_maximum, [[5, 0, 0]], perturbation=UniformToken(VOCABULARY), half_width=0.05)
    first, second, third = found[0].draws  # 5/6, and never
    assert first > 2 * second == 2 * third


def test_one_pass_gives_a_row_and_counts_once():
    found = jostle.influence(running_maximum, [TEXT], perturbation=ReplaceBy(0))
    checks = jostle.measure(
        running_maximum, [TEXT], tokens="words", perturbation=ReplaceBy(0), response="next-token-flip:later"
    ).passes
    assert found.passes - 3 == checks  # half a text and a whole one to see that it reads in order, and one to show
    assert found.stopped == "complete"
    assert np.array_equal(found.low, found.high, equal_nan=True)


@pytest.mark.parametrize("response", ["kl", "total-variation", "surprisal"])
def test_other_responses_are_the_means_of_measure(response):
    torch.manual_seed(1)
    table = torch.randn(VOCABULARY, VOCABULARY)

    def model(ids):
        return table[ids].cumsum(dim=1)

    found = jostle.influence(model, [TEXT], perturbation=Deletion(), response=response)
    for i in range(len(TEXT)):
        mask = (torch.arange(len(TEXT)) == i)[None]
        alone = jostle.measure(
            model, [TEXT], tokens="words", perturbation=Deletion(), response=f"{response}:later", mask=mask
        )
        assert np.nanmean(found.matrix[i]) == pytest.approx(alone.value)


def test_several_prompts_of_different_lengths_share_their_level():
    texts = [[3, 1], TEXT, [2, 2, 5]]
    found = jostle.influence(running_maximum, texts, perturbation=UniformToken(VOCABULARY))
    assert found.matrix.shape == (3, 6, 6)
    for prompt, text in zip(found, texts, strict=True):
        known = exact(running_maximum, text)
        measured = np.isfinite(known)
        assert prompt.values.shape == known.shape
        assert ((prompt.low <= known + 1e-12) & (known <= prompt.high + 1e-12))[measured].all()
    together = jostle.influence(running_maximum, texts, perturbation=UniformToken(VOCABULARY), batch_size=1)
    assert np.array_equal(together.matrix, found.matrix, equal_nan=True)


def test_concentration_is_that_of_the_exact_matrix():
    found = jostle.influence(
        running_maximum, [[1, 0, 5, 2, 3, 0]], perturbation=UniformToken(VOCABULARY), half_width=0.03
    )
    half, most = found.concentration[0.5], found.concentration[0.9]
    assert (half.value, half.low, half.high) == (1, 1, 1)
    assert most.low <= most.value == 1 <= most.high
    spread = jostle.influence(last_and_second, [TEXT], perturbation=UniformToken(VOCABULARY), half_width=0.05)
    assert spread.concentration[0.9].value == 2
    still = jostle.influence(lambda ids: running_maximum(ids * 0), [TEXT], perturbation=UniformToken(VOCABULARY))
    assert np.isnan(still.concentration[0.5].value)
    assert still.concentration[0.5].high == 6


def test_noise_of_std_0_has_no_influence():
    pytest.importorskip("transformers")
    model = network("llama")
    found = jostle.influence(model, [TEXT], tokens=Embeddings(), perturbation=GaussianNoise(0.0))
    assert np.nanmax(found.matrix) == 0


def test_either_side_of_padding_gives_the_same_matrix():
    pytest.importorskip("transformers")
    model = network("gpt2")
    right = {"input_ids": torch.tensor([[5, 6, 7, 8, 0], [9, 8, 7, 6, 5]])}
    right["attention_mask"] = torch.tensor([[1, 1, 1, 1, 0], [1] * 5])
    left = {key: torch.stack([torch.roll(rows[0], 1), rows[1]]) for key, rows in right.items()}
    options = {"response": "total-variation", "half_width": 0.2}
    found = [jostle.influence(model, inputs, **options) for inputs in (left, right, [[5, 6, 7, 8], [9, 8, 7, 6, 5]])]
    assert np.allclose(found[0].matrix, found[1].matrix, equal_nan=True)
    assert np.allclose(found[0].matrix, found[2].matrix, equal_nan=True)


def test_a_token_classifier_has_a_whole_matrix():
    pytest.importorskip("transformers")
    model = network(next(iter(TOKEN_CLASSIFIERS)), seed=4)
    found = jostle.influence(model, [TEXT], half_width=0.2)
    assert np.isfinite(found.matrix).all()
    assert found.settings.response == "label-flip"
    assert set(found[0].predictions) <= {"LABEL_0", "LABEL_1"}
    with pytest.raises(UsageError, match=r"does not read in order: .* response=next-token-flip:every"):
        jostle.influence(model, [TEXT], response="next-token-flip:later")


def test_an_encoder_decoder_has_a_column_for_each_token_of_its_decoder():
    pytest.importorskip("transformers")
    found = jostle.influence(network("t5"), [TEXT], response="total-variation", half_width=0.2)
    assert found.matrix.shape == (6, 1)
    assert np.isfinite(found.matrix).all()


def test_it_travels_prints_and_draws(tmp_path):
    prompts = Prompts.of_ids([TEXT])
    found = jostle.influence(running_maximum, prompts, perturbation=UniformToken(VOCABULARY))
    found.save(tmp_path / "i.json")
    loaded = jostle.load(tmp_path / "i.json")
    assert np.array_equal(loaded.matrix, found.matrix, equal_nan=True)
    assert str(loaded).splitlines()[:4] == str(found).splitlines()[:4]
    assert "50 % of the influence on the last prediction is carried by 1 token [1," in str(found)
    html = found._repr_html_()
    assert html.count("<rect") >= 21
    assert re.search(r"<title>'5' moved, prediction after '2' \('5'\): 0\.\d+ \[", html)
    assert found.plot().axes[0].get_xlabel() == "prediction after"
    assert found.settings.half_width == 0.1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"response": "margin"}, "says nothing about single tokens"),
        ({"perturbation": None}, "give uniform-token:V"),
        ({"max_passes": 10}, "is not enough for 16 draws of each token"),
        ({"half_width": 0}, "half_width=0 must be a finite number above 0"),
        ({"tokens": "rows"}, "influence is for texts"),
        ({"tokens": "embeddings", "perturbation": None}, "needs perturbation="),
    ],
)
def test_what_cannot_be_asked_is_one_line(options, message):
    with pytest.raises(UsageError, match=re.escape(message)) as error:
        jostle.influence(running_maximum, [TEXT], **{"perturbation": UniformToken(VOCABULARY), **options})
    assert "\n" not in str(error.value)


def test_max_passes_ends_it_and_the_intervals_are_valid(monkeypatch):
    found = jostle.influence(
        running_maximum, [TEXT], perturbation=UniformToken(VOCABULARY), half_width=0.01, max_passes=500
    )
    assert found.stopped == "max_passes"
    assert found.passes <= 500
    known = exact(running_maximum, TEXT)
    measured = np.isfinite(known)
    assert ((found.low <= known) & (known <= found.high))[measured].all()

    def interrupt(self):
        raise KeyboardInterrupt

    monkeypatch.setattr(InfluenceRun, "_wanted", interrupt)
    with pytest.raises(jostle.Interrupted) as error:
        jostle.influence(running_maximum, [TEXT], perturbation=UniformToken(VOCABULARY))
    assert error.value.result.stopped == "interrupted"


@pytest.mark.slow
def test_all_entries_are_covered_together_in_repeated_runs():
    """300 runs, 21 entries each, stopped when precise: all are covered in at least 90 %, and not by luck of one."""
    known, level, runs = exact(running_maximum, TEXT), 0.9, 300
    measured, missed, single = np.isfinite(known), 0, 0
    for seed in range(runs):
        found = jostle.influence(
            running_maximum, [TEXT], perturbation=UniformToken(VOCABULARY), half_width=0.15, level=level, seed=seed
        )
        outside = ((known < found.low) | (known > found.high))[measured]
        missed += outside.any()
        single += outside.sum()
    assert missed <= (1 - level) * runs + 4 * np.sqrt(level * (1 - level) * runs)
    assert single <= 2 * missed + 2
