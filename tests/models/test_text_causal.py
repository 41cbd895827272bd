"""Models that read in order: the future has no influence, and a prefix read once gives the same logits."""

import pytest
import torch

from jostle import models
from jostle.base.errors import UsageError
from jostle.models.text_causal import CausalTextModel, align
from tests.models.test_text_create import TEXT_EXAMPLES, small, texts

CAUSAL = ["text-decoder", "text-gru", "text-lstm", "text-ssm"]
every_causal = pytest.mark.parametrize("name", CAUSAL)


def make(name):
    return small(name, **TEXT_EXAMPLES[name][0])


def normal(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def test_the_list_is_complete():
    classes = {name: models.TEXT_MODELS.get(name) for name in models.names("text")}
    assert [name for name, each in classes.items() if issubclass(each, CausalTextModel)] == CAUSAL


@every_causal
def test_the_future_has_no_influence(name):
    """What is remembered before a token, and what is read off at one, do not change with later tokens."""
    model, embedded = make(name), normal(2, 7, 8)
    changed = embedded.clone()
    changed[:, 4] += 1
    before, after = model.prefix(embedded), model.prefix(changed)
    for position in range(1, 7):
        pairs = list(zip(before.pasts[position], after.pasts[position], strict=True))
        assert all(torch.equal(old, new) for old, new in pairs) == (position <= 4)
    for length in range(1, 8):
        old, new = (model.read(each, torch.full((2,), length), None)[0] for each in (embedded, changed))
        assert torch.equal(old, new) == (length <= 4)


@every_causal
@pytest.mark.parametrize("side", ["left", "right"])
def test_a_changed_token_at_every_position(name, side):
    """The whole text again with one token changed, against going on from the prefix."""
    model, ids = make(name), texts(5, 3, 7, 1, side=side)
    embedded, mask = model.embeddings(ids), ids != 0
    prefix = model.prefix(embedded, mask.long())
    tokens, lengths = align(embedded, mask)
    assert torch.equal(prefix.lengths, torch.tensor([5, 3, 7, 1]))
    assert len(prefix.pasts) == 7
    for position in range(7):
        rows = (lengths > position).nonzero().flatten()
        changed = tokens.clone()
        changed[:, position] += normal(4, 8, seed=position)
        plain = model.classifier(model.read(changed, lengths, None)[0])[rows]
        found = model.continue_from(prefix, position, changed[rows, position:], rows)
        torch.testing.assert_close(found, plain, rtol=1e-10, atol=1e-12)
        assert not torch.allclose(found, model(ids)[rows])


@every_causal
def test_draws_share_a_prefix(name):
    """Rows may repeat and come in any order; without a change the logits are those of the model."""
    model, ids = make(name), texts(6, 4)
    embedded = model.embeddings(ids)
    prefix, rows = model.prefix(embedded, ids != 0), torch.tensor([1, 0, 0, 1, 1])
    for position in range(4):
        found = model.continue_from(prefix, position, embedded[rows, position:], rows)
        torch.testing.assert_close(found, model(ids)[rows], rtol=1e-10, atol=1e-12)
        found = model.continue_from(prefix, position, embedded[:, position:])
        torch.testing.assert_close(found, model(ids), rtol=1e-10, atol=1e-12)


@every_causal
def test_only_the_suffix_is_read(name, monkeypatch):
    model, embedded, seen = make(name), normal(2, 7, 8), []
    prefix, read = model.prefix(embedded), model.read
    monkeypatch.setattr(model, "read", lambda tokens, *rest: (seen.append(tokens.shape[1]), read(tokens, *rest))[1])
    model.continue_from(prefix, 5, embedded[:, 5:])
    assert seen == [2]


@every_causal
def test_gradients_flow_through_a_prefix(name):
    model = make(name)
    embedded = normal(1, 5, 8).requires_grad_()
    model.continue_from(model.prefix(embedded), 3, embedded[:, 3:]).sum().backward()
    again = embedded.detach().clone().requires_grad_()
    model.classifier(model.encode(again, torch.ones(1, 5, dtype=torch.bool))).sum().backward()
    torch.testing.assert_close(embedded.grad, again.grad, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(
    ("position", "columns", "rows", "message"),
    [
        (7, 1, None, "position must be from 0 to 6, before a token, got 7"),
        (-1, 7, None, "position must be from 0 to 6, before a token, got -1"),
        (2, 4, None, "from position 2 on of texts of 4 to 7 tokens, at least one of each text, got 4 columns"),
        (5, 2, None, "from position 5 on of texts of 4 to 7 tokens, at least one of each text, got 2 columns"),
        (2, 5, torch.tensor([0]), "suffix must have a row for each of the 1 texts, got 2"),
    ],
)
def test_suffixes_that_do_not_fit(position, columns, rows, message):
    model, ids = make("text-gru"), texts(7, 4)
    prefix = model.prefix(model.embeddings(ids), ids != 0)
    with pytest.raises(UsageError, match=message):
        model.continue_from(prefix, position, normal(2, columns, 8), rows)


def test_aligned_keeps_order_and_drops_padding():
    tokens = torch.arange(1, 11).reshape(2, 5, 1) * torch.ones(2)
    mask = torch.tensor([[0, 1, 0, 1, 1], [1, 0, 0, 0, 1]]).bool()
    found, lengths = align(tokens, mask)
    assert lengths.tolist() == [3, 2]
    assert found.shape == (2, 3, 2)
    assert found[0, :, 0].tolist() == [2, 4, 5]
    assert found[1, :2, 1].tolist() == [6, 10]
    right = torch.tensor([[1, 1, 1, 0, 0], [1, 0, 0, 0, 0]]).bool()
    assert torch.equal(align(tokens, right)[0], tokens[:, :3])


@every_causal
@pytest.mark.parametrize("side", ["left", "right"])
def test_every_text_may_go_on_from_its_own_position(name, side):
    model, ids = make(name), texts(5, 3, 7, 1, side=side)
    embedded, mask = model.embeddings(ids), ids != 0
    prefix = model.prefix(embedded, mask.long())
    tokens, lengths = align(embedded, mask)
    rows = torch.tensor([2, 0, 0, 1, 3, 2])
    for positions in ([6, 4, 0, 1, 0, 3], [0, 0, 0, 0, 0, 0], [4, 2, 2, 0, 0, 4], [2, 2, 2, 2, 0, 2]):
        kept = torch.tensor(positions)
        changed = tokens[rows].clone()
        changed[torch.arange(6), kept] += normal(6, 8, seed=1)
        suffix = torch.stack([torch.cat([row[p:], normal(p, 8)]) for row, p in zip(changed, positions, strict=True)])
        plain = model.classifier(model.read(changed, lengths[rows], None)[0])
        found = model.continue_from(prefix, kept, suffix, rows)
        torch.testing.assert_close(found, plain, rtol=1e-10, atol=1e-12)
        assert not torch.allclose(found, model(ids)[rows])


@every_causal
def test_a_prefix_is_what_reading_token_by_token_remembers(name):
    """However a family makes it, from one pass or layer by layer."""
    model, tokens = make(name), normal(3, 6, 8)
    pasts, past = model.prefix(tokens).pasts, None
    for position in range(5):
        past = model.read(tokens[:, position : position + 1], torch.ones(3, dtype=torch.int64), past)[1]
        for found, expected in zip(pasts[position + 1], past, strict=True):
            torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-12)


def test_a_wrong_position_among_right_ones_is_one_clear_line():
    model = make("text-gru")
    prefix = model.prefix(normal(2, 3, 8))
    with pytest.raises(UsageError, match="position must be from 0 to 2, before a token, got 3"):
        model.continue_from(prefix, torch.tensor([0, 3]), normal(2, 3, 8))
