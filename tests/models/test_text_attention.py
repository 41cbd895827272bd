import math

import pytest
import torch

from jostle.base.errors import UsageError
from jostle.models.text_attention import TextAttention

BATCH, HEADS, QUERIES, KEYS, WIDTH = 2, 2, 3, 4, 5


def normal(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def weight(kind, query, key):
    """The weight of one key before any normalisation, number by number."""
    score = sum(float(a) * float(b) for a, b in zip(query, key, strict=True)) / math.sqrt(len(query))
    if kind == "softmax":
        return math.exp(score)
    if kind == "relu":
        return max(score, 0.0)
    if kind == "uniform":
        return 1.0
    phi = [[x + 1 if x > 0 else math.exp(x) for x in vector.tolist()] for vector in (query, key)]
    return sum(a * b for a, b in zip(*phi, strict=True))


@pytest.mark.parametrize("is_masked", [False, True])
@pytest.mark.parametrize(
    ("kind", "normalise"), [("softmax", False), ("relu", False), ("relu", True), ("linear", False), ("uniform", False)]
)
def test_every_kind_by_its_formula(kind, normalise, is_masked):
    """Linear attention here by all pairs of tokens; in the code without them."""
    attention = TextAttention(HEADS * WIDTH, HEADS, kind=kind, normalise=normalise).eval()
    q, k, v = (normal(BATCH, HEADS, count, WIDTH, seed=count) for count in (QUERIES, KEYS, KEYS + 1))
    v = v[..., :KEYS, :]
    seen = torch.tensor([[1, 1, 1, 1], [0, 1, 1, 0]]).bool() if is_masked else torch.ones(BATCH, KEYS).bool()
    found = attention.mix(q, k, v, seen[:, None, None] if is_masked else None)
    for example in range(BATCH):
        for head in range(HEADS):
            for query in range(QUERIES):
                keys = seen[example].nonzero().flatten().tolist()
                weights = [weight(kind, q[example, head, query], k[example, head, key]) for key in keys]
                total = sum(weights) if kind != "relu" else len(keys) if normalise else 1.0
                expected = sum(w / total * v[example, head, key] for w, key in zip(weights, keys, strict=True))
                torch.testing.assert_close(found[example, head, query], torch.as_tensor(expected).expand(WIDTH))


@pytest.mark.parametrize("kind", ["softmax", "relu"])
def test_each_query_its_own_keys(kind):
    attention = TextAttention(8, 2, kind=kind, normalise=kind == "relu").eval()
    tokens = normal(1, 4, 8)
    keys, values = attention.keys_values(tokens)
    visible = torch.ones(4, 4).tril().bool()
    found = attention(tokens, keys, values, visible)
    for query in range(4):
        alone = attention(tokens[:, query : query + 1], keys[:, :, : query + 1], values[:, :, : query + 1], None)
        torch.testing.assert_close(found[:, query : query + 1], alone)


def test_heads_are_blocks_of_the_projections():
    attention = TextAttention(6, 3).eval()
    tokens = normal(2, 4, 6)
    queries = tokens @ attention.to_queries.weight.T + attention.to_queries.bias
    both = tokens @ attention.to_keys_values.weight.T + attention.to_keys_values.bias
    mixed = []
    for head in range(3):
        columns = slice(2 * head, 2 * head + 2)
        scores = queries[..., columns] @ both[..., :6][..., columns].mT / math.sqrt(2)
        mixed.append(scores.softmax(dim=-1) @ both[..., 6:][..., columns])
    expected = torch.cat(mixed, dim=-1) @ attention.to_out.weight.T + attention.to_out.bias
    torch.testing.assert_close(attention(tokens, *attention.keys_values(tokens), None), expected)


@pytest.mark.parametrize("kind", ["softmax", "relu"])
def test_dropout_of_attention_weights_in_training(kind):
    """Every value is 1, so an output is a sum of kept weights, each scaled by 1 / (1 - 0.25)."""
    attention = TextAttention(2, 1, kind=kind, dropout=0.25)
    q = k = torch.ones(1, 1, 4000, 2)
    outputs = attention.mix(q[:, :, :1], k, torch.ones_like(k), None)[0, 0, 0]
    full = attention.eval().mix(q[:, :, :1], k, torch.ones_like(k), None)[0, 0, 0]
    kept = float(outputs[0] / full[0]) * 0.75
    assert abs(kept - 0.75) < 4 * math.sqrt(0.75 * 0.25 / 4000)
    assert kept != 0.75


def test_linear_attention_far_below_zero_is_finite():
    attention = TextAttention(2, 1, kind="linear").float()
    far = torch.full((1, 1, 3, 2), -200.0, dtype=torch.float32)
    assert attention.mix(far, far, torch.ones_like(far), None).isfinite().all()


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ({"dim": 6, "heads": 4}, "dim=6 must be a multiple of heads=4"),
        ({"dim": 4, "heads": 4, "kind": "relus"}, r"unknown attention 'relus'; did you mean relu\?"),
        ({"dim": 4, "heads": 4, "kind": "linear", "normalise": True}, "normalise=True is for attention='relu', got"),
    ],
)
def test_sizes_that_do_not_go_together(sizes, message):
    with pytest.raises(UsageError, match=message):
        TextAttention(**sizes)


def test_shows_its_kind():
    assert "heads=2, kind='relu', normalise=True" in repr(TextAttention(4, 2, kind="relu", normalise=True))
