"""The mean loss on a full batch and its gradient, for all networks at once.

From the inputs of the neurons to the loss the gradient is written out by hand, part by part. Most of the arithmetic is
there, three matrix products, and autograd would keep and fill several tensors of the size of the neurons.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from jostle_papers.p2403_06925.grokking.designs import GrokkingDesign
from jostle_papers.p2403_06925.grokking.passes import (
    Pairs,
    cross_entropy_,
    gather_rows,
    neurons_,
    parts,
    past_neurons,
    read,
    scores_of,
    shares_of,
)
from jostle_papers.p2403_06925.grokking.tables import Tables, tables
from jostle_papers.stacked.layout import Layout


def loss_and_gradient(rows: Tensor, pairs: Pairs, layout: Layout, design: GrokkingDesign, gradient: Tensor) -> Tensor:
    """The mean loss of each network, (networks,); its gradient is written into ``gradient``.

    Arguments:
        rows: weights, (networks, columns).
        pairs: those that each network is trained on.
        layout, design: of these networks.
        gradient: like ``rows``.
    """
    weights = {name: view.detach().requires_grad_() for name, view in layout.views(rows).items()}
    with torch.enable_grad():
        made = tables(weights, design)
        inputs = gather_rows(made, pairs, shares_of(scores_of(made, pairs)))
    with torch.no_grad():
        back = inputs.detach()  # the same memory: inputs are not needed once their gradient is there
        loss, start, outer, bias = _backward_(made, back, pairs.labels)
    found: Sequence[Tensor | None] = torch.autograd.grad(
        [inputs, made.start, made.outer, made.bias],
        list(weights.values()),
        grad_outputs=[back, start, outer, bias],
        allow_unused=True,
    )
    for view, part in zip(layout.views(gradient).values(), found, strict=True):
        if part is None:
            view.zero_()
        else:
            view.copy_(part)
    return loss


def _backward_(made: Tables, inputs: Tensor, labels: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The mean loss and its gradients by ``start``, ``outer`` and ``bias``; that by ``inputs`` overwrites them."""
    networks, count, _ = inputs.shape
    loss = inputs.new_zeros(networks)
    start, outer, bias = torch.zeros_like(made.start), torch.zeros_like(made.outer), torch.zeros_like(made.bias)
    for rows in parts(count, networks):
        some = inputs[:, rows]
        hidden = neurons_(made, some)
        losses, slope = cross_entropy_(read(made, hidden, some), labels[:, rows])  # slope: (networks, pairs, tokens)
        loss += losses.sum(dim=1)
        slope.div_(count)
        outer.baddbmm_(hidden.mT, slope)
        bias += slope.sum(dim=1, keepdim=True)
        hidden.sign_().mul_(torch.bmm(slope, made.outer.mT))  # 0 or 1, a neuron being at least 0
        past = past_neurons(made, some)
        if past is not None:
            past.copy_(slope)
        start += some.sum(dim=1, keepdim=True)
    return loss / count, start, outer, bias
