"""Outputs of several encoders at once: the same function as ``BitEncoder``, in about a third of the time of a step.

* Before the first attention there are only 2 n different tokens, so queries, keys, values and scores are tables. A
  string selects rows of the scores and masks the columns of symbols that it does not contain. After the softmax, one
  matrix product with the table of values serves all strings.
* Where strings are long and tokens narrow, the softmax itself would take most of the time. There exp(score) times value
  is a table too, and numerators and denominators of all strings are its product with their bits.
* The last block is needed at the last bit only. So there is one query for each string, and as
  q . (K t) = (K^T q) . t, keys and values of the other tokens are not computed.

Every product takes all networks at once.
"""

from collections.abc import Mapping

import torch
from torch import Tensor
from torch.nn import functional

Weights = Mapping[str, Tensor]

_NARROW = 2  # strings longer than so many times the tokens' dim are gathered by sums
_FLOOR = -80.0  # of scores below the largest; exp of it is 2e-35, near the least of float32


def outputs(weights: Weights, bits: Tensor, heads: int, eps: float = 1e-5) -> Tensor:
    """The output of every network for each of its strings, (networks, batch).

    Arguments:
        weights: those of ``BitEncoder`` by name, each (networks, ...); at least two blocks, norms in all or none.
        bits: (networks, batch, tokens) of -1 and 1.
        heads: of attention.
        eps: of LayerNorm.
    """
    depth = 1 + max(int(name.split(".")[1]) for name in weights if name.startswith("blocks."))
    blocks = [_block(weights, place) for place in range(depth)]
    is_plus = bits > 0
    attended = _attended_first(blocks[0], weights, is_plus, heads)
    tokens = _after(blocks[0], _tokens(weights, is_plus), attended, eps)  # (networks, batch, tokens, dim)
    for block in blocks[1:-1]:
        tokens = _after(block, tokens, _attended(block, tokens, heads), eps)
    end = _after(blocks[-1], tokens[:, :, -1], _attended_last(blocks[-1], tokens, heads), eps)  # (networks, batch, dim)
    read = torch.bmm(end, weights["readout.weight"].mT).squeeze(2)
    return read + weights["readout.bias"]


def _block(weights: Weights, place: int) -> Weights:
    start = f"blocks.{place}."
    return {name.removeprefix(start): weight for name, weight in weights.items() if name.startswith(start)}


def _tokens(weights: Weights, is_plus: Tensor) -> Tensor:
    """Tokens before the first block, (networks, batch, tokens, dim)."""
    networks, batch, length = is_plus.shape
    shares = torch.stack([~is_plus, is_plus], dim=3).to(weights["symbols"].dtype)
    symbols = torch.bmm(shares.flatten(1, 2), weights["symbols"]).view(networks, batch, length, -1)
    positions = weights["positions"][:, None, :length].expand(-1, batch, -1, -1)
    return torch.cat([symbols, positions], dim=3)


def _attended_first(block: Weights, weights: Weights, is_plus: Tensor, heads: int) -> Tensor:
    """What attention adds to every token in the first block, (networks, batch, tokens, dim)."""
    networks, _, length = is_plus.shape
    symbols = weights["symbols"].unsqueeze(2).expand(-1, -1, length, -1)
    positions = weights["positions"][:, None, :length].expand(-1, 2, -1, -1)
    table = torch.cat([symbols, positions], dim=3).flatten(1, 2)  # (networks, 2 tokens, dim), those of -1 first
    query, key, value = (
        linear(table, block, f"attention.{name}").view(networks, 2 * length, heads, -1).transpose(1, 2)
        for name in ("to_query", "to_key", "to_value")
    )  # each (networks, heads, 2 tokens, width)
    scores = query @ key.mT * key.shape[3] ** -0.5  # (networks, heads, 2 tokens, 2 tokens)
    gather = _gather_by_sums if length > _NARROW * table.shape[2] else _gather_by_shares
    return linear(gather(scores, value, is_plus), block, "attention.to_out")


def _gather_by_shares(scores: Tensor, value: Tensor, is_plus: Tensor) -> Tensor:
    """Values weighed by the softmax over the symbols that a string has, (networks, batch, tokens, dim).

    Arguments:
        scores: of all pairs of tokens, those of -1 first, (networks, heads, 2 tokens, 2 tokens).
        value: of all tokens, (networks, heads, 2 tokens, width).
        is_plus: whether each token is 1, (networks, batch, tokens).
    """
    networks, batch, length = is_plus.shape
    heads = scores.shape[1]
    minus, plus = scores.view(networks, heads, 1, 2, length, -1).unbind(
        3
    )  # each (networks, heads, 1, tokens, 2 tokens)
    own = torch.where(is_plus[:, None, :, :, None], plus, minus)  # (networks, heads, batch, tokens, 2 tokens)
    is_absent = torch.cat([is_plus, ~is_plus], dim=2)[:, None, :, None]
    shares = own.masked_fill(is_absent, -torch.inf).softmax(dim=4)
    gathered = (shares.flatten(2, 3) @ value).view(networks, heads, batch, length, -1)
    return gathered.permute(0, 2, 3, 1, 4).flatten(3)


def _gather_by_sums(scores: Tensor, value: Tensor, is_plus: Tensor) -> Tensor:
    """The same as ``_gather_by_shares`` without a softmax for every string: a table of exp(score) value is summed."""
    networks, batch, length = is_plus.shape
    # The largest score is over both symbols and may be of an absent one; the floor keeps the other sums above 0.
    raised = (scores - scores.detach().amax(dim=3, keepdim=True)).clamp_min(_FLOOR).exp()
    weighed = torch.cat([value, torch.ones_like(value[..., :1])], dim=3)  # the last column sums the denominator
    rows = torch.einsum("nhij,nhjc->njihc", raised, weighed).flatten(2)  # (networks, 2 tokens, 2 tokens heads ...)
    has = torch.cat([~is_plus, is_plus], dim=2).to(rows.dtype)  # (networks, batch, 2 tokens)
    minus, plus = (has @ rows).view(networks, batch, 2, length, scores.shape[1], -1).unbind(2)
    own = torch.where(is_plus[..., None, None], plus, minus)  # (networks, batch, tokens, heads, width + 1)
    return (own[..., :-1] / own[..., -1:]).flatten(3)


def _attended(block: Weights, tokens: Tensor, heads: int) -> Tensor:
    """What attention adds to every token."""
    query, key, value = (
        linear(tokens, block, f"attention.{name}").view(*tokens.shape[:3], heads, -1).transpose(2, 3)
        for name in ("to_query", "to_key", "to_value")
    )  # each (networks, batch, heads, tokens, width)
    scores = query @ key.mT * key.shape[-1] ** -0.5
    return linear((scores.softmax(dim=-1) @ value).transpose(2, 3).flatten(3), block, "attention.to_out")


def _attended_last(block: Weights, tokens: Tensor, heads: int) -> Tensor:
    """What attention adds to the last token, (networks, batch, dim)."""
    networks, batch, _, dim = tokens.shape
    to_keys, to_values = (
        block[f"attention.{name}.weight"].view(networks, heads, -1, dim) for name in ("to_key", "to_value")
    )
    query = linear(tokens[:, :, -1], block, "attention.to_query").view(networks, batch, heads, -1)
    # The bias of the keys adds the same to all scores of a query, so it cancels in the softmax.
    seen = torch.einsum("nbhc,nhcd->nbhd", query, to_keys)
    scores = seen @ tokens.mT * query.shape[3] ** -0.5  # (networks, batch, heads, tokens)
    gathered = scores.softmax(dim=3) @ tokens  # (networks, batch, heads, dim)
    values = torch.einsum("nbhd,nhcd->nbhc", gathered, to_values).flatten(2)
    return linear(values + block["attention.to_value.bias"].unsqueeze(1), block, "attention.to_out")


def _after(block: Weights, tokens: Tensor, attended: Tensor, eps: float) -> Tensor:
    """The rest of a post-norm block."""
    mixed = _norm(tokens + attended, block, "attention_norm", eps)
    hidden = linear(mixed, block, "mlp.0").relu()
    return _norm(mixed + linear(hidden, block, "mlp.2"), block, "mlp_norm", eps)


def linear(tokens: Tensor, block: Weights, name: str) -> Tensor:
    """A layer of each network on its tokens, (networks, ..., inputs) -> (networks, ..., outputs)."""
    weight, bias = block[f"{name}.weight"], block[f"{name}.bias"]
    flat = tokens.reshape(len(tokens), -1, tokens.shape[-1])
    return torch.baddbmm(bias.unsqueeze(1), flat, weight.mT).view(*tokens.shape[:-1], -1)


def _norm(tokens: Tensor, block: Weights, name: str, eps: float) -> Tensor:
    if f"{name}.weight" not in block:  # an encoder without norms
        return tokens
    gain, shift = block[f"{name}.weight"], block[f"{name}.bias"]
    shape = (tokens.shape[-1],)
    if len(tokens) == 1:  # saves a pass over memory
        return functional.layer_norm(tokens, shape, gain[0], shift[0], eps)
    apart = (len(gain), *[1] * (tokens.ndim - 2), -1)
    return torch.addcmul(shift.view(apart), functional.layer_norm(tokens, shape, None, None, eps), gain.view(apart))
