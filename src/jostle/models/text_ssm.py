"""State-space models of texts: a recurrence that forgets selectively, Gu and Dao 2023, "Mamba" (2312.00752)."""

import itertools
import math

import torch
from torch import Tensor, nn

from jostle.base import checks
from jostle.models import register_text
from jostle.models.norms import Norms
from jostle.models.ssm import SelectiveStateSpace, scan_from
from jostle.models.text_causal import CausalTextModel, Past
from jostle.models.text_model import TokenEmbedding, pick


@register_text("text-ssm")
class TextStateSpace(CausalTextModel):
    """Words -> LayerNorm -> ``depth`` selective state-space blocks -> last real token -> LayerNorm -> logits.

    State, expansion and kernel are Mamba's, width and depth those of the other text models. Not part of paper 1.

    Differs from Mamba: LayerNorm instead of RMSNorm, and one on the embeddings, as in ``text-lstm``, so that noise of a
    given std means the same; dropout; torch's defaults for the weights, except step sizes, decay rates and skips.

    Arguments:
        vocabulary: number of ids; id 0 is padding.
        classes: logits; 1 for a binary task with a single logit.
        dim: width of a token.
        depth: number of blocks.
        state: numbers remembered for each channel of the recurrence.
        expand: channels of the recurrence, as a multiple of dim.
        kernel_size: tokens seen by the short convolution before the recurrence.
        max_length: most real tokens of a text; the weights do not depend on it.
        dropout: share of the embeddings, and of the outputs of blocks, set to 0 in training.
        norm, norm_place: the kind of norms and where they are, see ``Norms``.
    """

    def __init__(
        self,
        *,
        vocabulary: int = 8000,
        classes: int = 2,
        dim: int = 256,
        depth: int = 4,
        state: int = 16,
        expand: int = 2,
        kernel_size: int = 4,
        max_length: int = 512,
        dropout: float = 0.1,
        norm: str = "layer",
        norm_place: str = "everywhere",
    ) -> None:
        super().__init__()
        checks.sizes(vocabulary=vocabulary, classes=classes, dim=dim, depth=depth, max_length=max_length)
        checks.sizes(state=state, expand=expand, kernel_size=kernel_size)
        checks.number("dropout", dropout, least=0, below=1)
        norms = Norms(norm, norm_place)
        self.embeddings = TokenEmbedding(
            vocabulary=vocabulary, dim=dim, max_length=max_length, dropout=dropout, norm=norms.on_tokens(dim)
        )
        self.blocks = nn.ModuleList(
            TextStateSpaceBlock(dim, expand * dim, state, kernel_size, dropout, norms) for _ in range(depth)
        )
        self.norm = norms.in_blocks(dim)
        self.classifier = nn.Linear(dim, classes)

    def read(self, embedded: Tensor, lengths: Tensor, past: Past | None) -> tuple[Tensor, Past]:
        """The last real token, normalised, (batch, dim), and for each block the last inputs and the memory."""
        tokens, kept = embedded, list[Tensor]()
        for number, block in enumerate(self.blocks):
            tokens, new = block(tokens, None if past is None else past[2 * number : 2 * number + 2])
            kept += new
        return self.norm(pick(tokens, lengths - 1)), tuple(kept)

    def remember(self, embedded: Tensor, lengths: Tensor) -> tuple[Past | None, ...]:  # noqa: ARG002
        """The state before each token, from one pass over all of them."""
        tokens, blocks = embedded, list[list[Past]]()
        for block in self.blocks:
            blocks.append([])
            tokens, _ = block(tokens, None, blocks[-1])
        after_each = [tuple(itertools.chain(*pasts)) for pasts in zip(*blocks, strict=True)]
        return None, *after_each[:-1]


class TextStateSpaceBlock(nn.Module):
    """x + out(silu(gates) * selective(inputs)), where inputs and gates are linear in norm(x)."""

    def __init__(self, dim: int, inner: int, state: int, kernel_size: int, dropout: float, norms: Norms) -> None:
        super().__init__()
        self.norm = norms.in_blocks(dim)
        self.to_inner = nn.Linear(dim, 2 * inner, bias=False)
        self.selective = SelectiveStateSpace(inner, math.ceil(dim / 16), state, kernel_size)
        self.to_out = nn.Linear(inner, dim, bias=False)
        self.drop = nn.Dropout(dropout)

    def forward(self, tokens: Tensor, past: Past | None, history: list[Past] | None = None) -> tuple[Tensor, Past]:
        """One block, (batch, tokens, dim) -> (batch, tokens, dim), and the state of ``select``."""
        inputs, gates = self.to_inner(self.norm(tokens)).chunk(2, dim=-1)  # each (batch, tokens, inner)
        read, kept = select(self.selective, inputs, past, history)
        return tokens + self.drop(self.to_out(read * nn.functional.silu(gates))), kept


def select(
    layer: SelectiveStateSpace, inputs: Tensor, past: Past | None, history: list[Past] | None = None
) -> tuple[Tensor, Past]:
    """The recurrence of ``layer`` over inputs that come after others, (batch, tokens, inner) -> the same.

    The state is the last kernel_size - 1 inputs, (batch, kernel_size - 1, inner), and the memory h, (batch, state,
    inner); without ``past`` both are 0, and the outputs are ``layer(inputs)``. The state after each token is added to
    ``history``.
    """
    batch, count, inner = inputs.shape
    rates, kernel = -layer.log_decay.exp(), layer.convolution.weight  # (state, inner), (inner, 1, kernel_size)
    if past is None:
        past = inputs.new_zeros(batch, kernel.shape[-1] - 1, inner), inputs.new_zeros(batch, *rates.shape)
    window, memory = past
    window = torch.cat([window, inputs], dim=1)  # (batch, kernel_size - 1 + tokens, inner)
    seen = nn.functional.conv1d(window.mT, kernel, layer.convolution.bias, groups=inner)
    driven = nn.functional.silu(seen.mT)  # (batch, tokens, inner)
    choices, enter, leave = layer.to_choices(driven).split(layer.sizes, dim=-1)  # (batch, tokens, rank or state)
    step = nn.functional.softplus(layer.to_step(choices))  # (batch, tokens, inner)
    memories: list[Tensor] = []
    read, memory = scan_from(memory, driven, step, enter, leave, rates, None if history is None else memories)
    if history is not None:
        width = kernel.shape[-1] - 1
        history += [(window[:, number : number + width], each) for number, each in enumerate(memories, start=1)]
    return read + layer.skip * driven, (window[:, count:], memory)
