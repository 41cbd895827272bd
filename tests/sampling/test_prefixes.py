"""Reading on from the moved token gives what reading whole texts gives, and is used only where it saves work."""

import itertools

import numpy as np
import pytest
import torch

import jostle
from jostle import Deletion, Embeddings, GaussianNoise, Grid, UniformToken, Until, Words
from jostle.models.text_causal import CausalTextModel
from jostle.models.text_recurrent import TextLSTM
from jostle.sampling import evaluation, prefixes
from jostle.sampling.prefixes import PrefixReader, can_continue
from jostle.tokens import Inputs, TokenFunction
from tests.tokens.made_up_texts import LENGTHS, VOCABULARY, padded, sentences

CAUSAL = ["text-decoder", "text-gru", "text-lstm", "text-ssm"]
TEXTS = [text + 3 for text in sentences()]  # 0 is padding
NOISE, WORDS = GaussianNoise(2.0), UniformToken(torch.arange(4, VOCABULARY))
VIEWS = [(Embeddings(), NOISE), (Embeddings("before"), NOISE), (Words(), WORDS)]


def small(name):
    sizes = {"depth": 1 if name == "text-ssm" else 2}  # its loop over tokens is slow
    sizes |= {"heads": 2, "mlp_dim": 16} if name in ("text-encoder", "text-decoder") else {}
    model = jostle.models.create(name, vocabulary=VOCABULARY + 3, dim=8, seed=0, **sizes).double().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(3)  # so that predictions differ
        words = model.get_input_embeddings().weight
        words.copy_(torch.randn(words.shape, generator=torch.Generator().manual_seed(1)))
        if model.classifier.bias is not None:
            model.classifier.bias -= model(given()["input_ids"]).mean(dim=0)
    return model


def given(side="right", width=14):
    return padded(TEXTS, side, width, pad=0)


def measured(model, inputs, tokens, perturbation, plan=Grid(2), **options):  # noqa: B008
    return jostle.measure(model, inputs, tokens=tokens, perturbation=perturbation, plan=plan, seed=3, **options)


@pytest.fixture
def reads(monkeypatch):
    """The shapes (rows, tokens) of what causal models were given to read on from a prefix."""
    shapes, own = [], CausalTextModel.continue_from

    def continue_from(self, prefix, position, suffix, rows=None):
        shapes.append(tuple(suffix.shape[:2]))
        return own(self, prefix, position, suffix, rows)

    monkeypatch.setattr(CausalTextModel, "continue_from", continue_from)
    return shapes


def plainly(*arguments, **options):
    """The same measurement, in which whole texts are read."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PrefixReader, "group", lambda *_: None)
        return measured(*arguments, **options)


@pytest.mark.parametrize(("tokens", "perturbation"), VIEWS)
@pytest.mark.parametrize("name", CAUSAL)
def test_the_answers_are_those_of_whole_texts(name, tokens, perturbation, reads, monkeypatch):
    monkeypatch.setattr(prefixes, "_WORTH_IT", 9.0)  # wherever it can be used
    model, flips = small(name), []
    plans, sides, responses = (Grid(3), Until(half_width=0.2)), ("left", "right"), ("flip", "logit-change")
    for number, (plan, response) in enumerate(itertools.product(plans, responses)):
        side = sides[(number + number // 2) % 2]  # each with each plan and each response
        view = type(tokens)(**{**vars(tokens), "alignment": side})
        inputs = given(side) if number % 2 else given(side)["input_ids"]
        arguments = (model, inputs, view, perturbation, plan)
        expected = plainly(*arguments, response=response)
        assert not reads
        found = measured(*arguments, response=response)
        assert len(reads) > 1  # the first is a check
        reads.clear()
        rounding = 0 if response == "flip" else 1e-9
        assert found.per_input == pytest.approx(expected.per_input, rel=rounding, abs=rounding, nan_ok=True)
        assert found.profile.values == pytest.approx(expected.profile.values, rel=1e-9, nan_ok=True)
        assert found.profile.counts.tolist() == expected.profile.counts.tolist()
        assert (found.trials, found.passes, found.warnings) == (expected.trials, expected.passes, [])
        flips += [found.value] if response == "flip" else []
    assert 0.02 < np.mean(flips) < 0.98


@pytest.mark.parametrize(("module", "can"), [("embeddings.drop", True), ("blocks.0.attention_norm", False)])
def test_only_what_is_moved_before_the_first_layer_leaves_the_past_alone(module, can):
    model = small("text-decoder")
    assert can_continue(TokenFunction(model, Inputs(given(), Embeddings(module=module))), NOISE) == can
    assert not can_continue(TokenFunction(model, Inputs(with_a_gap(), Embeddings())), NOISE)
    assert not can_continue(TokenFunction(model, Inputs(given(), Embeddings(whole=True))), NOISE)


@pytest.mark.parametrize("name", CAUSAL)
def test_the_batch_has_no_influence(name, monkeypatch):
    model, runs = small(name), []
    for size, least, kept in ((128, 16, 2**24), (7, 16, 2**24), (128, 1, 2**10), (5, 3, 2**12)):
        monkeypatch.setattr(prefixes, "_LEAST_ROWS", least)
        monkeypatch.setattr(prefixes, "_MOST_KEPT", kept)
        runs.append(measured(model, given(), Embeddings(), NOISE, response="logit-change", batch_size=size))
    for run in runs[1:]:
        assert run.per_input.tolist() == pytest.approx(runs[0].per_input.tolist(), rel=1e-9)


@pytest.mark.parametrize("name", CAUSAL)
def test_over_all_tokens_about_half_is_read_and_hardly_any_padding(name, reads, monkeypatch):
    monkeypatch.setattr(
        evaluation, "padding_for_free", lambda width: 0
    )  # as for a wide model: tokens count, not batches
    lengths = np.random.Generator(np.random.PCG64(0)).integers(8, 40, 30).tolist()
    texts = padded([text + 3 for text in sentences(lengths)], pad=0)
    measured(small(name), texts, Embeddings(), NOISE, Grid(3))
    whole = 3 * sum(length**2 for length in lengths)
    needed = 3 * sum(length * (length + 1) // 2 for length in lengths)
    spent = sum(rows * tokens for rows, tokens in reads[1:])  # the first is a check
    assert needed <= spent < 1.06 * needed < 0.57 * whole
    assert np.mean([rows for rows, _ in reads]) > (18 if name == "text-decoder" else 30)


def test_models_that_read_otherwise_are_compared_with_those_that_do_not(reads, monkeypatch):
    monkeypatch.setattr(evaluation, "padding_for_free", lambda width: 0)  # as for a wide model
    models = {"encoder": small("text-encoder"), "lstm": small("text-lstm"), "bag": small("text-bag")}
    together = jostle.compare(models, given(), tokens=Embeddings(), perturbation=NOISE, plan=Grid(3), seed=3)
    assert len(reads) > 1  # the first is a check
    for name, model in models.items():
        alone = plainly(model, given(), Embeddings(), NOISE, Grid(3))
        assert together[name].per_input.tolist() == alone.per_input.tolist()


class Warm(TextLSTM):
    """Answers otherwise than its parts say."""

    def forward(self, input_ids, attention_mask=None):
        return super().forward(input_ids, attention_mask) * torch.tensor([1.0, 3.0])


def warm():
    return Warm(vocabulary=VOCABULARY + 3, dim=8, depth=1).double().eval()


def hooked():
    model = small("text-gru")
    model.register_forward_hook(lambda module, given, output: output.flip(1))
    return model


def with_a_gap():
    mapping = given()
    mapping["attention_mask"][3, 4] = 0
    return mapping


@pytest.mark.parametrize(
    ("model", "inputs", "tokens", "perturbation", "plan"),
    [
        (warm, given, Embeddings(), NOISE, Grid(3)),
        (hooked, given, Embeddings(), NOISE, Grid(3)),
        (lambda: small("text-lstm"), given, Words(), Deletion(), Grid(1)),
        (lambda: small("text-lstm"), with_a_gap, Embeddings(), NOISE, Grid(3)),
        (lambda: small("text-lstm"), given, Embeddings(), NOISE, Until(half_width=0.2)),
    ],
)
def test_where_it_does_not_hold_or_pay_whole_texts_are_read(model, inputs, tokens, perturbation, plan, reads):
    made, texts = model(), inputs()
    found = measured(made, texts, tokens, perturbation, plan)
    assert len(reads) <= 1  # the check
    expected = plainly(made, texts, tokens, perturbation, plan)
    assert found.per_input.tolist() == pytest.approx(expected.per_input.tolist(), nan_ok=True)
    assert found.passes == expected.passes
    assert found.trials in (expected.trials, sum(LENGTHS))
