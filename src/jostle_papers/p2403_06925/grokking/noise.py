"""Sensitivity to noise in the embeddings of the two numbers: together, as paper 1 measures it, and one at a time."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from jostle.base import checks
from jostle.base.errors import UsageError
from jostle.base.randomness import Stream
from jostle.perturbations import normals
from jostle_papers.p2403_06925.grokking.designs import GrokkingDesign
from jostle_papers.p2403_06925.grokking.passes import Pairs, gather_rows, logits_from_, parts, scores_of, shares_of
from jostle_papers.p2403_06925.grokking.tables import Tables, Weights, attention

TOGETHER = (True, True)
ALONE = ((True, False), (False, True))


@dataclass
class EmbeddingNoise:
    """Gaussian noise for both numbers of some pairs of several networks, the same at every epoch.

    Arguments:
        values: (networks, draws, count, 2, dim), of standard deviation ``std``.
        std: of each number of an embedding.
    """

    values: Tensor
    std: float

    @classmethod
    def of(cls, rows: Tensor, seeds: tuple[int, ...], like: Tensor, std: float, draws: int = 1) -> "EmbeddingNoise":
        """The noise of some pairs: a function of seed, pair, place and draw.

        It is that of ``jostle.measure`` with the same seed, all pairs as inputs and ``GaussianNoise(std)``. It is the
        same at every epoch, so differences between epochs vary less than with fresh noise.

        Arguments:
            rows: pairs of each network, (networks, count), as rows of the task.
            seeds: one for each network.
            like: an embedding (..., dim), for its size and type.
            std: of the noise.
            draws: number of draws for each pair.
        """
        checks.number("std", std, least=0)
        checks.sizes(draws=draws)
        if len(rows) != len(seeds):
            raise UsageError(f"noise for {len(rows)} networks needs one seed for each, got {len(seeds)}")
        count, dim = rows.shape[1], like.shape[-1]
        values = torch.empty(len(seeds), draws, count, 2, dim, dtype=like.dtype)
        for network, seed in enumerate(seeds):
            stream, inputs = Stream(seed, "noise"), rows[network].numpy()
            for draw in range(draws):
                for place in range(2):
                    numbers = stream.uniforms(inputs, np.full(count, place), np.full(count, draw), size=dim)
                    values[network, draw, :, place] = std * normals(numbers, values)
        return cls(values, std)


@torch.no_grad()
def predictions(tables: Tables, weights: Weights, design: GrokkingDesign, pairs: Pairs, noise: Tensor) -> Tensor:
    """The predicted answers to pairs under noise, (networks, count); noise 0 changes nothing, bit for bit.

    Noise adds to the scores of a number and to its value. The scores change the shares. The noise in the values is
    weighted with the shares and multiplied through to the neurons, in addition to the rows of the tables.

    Arguments:
        tables, weights, design: of the networks.
        pairs: of each network.
        noise: (networks, count, 2, dim).
    """
    parts_of = attention(weights, design)
    heads = design.heads
    networks, count, _, dim = noise.shape
    moved = noise.reshape(networks, -1, dim)
    scores = scores_of(tables, pairs) + (moved @ parts_of.keys).view(networks, count, 2, heads).transpose(2, 3)
    shares = shares_of(scores)  # (networks, count, heads, 2)
    inputs = gather_rows(tables, pairs, shares)
    for rows in parts(count, networks):
        values = noise[:, rows].reshape(networks, -1, dim) @ parts_of.values
        by_head = values.view(networks, -1, 2, heads, dim // heads)
        weight = shares[:, rows].transpose(2, 3).unsqueeze(4)  # (networks, some, 2, heads, 1)
        mixed = (by_head * weight).sum(dim=2).flatten(2)
        inputs[:, rows] += mixed @ parts_of.through
    return logits_from_(tables, inputs).argmax(dim=2)


@torch.no_grad()
def flip_rates(
    tables: Tables, weights: Weights, design: GrokkingDesign, pairs: Pairs, noise: EmbeddingNoise
) -> tuple[Tensor, Tensor]:
    """How often noise in both numbers changes the prediction, and how often noise in one of them, each (networks,).

    The code released with paper 1 (2403.06925) calls the first one sensitivity, on training pairs, with std 0.1 and one
    draw: both numbers count as one token, which is not Eq. 2. The second is Eq. 2 with the two numbers as tokens (T is
    2; "=" is the same in every input and gets no noise): the mean over places of the share of changed predictions.

    Arguments:
        tables, weights, design: of the networks.
        pairs: of each network, those of ``noise``.
        noise: added to the embeddings.
    """
    clean = predictions(tables, weights, design, pairs, torch.zeros_like(noise.values[:, 0]))
    together: list[Tensor] = []
    alone: list[Tensor] = []
    for draw in range(noise.values.shape[1]):
        values = noise.values[:, draw]  # (networks, count, 2, dim)
        for places, rates in [(TOGETHER, together), *((one, alone) for one in ALONE)]:
            chosen = values * torch.tensor(places).view(2, 1)
            changed = predictions(tables, weights, design, pairs, chosen) != clean
            rates.append(changed.double().mean(dim=1))
    return torch.stack(together).mean(dim=0), torch.stack(alone).mean(dim=0)
