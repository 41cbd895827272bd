"""A selective state-space model on bits, with a diagonal transition, read at its last token."""

import math

import torch
from torch import Tensor, nn

from jostle.base import checks
from jostle.boolean.networks import register
from jostle.boolean.networks.parts import check_bits, embed_bits

SLOWEST, FASTEST = 1e-3, 1e-1  # the range of initial step sizes


@register("state-space")
class BooleanStateSpace(nn.Module):
    """Bit embedding -> blocks x + mix(norm(x)) -> RMSNorm -> Linear at the last token.

    Source: Gu and Dao 2023, "Mamba" (2312.00752), sections 3.2 to 3.4, with the recurrence written as a loop over the
    bits. There are no position embeddings: the recurrence knows the order of the bits.

    Default weights: embedding N(0, 1), linear and convolution layers as in torch, decay rates 1..state, step sizes
    log-uniform between 0.001 and 0.1, skip weights 1 (the paper's own).

    Arguments:
        n: how many bits.
        depth: blocks.
        dim: of a token.
        state: size of the memory of each channel.
        expand: channels of the recurrence, as a multiple of dim.
        kernel: length of the short convolution before the recurrence, in bits.
        norm_eps: added to the mean square in RMSNorm.
    """

    def __init__(
        self,
        *,
        n: int = 10,
        depth: int = 2,
        dim: int = 64,
        state: int = 8,
        expand: int = 2,
        kernel: int = 4,
        norm_eps: float = 1e-5,
    ) -> None:
        super().__init__()
        checks.sizes(n=n, depth=depth, dim=dim, state=state, expand=expand, kernel=kernel)
        self.n = n
        self.symbols = nn.Parameter(torch.randn(2, dim))
        self.norms = nn.ModuleList(RMSNorm(dim, norm_eps) for _ in range(depth))
        self.mixers = nn.ModuleList(BooleanSelective(dim, expand * dim, state, kernel) for _ in range(depth))
        self.norm = RMSNorm(dim, norm_eps)
        self.readout = nn.Linear(dim, 1)

    def forward(self, bits: Tensor) -> Tensor:
        """Bits to logits, (batch, n) of -1 and 1 -> (batch,)."""
        check_bits(bits, self.n)
        tokens = embed_bits(bits, self.symbols)  # (batch, n, dim)
        for norm, mixer in zip(self.norms, self.mixers, strict=True):
            tokens = tokens + mixer(norm(tokens))
        logits: Tensor = self.readout(self.norm(tokens[:, -1])).squeeze(-1)
        return logits


class RMSNorm(nn.Module):
    """gain * x / sqrt(mean(x^2) + eps) over the last axis (Zhang and Sennrich 2019, 1910.07467).

    x is divided by its largest entry before it is squared: with weights of scale 10 the recurrence reaches 1e21, and
    float32 would square that to infinity and return 0 for every input.

    >>> [round(x, 3) for x in RMSNorm(2, 0.0)(torch.tensor([3e30, 4e30])).tolist()]  # 3, 4 divided by sqrt(12.5)
    [0.849, 1.131]
    """

    keeps = frozenset({"gain"})

    def __init__(self, dim: int, eps: float) -> None:
        super().__init__()
        self.gain, self.eps = nn.Parameter(torch.ones(dim)), eps

    def forward(self, vectors: Tensor) -> Tensor:
        """(..., dim) -> (..., dim)."""
        largest = vectors.detach().abs().amax(dim=-1, keepdim=True).clamp(min=1)
        small = vectors / largest
        square = small.square().mean(dim=-1, keepdim=True) + self.eps / largest / largest
        return small * square.rsqrt() * self.gain


class BooleanSelective(nn.Module):
    """h_t = exp(D_t A) h_{t-1} + D_t B_t u_t, y_t = C_t . h_t + skip u_t, gated and projected back.

    u is the input after a linear map, a causal convolution and SiLU. The step D_t (after softplus), B_t and C_t are
    linear in u_t, so the model selects what to remember. A = -exp(log_decay) is diagonal.
    """

    keeps = frozenset({"log_decay", "skip", "step_offset"})

    def __init__(self, dim: int, inner: int, state: int, kernel: int) -> None:
        super().__init__()
        rank = math.ceil(dim / 16)
        self.state, self.kernel, self.rank = state, kernel, rank
        self.to_inner = nn.Linear(dim, 2 * inner, bias=False)
        reach = kernel**-0.5
        self.convolution = nn.Parameter(torch.empty(inner, 1, kernel).uniform_(-reach, reach))
        self.to_choices = nn.Linear(inner, rank + 2 * state, bias=False)
        self.to_step = nn.Linear(rank, inner, bias=False)
        steps = torch.empty(inner).uniform_(math.log(SLOWEST), math.log(FASTEST)).exp()
        self.step_offset = nn.Parameter(steps.expm1().log())  # softplus of it is the step
        rates = torch.arange(1, state + 1, dtype=torch.get_default_dtype())
        self.log_decay = nn.Parameter(rates.log().repeat(inner, 1))  # (inner, state)
        self.skip = nn.Parameter(torch.ones(inner))
        self.to_out = nn.Linear(inner, dim, bias=False)

    def forward(self, tokens: Tensor) -> Tensor:
        """(batch, n, dim) -> (batch, n, dim)."""
        inputs, gates = self.to_inner(tokens).chunk(2, dim=-1)  # each (batch, n, inner)
        driven = nn.functional.silu(self.convolve(inputs))  # (batch, n, inner)
        choices = self.to_choices(driven).split([self.rank, self.state, self.state], dim=-1)
        step = nn.functional.softplus(self.to_step(choices[0]) + self.step_offset)  # (batch, n, inner)
        outputs = self.scan(driven, step, choices[1], choices[2]) + self.skip * driven
        mixed: Tensor = self.to_out(outputs * nn.functional.silu(gates))
        return mixed

    def convolve(self, inputs: Tensor) -> Tensor:
        """The weighted sum of each channel over the last ``kernel`` bits, with zeros before the first bit."""
        padded = nn.functional.pad(inputs, (0, 0, self.kernel - 1, 0))
        length = inputs.shape[1]
        terms = [padded[:, lag : lag + length] * self.convolution[:, 0, lag] for lag in range(self.kernel)]
        return torch.stack(terms).sum(dim=0)

    def scan(self, driven: Tensor, step: Tensor, enter: Tensor, leave: Tensor) -> Tensor:
        """The recurrence: (batch, n, inner) twice and (batch, n, state) twice to (batch, n, inner)."""
        # The channels are the last axis: with the few states as last axis each product takes 2.8 times as long.
        rates = -self.log_decay.exp().mT  # (state, inner)
        memory = torch.zeros_like(driven[:, 0, None, :] * rates)  # (batch, state, inner)
        entering = step * driven
        outputs = []
        for now in range(driven.shape[1]):
            decay = (step[:, now, None, :] * rates).exp()
            memory = decay * memory + entering[:, now, None, :] * enter[:, now, :, None]
            outputs.append((leave[:, now, None, :] @ memory).squeeze(1))
        return torch.stack(outputs, dim=1)
