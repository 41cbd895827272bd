"""Texts as token ids: which ids are padding, and whether the ids fit a model's vocabulary and its longest text."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from jostle.base.errors import UsageError
from jostle.tokens.padding import Padding
from jostle.tokens.sites import word_embedding
from jostle.tokens.text_views import SPECIAL_KEY, TextView

_POSITION_TABLES = ("position_embeddings", "wpe", "embed_positions")


def padding_id(models: Iterable[Any]) -> int | None:
    """The id of padding according to the models' attribute ``pad``; None if no model has one."""
    found = {pad for pad in (_whole(getattr(model, "pad", None)) for model in models) if pad is not None}
    if len(found) > 1:
        raise UsageError(f"the models differ in which token id is padding, {sorted(found)}: give an attention_mask")
    return next(iter(found), None)


def real_tokens(ids: Tensor, own: NDArray[np.bool_] | None, pad: int | None) -> tuple[Padding, NDArray[np.bool_]]:
    """Where texts begin and end, and (N, tokens) true for tokens that are not padding.

    Arguments:
        ids: (N, tokens) whole numbers.
        own: (N, tokens) the attention mask that came with them.
        pad: the id that is padding, where there is no mask.
    """
    real = own
    if real is None:
        real = np.ones(tuple(ids.shape), dtype=bool) if pad is None else (ids != pad).cpu().numpy()
    return Padding.of(real), real


def check_ids(ids: Tensor | None, view: TextView) -> Tensor:
    """``ids`` if they are token ids (N, tokens)."""
    if ids is None or ids.dim() != 2 or ids.is_floating_point() or ids.is_complex() or ids.dtype == torch.bool:
        found = "nothing" if ids is None else f"{tuple(ids.shape)} of {str(ids.dtype).removeprefix('torch.')}"
        raise UsageError(f"tokens={view.describe()} needs token ids, whole numbers of shape (N, tokens), not {found}")
    return ids


def special_missing(view: TextView) -> UsageError:
    """The error for a view that needs to know the special tokens where nothing marks them."""
    return UsageError(
        f"tokens={view.describe()} needs an entry {SPECIAL_KEY!r} of the inputs: call the tokenizer with "
        "return_special_tokens_mask=True, or give their ids to the view: special_ids=(2, 3)"
    )


def features(answer: Any, real: Tensor) -> Tensor:
    """One vector for each text, (batch, dim), from the answer of an encoder without a classifier.

    The output of its pooler if it has one, else the mean of the last layer over the tokens that are not padding, which
    are true in ``real`` (batch, tokens).
    """
    pooled = getattr(answer, "pooler_output", None)
    if pooled is not None:
        return pooled  # type: ignore[no-any-return]
    weights = real[:, :, None].to(answer.last_hidden_state.dtype)
    mean: Tensor = (answer.last_hidden_state * weights).sum(dim=1) / weights.sum(dim=1)
    return mean


def check_fits(model: Any, ids: Tensor, padding: Padding, has_mask: bool, name: str) -> None:
    """Raise if the model has no word for an id, no position for a token, or cannot know the padding.

    Arguments:
        model: its tables of words and positions are looked at, if they are known.
        ids: (N, tokens) all token ids, with their ``padding``.
        has_mask: whether they come with a mask, or the model knows its padding id.
        name: how messages call the model.
    """
    low, high = int(ids.min()), int(ids.max())
    what = f"the token ids go from {low} to {high}"
    check_words(model, low, high, what, name, "were the texts tokenised for another model?")
    given = configured_padding(model)
    if not has_mask and given is not None and bool((ids == given).any()):
        raise UsageError(
            f"the inputs hold {name}'s padding id {given} and no attention_mask: give a mapping with both, as "
            "tokenizers do"
        )
    for length, places in _positions(model, padding):
        if length > places:
            raise UsageError(
                f"the inputs have up to {length} tokens with their padding, {name} has {places} positions: cut them, "
                f"e.g. with truncation=True, max_length={places} of the tokenizer, and pad to the longest"
            )


def check_words(model: Any, low: int, high: int, what: str, name: str, remedy: str) -> None:
    """Raise if the model has no word for an id from ``low`` to ``high``.

    Arguments:
        model: its table of words is looked at, if it is known.
        low, high: the smallest and the largest id.
        what: the beginning of the message: where the ids are.
        name: how messages call the model.
        remedy: the end of the message: what to do; ``{words}`` becomes the number of words.
    """
    words = word_embedding(model)
    if isinstance(words, nn.Embedding) and not 0 <= low <= high < words.num_embeddings:
        known = f"{what}, but {name} has words 0 to {words.num_embeddings - 1}"
        raise UsageError(f"{known}: {remedy.format(words=words.num_embeddings)}")


def _positions(model: Any, padding: Padding) -> Iterable[tuple[int, int]]:
    """(positions needed, positions there) for each table of positions in a model."""
    modules = model.named_modules() if isinstance(model, nn.Module) else ()
    for path, module in modules:
        if isinstance(module, nn.Embedding) and path.rpartition(".")[2] in _POSITION_TABLES:
            if module.padding_idx is not None:  # as in RoBERTa: only real tokens count, and from padding_idx + 1
                yield int(padding.lengths.max()), module.num_embeddings - module.padding_idx - 1
            else:
                yield padding.width, module.num_embeddings - int(getattr(module, "offset", 0))


def configured_padding(model: Any) -> int | None:
    """The id of padding according to the configuration of a model of transformers, if it has one."""
    return _whole(getattr(getattr(model, "config", None), "pad_token_id", None))


def _whole(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
