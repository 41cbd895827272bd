"""Clean answers, flips by token, and passages shaded by them."""

import numpy as np
import pytest
import torch

from jostle.estimates.request import Request
from jostle.integrations.text_pieces import Piece
from jostle.perturbations import Deletion, GaussianNoise
from jostle.report import Page, Section, render
from jostle.report.texts import clean_answers, flip_counts, legend, passage, root_mean_square, rows_of
from jostle.tokens import Embeddings, Words
from tests.tokens.made_up_texts import PAD, Bag, network, padded, sentences

TEXTS = sentences([3, 9, 4, 7, 5])


def asked(tokens, perturbation, **options):
    return Request.build(tokens=tokens, perturbation=perturbation, **options)


def alone(model, ids):
    with torch.inference_mode():
        answer = model(input_ids=ids[None], attention_mask=torch.ones_like(ids)[None])
    return answer.logits[0]


def test_deletion_is_a_loop_over_single_texts():
    model = network("roberta")
    request = asked(Words(special=False), Deletion())
    found = flip_counts({"m": model}, padded(TEXTS), request, draws=7)
    counts = found.flips
    assert found.draws == 1  # no randomness
    expected = np.full((5, 9), np.nan)
    for row, ids in enumerate(TEXTS):
        clean = alone(model, ids).argmax()
        for place in range(1, len(ids) - 1):
            left = torch.cat([ids[:place], ids[place + 1 :]])
            expected[row, place] = alone(model, left).argmax() != clean
            becomes = int(alone(model, left).argmax()) if expected[row, place] else None
            assert found.becomes["m"].get((row, place)) == becomes
    assert np.array_equal(counts["m"], expected, equal_nan=True)
    assert 0 < np.nansum(expected) < np.isfinite(expected).sum()


@pytest.mark.parametrize("side", ["right", "left"])
def test_noise_flips_a_bag_of_words_as_often_as_the_closed_form_says(side):
    """Every token of a text flips with probability Phi(-|logit| length / (std |w|)); within 4 standard errors."""
    from scipy.special import ndtr

    model, std, draws = Bag(), 3.0, 400
    given = padded(TEXTS, side)
    found = flip_counts({"m": model}, given, asked(Embeddings(), GaussianNoise(std), seed=3), draws)
    counts, made = found.flips, found.draws
    logits = clean_answers({"m": model}, given, asked(Embeddings(), GaussianNoise(0.0)))["m"].reshape(-1)
    assert made == draws
    for row, ids in enumerate(TEXTS):
        share = float(ndtr(-abs(float(logits[row])) * len(ids) / (std * float(model.weights.detach().norm()))))
        shares = counts["m"][row, : len(ids)] / draws
        assert np.abs(shares - share).max() <= 4 * (share * (1 - share) / draws) ** 0.5 + 1e-12
        assert np.isnan(counts["m"][row, len(ids) :]).all()
        assert {after for (one, _), after in found.becomes["m"].items() if one == row} <= {int(logits[row] < 0)}
    assert 0.05 < np.nanmean(counts["m"]) / draws < 0.95


def test_models_get_the_same_noise():
    twins = {"a": Bag(), "b": Bag()}
    counts = flip_counts(twins, padded(TEXTS), asked(Embeddings(), GaussianNoise(2.0)), 20).flips
    assert np.array_equal(counts["a"], counts["b"], equal_nan=True)


def test_clean_answers_come_in_the_order_of_the_texts():
    model = network("bert")
    given = padded(TEXTS)
    found = clean_answers({"m": model}, given, asked(Embeddings(), GaussianNoise(1.0), batch_size=2))["m"]
    assert torch.allclose(found, torch.stack([alone(model, ids) for ids in TEXTS]))


@pytest.mark.parametrize("where", ["after", "before"])
@pytest.mark.parametrize("special", [True, False])
def test_the_size_of_embedded_tokens(where, special):
    model = network("bert")
    given = padded(TEXTS)
    request = asked(Embeddings(where, special=special), GaussianNoise(0.0))
    found = root_mean_square({"m": model}, given, request)["m"]
    words = model.get_input_embeddings()
    squares = []
    for ids in TEXTS:
        embedded = model.bert.embeddings(ids[None])[0] if where == "after" else words(ids)
        squares.append(embedded.detach()[1:-1] if not special else embedded.detach())
    assert found == pytest.approx(float(torch.cat(squares).square().mean().sqrt()), rel=1e-9)


def test_taken():
    rows = rows_of(padded(TEXTS), np.array([3, 0]))
    assert rows["input_ids"][0, :7].tolist() == TEXTS[3].tolist()
    assert rows["input_ids"][1, 3:].tolist() == [PAD] * 6


def test_a_token_says_its_flips():
    pieces = [
        Piece("[CLS]", (0,), is_special=True),
        Piece("bad", (1,)),
        Piece(" "),
        Piece("\U0001f600", (2, 3)),
        Piece(" the rest" * 50, is_unread=True),
    ]
    tokens = passage(pieces, np.array([np.nan, 10.0, 5.0, 40.0]), 40, "label").tokens
    assert [token.share for token in tokens] == [None, 0.25, None, 1.0, None]
    assert [token.is_added for token in tokens] == [True, False, False, False, False]
    assert [token.tooltip for token in tokens] == [
        "not jostled",
        "10 of 40 draws flip (25 %)",
        "",
        "2 tokens: 5 of 40 draws flip (12 %), 40 of 40 draws flip (100 %)",
        "not read: the text is cut before it",
    ]
    assert tokens[-1].text.endswith(" …")
    assert len(tokens[-1].text) < 170


def test_the_legend_says_how_many_draws_there_were():
    assert [token.text for token in legend(40)][-1] == "40 draws for each token"
    assert [token.text for token in legend(1)] == [
        "flips the prediction:",
        "never",
        "always",
        "one change for each token",
    ]


def test_legend_and_added_tokens_are_on_the_page():
    pieces = [Piece("<s>", (0,), is_special=True), Piece(" a<b", (1,))]
    one = passage(pieces, np.array([np.nan, 3.0]), 4)
    html = render(Page("t", "", [Section("s", passages=[one], legend=legend(4))]))
    assert '<span class="added" title="not jostled">&lt;s&gt;</span>' in html
    assert '<mark style="--share: 75" title="3 of 4 draws flip (75 %)"> a&lt;b</mark>' in html
    assert '<p class="legend">flips the prediction:' in html
