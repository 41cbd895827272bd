"""A probe in the training of a network that reads text."""

import pytest
import torch

import jostle
from jostle import Deletion, Embeddings, GaussianNoise, Grid, Probe, UniformToken, Words
from jostle.base.errors import UsageError
from tests.probe.toys import everything, same

WORDS, LENGTHS = 30, [3, 9, 4, 7, 5, 6, 8, 5]


def texts(count=24):
    generator = torch.Generator().manual_seed(0)
    ids = torch.randint(4, WORDS, (count, 9), generator=generator)
    lengths = torch.tensor(LENGTHS * (count // len(LENGTHS)))
    return ids * (torch.arange(9) < lengths[:, None]), (ids[:, 0] > 15).long()


def network(name="text-lstm"):
    sizes = {"heads": 2, "mlp_dim": 16} if name == "text-decoder" else {}
    return jostle.models.create(name, vocabulary=WORDS, dim=8, depth=2, dropout=0.2, seed=0, **sizes).float()


def train(model, probe=None, steps=6):
    ids, labels = texts()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    torch.manual_seed(1)
    model.train()
    for step in range(steps):
        if probe is not None:
            probe(model, step)
        rows = torch.randperm(len(ids))[:8]
        loss = torch.nn.functional.cross_entropy(model(ids[rows]), labels[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return optimizer


def mapping(ids):
    return {"input_ids": ids, "attention_mask": (ids != 0).long()}


@pytest.mark.parametrize(
    ("name", "tokens", "perturbation"),
    [
        ("text-lstm", Embeddings(), GaussianNoise(3.0)),
        ("text-lstm", Words(), UniformToken(torch.arange(4, WORDS))),
        ("text-lstm", Words(), Deletion()),
        ("text-decoder", Embeddings(module="embeddings.words"), GaussianNoise(3.0)),
        ("text-decoder", Embeddings(whole=True), GaussianNoise(1.0)),
    ],
)
def test_training_is_bit_for_bit_what_it_was_and_rows_are_what_is_measured(name, tokens, perturbation):
    ids, labels = texts()
    plain, watched = network(name), network(name)
    without = everything(plain, train(plain))
    choices = {"tokens": tokens, "perturbation": perturbation, "plan": Grid(2)}
    probe = Probe(ids[:8], labels=labels[:8], every=2, share=None, **choices)
    assert same(without, everything(watched, train(watched, probe)))
    last = probe.measure(watched, 6)
    found = jostle.measure(watched.eval(), ids[:8], **choices)
    assert (last["sensitivity"], last["low"], last["high"]) == (found.value, found.low, found.high)
    with torch.no_grad():
        assert last["accuracy"] == pytest.approx(float((watched(ids[:8]).argmax(dim=1) == labels[:8]).double().mean()))
    assert probe.history["step"].tolist() == [0, 2, 4, 6]
    assert len(set(probe.history["weight_norm"])) == 4


def test_a_mask_or_the_padding_of_the_model_are_the_same():
    ids, _ = texts()
    model, choices = network().eval(), {"tokens": Embeddings(), "perturbation": GaussianNoise(3.0), "plan": Grid(2)}
    rows = [Probe(inputs, share=None, **choices).measure(model, 0) for inputs in (ids, mapping(ids))]
    assert rows[0] == rows[1]


def test_what_does_not_fit_is_one_line_at_the_first_measurement():
    probe = Probe(texts()[0], tokens=Words(), perturbation=GaussianNoise(1.0))
    with pytest.raises(UsageError, match="needs real-valued tokens"):
        probe(network(), 0)
    with pytest.raises(UsageError, match="has no embeddings to jostle"):
        Probe(texts()[0], tokens=Embeddings(), perturbation=GaussianNoise(1.0))(lambda ids: ids.double(), 0)
