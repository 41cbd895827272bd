"""Answers at several tokens: which are compared, what their changes add up to, and deletion, against pure loops."""

import numpy as np
import pytest
import torch

import jostle
from jostle import Deletion, Embeddings, GaussianNoise, Grid, ReplaceBy, UsageError, Words
from tests.integrations.families import TEXTS, TOKEN_CLASSIFIERS, VOCABULARY, network, padded

RESPONSES = ["next-token-flip:later", "next-token-flip:every", "label-flip", "other-label-flip"]


class Sums(torch.nn.Module):
    """Logits at each token: sums of random vectors of the tokens so far, or of all tokens."""

    def __init__(self, causal):
        super().__init__()
        self.causal = causal
        self.words = torch.nn.Embedding(VOCABULARY, 6)

    def get_input_embeddings(self):
        return self.words

    def forward(self, input_ids, attention_mask):
        words = self.words(input_ids) * attention_mask[:, :, None]
        places = 1 + torch.arange(input_ids.shape[1])[:, None]
        return words.cumsum(dim=1) / places.sqrt() if self.causal else words + 0.7 * words.sum(dim=1, keepdim=True)


def labels(model, text):
    ids = torch.tensor([text])
    with torch.inference_mode():
        return model(input_ids=ids, attention_mask=torch.ones_like(ids))[0].argmax(dim=-1).tolist()


def expected(model, response, text, moved, other):
    """The change when token ``moved`` becomes ``other``, or is deleted if that is None, by comparing lists."""
    before = labels(model, text)
    if other is not None:
        after = labels(model, [*text[:moved], other, *text[moved + 1 :]])
        pairs = {n: (before[n], after[n]) for n in range(len(text))}
    else:
        after = labels(model, text[:moved] + text[moved + 1 :])
        pairs = {n: (before[n], after[n - (n > moved)]) for n in range(len(text)) if n != moved}
        if moved == len(text) - 1 and "later" in response:
            pairs[moved] = (before[moved], after[-1])
    changed = {n: one != two for n, (one, two) in pairs.items()}
    if response == "next-token-flip:later":
        return np.mean([value for n, value in changed.items() if n >= moved])
    if response == "other-label-flip":
        return float(any(value for n, value in changed.items() if n != moved))
    return np.mean(list(changed.values()))


@pytest.mark.parametrize("response", RESPONSES)
@pytest.mark.parametrize("other", [9, None], ids=["replaced", "deleted"])
@pytest.mark.parametrize("side", ["left", "right"])
def test_the_tokens_that_are_compared(response, other, side):
    model = Sums(causal="later" in response)
    perturbation = Deletion() if other is None else ReplaceBy(other)
    for size in (1, 128):
        found = jostle.measure(
            model, padded(side), tokens=Words(), perturbation=perturbation, response=response, batch_size=size
        )
        values = [
            np.mean([expected(model, response, text, moved, other) for moved in range(len(text))]) for text in TEXTS
        ]
        assert found.per_input == pytest.approx(values)
    assert 0 < found.value < 1


@pytest.mark.parametrize("kind", TOKEN_CLASSIFIERS)
def test_token_classifiers_of_transformers(kind):
    pytest.importorskip("transformers")
    model = network(kind, seed=4)
    for view, move in ((Embeddings(), GaussianNoise(5.0)), (Words(), ReplaceBy(9))):
        for response in ("label-flip", "other-label-flip"):
            ways = [(padded("left"), 128), (padded("right"), 2), (TEXTS, 1)]
            found = [
                jostle.measure(
                    model, inputs, tokens=view, perturbation=move, response=response, plan=Grid(3), batch_size=size
                ).per_input
                for inputs, size in ways
            ]
            assert np.array_equal(found[0], found[1])
            assert np.array_equal(found[0], found[2])
            assert found[0].mean() > 0 or response == "other-label-flip"
    with pytest.raises(UsageError, match="gives a label to every token: use response label-flip"):
        jostle.measure(model, TEXTS, tokens=Words(), perturbation=ReplaceBy(9))


def test_kl_at_later_tokens_is_the_mean_over_them():
    model = Sums(causal=True)
    text, moved = TEXTS[2], 2
    m = jostle.measure(
        model,
        [text],
        tokens=Words(),
        perturbation=ReplaceBy(9),
        response="kl:later",
        mask=torch.arange(len(text))[None] == moved,
    )
    ids = torch.tensor([text, [*text[:moved], 9, *text[moved + 1 :]]])
    with torch.inference_mode():
        before, after = model(ids, torch.ones_like(ids)).log_softmax(dim=-1)
    each = (before.exp() * (before - after)).sum(dim=-1)
    assert float(each[:moved].abs().max()) == 0
    assert m.value == pytest.approx(float(each[moved:].mean()))
