"""How often models are right about inputs as they are, where a file of arrays holds labels too."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from jostle.base import specs
from jostle.report.measurement import percent
from jostle.tokens import VIEWS, Inputs, TokenFunction, TokenView
from jostle.tokens.text import padding_id

_LOOKED_AT = 500  # inputs that are asked about, at most


def accuracy_notes(
    models: Mapping[str, Callable[..., Any]],
    inputs: Any,
    labels: Tensor,
    *,
    tokens: TokenView | str,
    batch_size: int,
    device: str | None,
) -> list[str]:
    """A line for each model whose outputs are classes: on what share of the first inputs it is right.

    Arguments:
        models: by name.
        inputs: as the models take them, N of them.
        labels: (N,) the right classes, from 0.
        tokens: what a token is, which says which of several arrays are the inputs.
        batch_size, device: of the models.
    """
    view = specs.build(VIEWS, tokens, "tokens", TokenView)
    held = Inputs(inputs, view, None, padding_id(models.values()))
    count = min(len(held), _LOOKED_AT)
    step = max(batch_size, 1)
    blocks = np.array_split(np.arange(count), range(step, count, step))
    notes = []
    for name, model in models.items():
        function = TokenFunction(model, held, name, device)
        with function.evaluating():
            outputs = torch.cat([function(held.batch(block)) for block in blocks])  # (count, classes)
        if (
            outputs.dim() == 2
            and outputs.shape[1] > 1
            and 0 <= int(labels.min()) <= int(labels.max()) < outputs.shape[1]
        ):
            right = float((outputs.argmax(dim=1) == labels[:count]).double().mean())
            notes.append(f"{name} is right on {percent(right)} of the first {count:,} inputs")
    return notes
