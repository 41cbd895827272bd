"""State-space models of an image: the patches are read one after the other by a recurrence that forgets selectively.

The recurrence is that of Gu and Dao 2023, "Mamba" (2312.00752), sections 3.2 to 3.4; reading the patches from both
ends follows Zhu et al. 2024, "Vision Mamba" (2401.09417).
"""

import math

import torch
from torch import Tensor, nn

from jostle.base import checks
from jostle.models import register
from jostle.models.images import check_images, check_patches
from jostle.models.norms import Norms
from jostle.models.vit import cut_patches

DIRECTIONS = ("both", "forward")
SLOWEST, FASTEST = 1e-3, 1e-1  # The step sizes of a fresh network lie between them, evenly in the logarithm.


@register("vision-ssm")
class VisionStateSpace(nn.Module):
    """Patches -> tokens + learned positions -> ``depth`` selective state-space blocks -> mean over tokens -> logits.

    The default sizes are ours, for images of 32 x 32. Not part of paper 1.

    Differs from Vision Mamba: the mean over the tokens instead of a class token in the middle, LayerNorm instead of
    RMSNorm, and torch's defaults for the weights, except step sizes, decay rates and skips, which start as in Mamba.

    Arguments:
        image_size: height and width; a multiple of ``patch_size``.
        channels: colours of the image.
        classes: logits; 1 for a binary task with a single logit.
        patch_size: height and width of a patch; there are (image_size / patch_size)^2 tokens, in row order.
        dim: width of a token.
        depth: number of blocks.
        state: numbers remembered for each channel of the recurrence.
        expand: channels of the recurrence, as a multiple of dim.
        kernel_size: tokens seen by the short convolution before the recurrence.
        directions: ``both``, from the first patch on and from the last patch back, or ``forward`` only.
        norm, norm_place: the kind of norms and where they are, see ``Norms``; Vision Mamba has them in blocks.
    """

    def __init__(
        self,
        *,
        image_size: int = 32,
        channels: int = 3,
        classes: int = 10,
        patch_size: int = 4,
        dim: int = 64,
        depth: int = 4,
        state: int = 8,
        expand: int = 2,
        kernel_size: int = 4,
        directions: str = "both",
        norm: str = "layer",
        norm_place: str = "blocks",
    ) -> None:
        super().__init__()
        checks.sizes(image_size=image_size, channels=channels, classes=classes, patch_size=patch_size, dim=dim)
        checks.sizes(depth=depth, state=state, expand=expand, kernel_size=kernel_size)
        checks.choice("directions", directions, DIRECTIONS)
        check_patches(image_size, patch_size)
        self.image_size, self.channels, self.patch_size = image_size, channels, patch_size
        patch_dim, norms = channels * patch_size**2, Norms(norm, norm_place)
        self.patch_norm, self.embed, self.token_norm = (
            norms.on_tokens(patch_dim),
            nn.Linear(patch_dim, dim),
            norms.on_tokens(dim),
        )
        self.positions = nn.Parameter(0.02 * torch.randn((image_size // patch_size) ** 2, dim))
        is_two_way = directions == "both"
        self.blocks = nn.Sequential(
            *(VisionStateSpaceBlock(dim, expand * dim, state, kernel_size, is_two_way, norms) for _ in range(depth))
        )
        self.norm = norms.in_blocks(dim)
        self.classifier = nn.Linear(dim, classes)

    def features(self, images: Tensor) -> Tensor:
        """The mean over the tokens of the last layer, (batch, dim)."""
        check_images(images, self.channels, self.image_size)
        patches = self.patch_norm(cut_patches(images, self.patch_size))  # (batch, tokens, patch_dim)
        tokens = self.token_norm(self.embed(patches)) + self.positions  # (batch, tokens, dim)
        pooled: Tensor = self.norm(self.blocks(tokens)).mean(dim=1)  # (batch, dim)
        return pooled

    def forward(self, images: Tensor) -> Tensor:
        """Images to logits, (batch, channels, image_size, image_size) -> (batch, classes)."""
        logits: Tensor = self.classifier(self.features(images))
        return logits


class VisionStateSpaceBlock(nn.Module):
    """x + out(silu(gates) * sum of the directions), where inputs and gates are linear in norm(x)."""

    def __init__(self, dim: int, inner: int, state: int, kernel_size: int, is_two_way: bool, norms: Norms) -> None:
        super().__init__()
        self.norm = norms.in_blocks(dim)
        self.to_inner = nn.Linear(dim, 2 * inner, bias=False)
        rank = math.ceil(dim / 16)
        self.onward = SelectiveStateSpace(inner, rank, state, kernel_size)
        self.back = SelectiveStateSpace(inner, rank, state, kernel_size) if is_two_way else None
        self.to_out = nn.Linear(inner, dim, bias=False)

    def forward(self, tokens: Tensor) -> Tensor:
        """One block, (batch, tokens, dim) -> (batch, tokens, dim)."""
        inputs, gates = self.to_inner(self.norm(tokens)).chunk(2, dim=-1)  # each (batch, tokens, inner)
        read = self.onward(inputs)  # (batch, tokens, inner)
        if self.back is not None:
            read = read + self.back(inputs.flip(1)).flip(1)
        mixed: Tensor = tokens + self.to_out(read * nn.functional.silu(gates))
        return mixed


class SelectiveStateSpace(nn.Module):
    """h_t = exp(d_t A) h_{t-1} + d_t B_t u_t and y_t = C_t . h_t + skip u_t, for each channel on its own.

    u is the input after a convolution over the last tokens and SiLU. The step d_t = softplus(...), B_t and C_t are
    linear in u_t: the token selects how much is forgotten, written and read. A = -exp(log_decay) is diagonal.
    """

    def __init__(self, inner: int, rank: int, state: int, kernel_size: int) -> None:
        super().__init__()
        self.sizes = [rank, state, state]
        self.convolution = nn.Conv1d(inner, inner, kernel_size, groups=inner, padding=kernel_size - 1)
        self.to_choices = nn.Linear(inner, sum(self.sizes), bias=False)
        self.to_step = nn.Linear(rank, inner)
        steps = torch.empty(inner).uniform_(math.log(SLOWEST), math.log(FASTEST)).exp()
        self.to_step.bias = nn.Parameter(steps.expm1().log())  # softplus of it is the step
        rates = torch.arange(1, state + 1, dtype=torch.get_default_dtype())
        self.log_decay = nn.Parameter(rates.log()[:, None].repeat(1, inner))  # (state, inner)
        self.skip = nn.Parameter(torch.ones(inner))

    def forward(self, inputs: Tensor) -> Tensor:
        """One reading of the tokens in order, (batch, tokens, inner) -> (batch, tokens, inner)."""
        seen = self.convolution(inputs.mT)[..., : inputs.shape[1]]  # Cut: the padding is for the start only.
        driven = nn.functional.silu(seen.mT)  # (batch, tokens, inner)
        choices, enter, leave = self.to_choices(driven).split(self.sizes, dim=-1)  # (batch, tokens, rank or state)
        step = nn.functional.softplus(self.to_step(choices))  # (batch, tokens, inner)
        return scan(driven, step, enter, leave, -self.log_decay.exp()) + self.skip * driven


def scan(driven: Tensor, step: Tensor, enter: Tensor, leave: Tensor, rates: Tensor) -> Tensor:
    """C_t . h_t for every token, where h_t = exp(d_t A) h_{t-1} + d_t B_t u_t and h_0 = 0.

    Arguments:
        driven: u, (batch, tokens, inner).
        step: d, (batch, tokens, inner).
        enter: B, (batch, tokens, state).
        leave: C, (batch, tokens, state).
        rates: the diagonal of A for each channel, (state, inner).

    >>> one = torch.ones(1, 3, 1)
    >>> [round(y, 4) for y in scan(one, one, one, one, torch.tensor([[-math.log(2)]])).flatten().tolist()]
    [1.0, 1.5, 1.75]
    """
    nothing = driven.new_zeros(len(driven), *rates.shape)
    return scan_from(nothing, driven, step, enter, leave, rates)[0]


def scan_from(
    memory: Tensor,
    driven: Tensor,
    step: Tensor,
    enter: Tensor,
    leave: Tensor,
    rates: Tensor,
    memories: list[Tensor] | None = None,
) -> tuple[Tensor, Tensor]:
    """C_t . h_t for every token, (batch, tokens, inner), and the last h, where h_t = exp(d_t A) h_{t-1} + d_t B_t u_t.

    A loop over the tokens, which work on (batch, state, inner) numbers at once. For 8 texts of 128 tokens, 512
    channels and 16 states on one core, forward and backward: 76 ms; a parallel scan (doubling, in chunks of 8) 198 ms,
    decays and entries of 8 tokens computed at once 100 ms, and a hand-written backward pass was slower too. Moving
    numbers costs more here than starting operations.

    Arguments:
        memory: h before the first token, (batch, state, inner).
        driven: u, (batch, tokens, inner).
        step: d, (batch, tokens, inner).
        enter: B, (batch, tokens, state).
        leave: C, (batch, tokens, state).
        rates: the diagonal of A for each channel, (state, inner).
        memories: takes h after each token, if it is given.

    >>> one, rates = torch.ones(1, 3, 1), torch.full((1, 1), -math.log(2))
    >>> outputs, memory = scan_from(torch.full((1, 1, 1), 2.0), one, one, one, one, rates)
    >>> [round(y, 4) for y in outputs.flatten().tolist()], round(memory.item(), 4)
    ([2.0, 2.0, 2.0], 2.0)
    """
    outputs = []
    # Unbound at once: the gradient of an index in the loop would be a tensor of all tokens for each token.
    for now in zip(step.unbind(1), (step * driven).unbind(1), enter.unbind(1), leave.unbind(1), strict=True):
        step_now, entering, enter_now, leave_now = now  # (batch, inner) twice, (batch, state) twice
        decay = (step_now[:, None, :] * rates).exp()  # (batch, state, inner); the long axis last is faster
        memory = torch.addcmul(entering[:, None, :] * enter_now[:, :, None], decay, memory)
        outputs.append(leave_now[:, None, :].matmul(memory).squeeze(1))  # (batch, inner)
        if memories is not None:
            memories.append(memory)
    return torch.stack(outputs, dim=1), memory
