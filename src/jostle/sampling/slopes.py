"""How steep the margin of each clean input is along each of its tokens: the norm of its gradient there.

A token with a steep margin needs little noise to flip the prediction. So margin / slope ranks cells (input, token) by
how soon they flip, to the first order, whatever the noise. It is used to seek flips where they are likely, see
``adaptive``, and has no influence on results: where flips are not where gradients say, draws are wasted, and no more.
"""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from jostle.base.interrupts import Uninterrupted
from jostle.responses import Response
from jostle.sampling.plans import Batching
from jostle.tokens import Batch, TokenFunction
from jostle.tokens.sites import Edit
from jostle.tokens.views import places

PASSES = 3  # that a gradient takes: forward, and about twice as long back; measured 2.4 to 2.8, an LSTM 4.4
_MOST_CELLS = 2**23
_AT_ONCE = 64  # inputs: a graph keeps all that was computed

Floats = NDArray[np.float32]


def can_have_slopes(function: TokenFunction) -> bool:
    """Whether slopes of this model may exist and are cheap to keep; only asking for them tells."""
    inputs = function.inputs
    is_plain = inputs.items is None and inputs.moving is None and inputs.units is None
    is_real = function.site is not None or inputs.batch(np.zeros(1, dtype=np.int64))[inputs.key].is_floating_point()
    return is_plain and is_real and len(inputs) * inputs.num_tokens <= _MOST_CELLS


def slopes_of(function: TokenFunction, response: Response, batching: Batching) -> Floats | None:
    """(N, tokens) the norm of the gradient of each clean margin; None if the model cannot be differentiated.

    The passes count, those back as well.
    """
    inputs = function.inputs
    found = np.zeros((len(inputs), inputs.num_tokens), dtype=np.float32)
    order, size = batching.order(np.arange(len(inputs))), min(_AT_ONCE, batching.batch_size)
    for some in np.split(order, range(size, len(order), size)):
        try:
            with torch.inference_mode(mode=False), torch.enable_grad():
                norms, first = _norms(function, response, batching, some)
        except Exception:  # a model may be anything: then margins alone must do
            return None
        if norms is None or not norms.isfinite().all():
            return None
        found[some, first : first + norms.shape[1]] = norms.numpy()
    return found


def _norms(
    function: TokenFunction, response: Response, batching: Batching, indices: NDArray[np.int64]
) -> tuple[Tensor | None, int]:
    """(inputs, columns) the norms of the gradients of a batch, and the first of these columns."""
    held, first = batching.batch(indices)
    batch = {name: tensor.clone() for name, tensor in held.items()}  # in inference mode there are no graphs
    inputs, leaves = function.inputs, list[Tensor]()
    if function.site is None:
        leaves.append(batch[inputs.key].requires_grad_())
    outputs = _attached(function, batch, None if function.site is None else _watched(leaves))
    margins = response.margins(outputs)
    function.passes += (PASSES - 1) * len(indices)
    if margins is None or len(leaves) != 1:
        return None, 0
    with Uninterrupted():
        (gradient,) = torch.autograd.grad(margins.sum(), leaves[0])
    if function.site is None:
        gradient = gradient.flatten(1)[:, places(inputs.view, inputs.shape)]
    return gradient.float().norm(dim=2).cpu(), first


def _watched(leaves: list[Tensor]) -> Edit:
    """An edit that changes nothing, and keeps what it was given as a leaf of a graph."""

    def edit(embedded: Tensor) -> Tensor:
        leaves.append(embedded.detach().clone().requires_grad_())
        return leaves[-1]

    return edit


def _attached(function: TokenFunction, batch: Batch, edit: Edit | None) -> Tensor:
    """The outputs for a batch, attached to the graph of what entered the model."""
    answers = list[Any]()

    def through(*given: Any, **named: Any) -> Any:
        answers.append(function.model(*given, **named))
        return answers[-1]

    function(batch, edit, through)
    return function.read_outputs(answers[-1], batch)
