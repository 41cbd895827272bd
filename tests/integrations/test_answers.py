"""Answers of several tokens: choices by log-likelihood, and what a model writes next, against the model's own."""

import itertools

import numpy as np
import pytest
import torch

import jostle
from jostle import AnswerChoices, Deletion, Embeddings, GaussianNoise, ReplaceBy, UniformToken, UsageError, Words
from jostle.integrations import Continuation
from jostle.responses import edit_distance
from tests.integrations.families import TEXTS, VOCABULARY, network, padded

pytest.importorskip("transformers")

CHOICES = [[5, 6], [7], [8, 9, 10]]


def score(model, text, answer):
    """The log-likelihood of an answer after a text, token by token."""
    total = 0.0
    for place in range(len(answer)):
        if model.config.is_encoder_decoder:
            start = torch.tensor([[model.config.decoder_start_token_id, *answer[:place]]])
            logits = model(input_ids=torch.tensor([text]), decoder_input_ids=start).logits
        else:
            logits = model(input_ids=torch.tensor([[*text, *answer[:place]]])).logits
        total += float(logits[0, -1].log_softmax(dim=-1)[answer[place]])
    return total


def test_a_model_in_eval_mode_stays_so():
    model = network("gpt2")
    assert not Continuation(model.eval()).training
    found = jostle.measure(model, TEXTS, tokens="words", perturbation="deletion", response="continuation-flip:2")
    assert not found.notes


@pytest.mark.parametrize("kind", ["gpt2", "llama", "t5", "rwkv"])
@torch.no_grad()
def test_choices_are_scored_by_their_log_likelihood(kind):
    model = network(kind)
    choices = AnswerChoices(model, CHOICES)
    seen = []
    for text in TEXTS:
        extra = {"decoder_input_ids": torch.tensor([[0]])} if kind == "t5" else {}
        found = choices(torch.tensor([text]), **extra)[0].tolist()
        assert found == pytest.approx([score(model, text, answer) for answer in CHOICES])
        seen.append(np.argmax(found))
    gone = jostle.measure(choices, padded("left"), tokens=Words(), perturbation=Deletion())
    expected = []
    for text, best in zip(TEXTS, seen, strict=True):
        shorter = [text[:at] + text[at + 1 :] for at in range(len(text))]
        flips = [np.argmax([score(model, one, answer) for answer in CHOICES]) != best for one in shorter]
        expected.append(np.mean(flips))
    assert gone.per_input == pytest.approx(expected)


def test_noise_in_embeddings_moves_every_call():
    model = network("gpt2")
    one, both = AnswerChoices(model, [[5], [6]]), AnswerChoices(model, [[5, 9], [6, 9]])
    for choices in (one, both):
        for size, side in ((1, "left"), (128, "right")):
            found = jostle.measure(
                choices, padded(side), tokens=Embeddings(), perturbation=GaussianNoise(1.0), response="margin",
                plan="grid:3", batch_size=size,
            )  # fmt: skip
            assert found.value > 0
    whole = jostle.measure(
        model, TEXTS, tokens=Embeddings(), perturbation=GaussianNoise(1.0), response="kl", plan="grid:3"
    )
    assert found.passes == 2 * whole.passes  # two choices, two calls


def test_choices_as_texts():
    from tests.integrations.test_language_models import fast_tokenizer

    model = network("gpt2")
    choices = AnswerChoices(model, ["good", "bad film"], fast_tokenizer(), mean=True)
    ids = [fast_tokenizer()(text)["input_ids"] for text in ("good", "bad film")]
    assert choices.choices == ids
    plain = AnswerChoices(model, ids)(torch.tensor([[3, 4]]))
    assert choices(torch.tensor([[3, 4]])).tolist()[0] == pytest.approx((plain[0] / torch.tensor([1, 2])).tolist())
    for wrong, message in (
        (["good"], "at least two"),
        (["good", [5]], "all texts or all"),
        (["a", "b"], "no tokenizer"),
    ):
        with pytest.raises(UsageError, match=message):
            AnswerChoices(model, wrong)


@pytest.mark.parametrize("kind", ["gpt2", "llama", "t5", "bart"])
def test_a_continuation_is_what_generate_writes(kind):
    model = network(kind)
    inputs = padded("right" if model.config.is_encoder_decoder else "left")
    model.generation_config.eos_token_id = None
    start = (
        {"decoder_input_ids": torch.full((3, 1), model.config.decoder_start_token_id)} if kind in ("t5", "bart") else {}
    )
    options = {"max_new_tokens": 5, "min_new_tokens": 5, "do_sample": False, "pad_token_id": 0}
    expected = model.generate(**inputs, **start, **options)[:, -5:]
    given = padded("right") | start
    with torch.inference_mode():
        found = Continuation(model, 5)(**given)
    if kind != "bart":  # whose configuration forces its own last token
        assert torch.equal(found, expected)
    assert found.shape == (3, 5)


@pytest.mark.parametrize("kind", ["gpt2", "llama", "t5"])
def test_changes_of_the_continuation(kind):
    model = network(kind)
    writes = Continuation(model, 4)
    start = {"decoder_input_ids": torch.tensor([[0]])} if kind == "t5" else {}

    def written(text):
        with torch.inference_mode():
            return writes(torch.tensor([text]), **start)[0].tolist()

    moved = {
        number: [written([*text[:at], 9, *text[at + 1 :]]) for at in range(len(text))]
        for number, text in enumerate(TEXTS)
    }
    clean = [written(text) for text in TEXTS]
    flips = [np.mean([one != clean[number] for one in moved[number]]) for number in moved]
    distances = [np.mean([edit_distance(one, clean[number]) / 4 for one in moved[number]]) for number in moved]
    for side in ("left", "right"):
        for response, expected in (("continuation-flip:4", flips), ("continuation-distance:4", distances)):
            found = jostle.measure(model, padded(side), tokens=Words(), perturbation=ReplaceBy(9), response=response)
            assert found.per_input == pytest.approx(expected)
            assert found.settings.response == response
    assert 0 < np.mean(distances) <= np.mean(flips)
    noisy = jostle.measure(
        model,
        TEXTS,
        tokens=Embeddings(),
        perturbation=GaussianNoise(1.0),
        response="continuation-flip:4",
        plan="grid:2",
    )
    assert noisy.value > 0
    still = jostle.measure(
        model,
        TEXTS,
        tokens=Embeddings(),
        perturbation=GaussianNoise(0.0),
        response="continuation-flip:4",
        plan="grid:1",
    )
    assert still.value == 0


def test_the_edit_distance_by_trying_everything():
    def slow(first, second):
        if not first or not second:
            return len(first) + len(second)
        return min(
            slow(first[1:], second) + 1,
            slow(first, second[1:]) + 1,
            slow(first[1:], second[1:]) + (first[0] != second[0]),
        )

    for first, second in itertools.product(itertools.product([0, 1, 2], repeat=3), repeat=2):
        assert edit_distance(first, second) == slow(first, second)


def test_a_uniform_token_changes_what_a_module_of_ones_own_writes():
    class Copies(torch.nn.Module):
        def forward(self, ids):
            return torch.nn.functional.one_hot(ids, VOCABULARY).double()

    found = jostle.measure(
        Copies(),
        TEXTS,
        tokens=Words(),
        perturbation=UniformToken(VOCABULARY),
        response="continuation-flip:2",
        plan="grid:9",
    )
    assert found.profile.values[:2].max() == 0  # only the last token is copied
    assert found.value > 0
