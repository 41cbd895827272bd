"""The recurrent models against torch's layers on packed texts, and against the recurrences by hand."""

import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence

from jostle import models
from jostle.models import text_recurrent
from tests.models.test_text_create import small, texts

LAYERS = {"text-lstm": nn.LSTM, "text-gru": nn.GRU}


@pytest.mark.parametrize(("name", "size"), [("text-lstm", 14_974_210), ("text-gru", 14_447_874)])
def test_the_size_with_the_vocabulary_of_paper_1(name, size):
    """By hand: 4 gates for an LSTM, 3 for a GRU; the LSTM has the paper's size."""
    gates = 4 if name == "text-lstm" else 3
    expected = 50_265 * 256 + 512 + 4 * gates * (2 * 256 * 256 + 2 * 256) + (256 * 2 + 2)
    model = models.create(name, vocabulary=265)  # and 50,000 words more
    assert sum(weight.numel() for weight in model.parameters()) + 50_000 * 256 == expected == size
    assert all(weight.requires_grad for weight in model.parameters())


@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.parametrize("lengths", [(7, 6, 7), (12, 1, 2, 1), (5,)])
@pytest.mark.parametrize("side", ["left", "right"])
def test_torch_on_packed_texts(name, lengths, side):
    """The first batch is computed padded, the second packed; both are the state after the last word."""
    model = small(name)
    twin = LAYERS[name](8, 8, 2, batch_first=True)
    twin.load_state_dict(model.layers.state_dict())
    ids = texts(*lengths)
    vectors = model.embeddings.norm(model.embeddings.words.weight[ids])
    packed = pack_padded_sequence(vectors, torch.tensor(lengths), batch_first=True, enforce_sorted=False)
    state = twin(packed)[1]
    last = (state[0] if name == "text-lstm" else state)[-1]
    torch.testing.assert_close(model(texts(*lengths, side=side)), model.classifier(last), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", LAYERS)
def test_which_batches_are_packed(name, monkeypatch):
    model, packed = small(name), []
    monkeypatch.setattr(
        text_recurrent, "pack_padded_sequence", lambda *given, **named: packed.append(1) or pack(*given, **named)
    )
    pack = pack_padded_sequence
    model(texts(7, 6, 7))
    assert packed == []
    model(texts(12, 1, 2, 1))
    assert packed == [1]


def test_lstm_by_its_recurrence():
    model = small("text-lstm", depth=1)
    ids = texts(6)
    layer = model.layers
    hidden = cell = torch.zeros(8)
    for vector in model.embeddings.norm(model.embeddings.words.weight[ids[0]]):
        gates = layer.weight_ih_l0 @ vector + layer.bias_ih_l0 + layer.weight_hh_l0 @ hidden + layer.bias_hh_l0
        enter, forget, new, leave = gates.split(8)
        cell = forget.sigmoid() * cell + enter.sigmoid() * new.tanh()
        hidden = leave.sigmoid() * cell.tanh()
    torch.testing.assert_close(model.features(ids)[0], hidden, rtol=1e-10, atol=1e-12)


def test_gru_by_its_recurrence():
    model = small("text-gru", depth=1)
    ids = texts(6)
    layer, hidden = model.layers, torch.zeros(8)
    for vector in model.embeddings.norm(model.embeddings.words.weight[ids[0]]):
        reset, update, new = (layer.weight_ih_l0 @ vector + layer.bias_ih_l0).split(8)
        old_reset, old_update, old_new = (layer.weight_hh_l0 @ hidden + layer.bias_hh_l0).split(8)
        share = (update + old_update).sigmoid()
        hidden = (1 - share) * (new + (reset + old_reset).sigmoid() * old_new).tanh() + share * hidden
    torch.testing.assert_close(model.features(ids)[0], hidden, rtol=1e-10, atol=1e-12)
