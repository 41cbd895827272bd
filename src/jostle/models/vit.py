"""Vision transformers: an image is cut into patches, each patch is one token.

``vit-simple`` follows Beyer, Zhai and Kolesnikov, "Better plain ViT baselines for ImageNet-1k" (2205.01580): the ViT of
Dosovitskiy et al. (2010.11929) with fixed 2-D sin-cos positions and mean pooling instead of learned positions and a
class token, and without dropout.
"""

import torch
from torch import Tensor, nn

from jostle.base import checks
from jostle.base.errors import UsageError
from jostle.models import register
from jostle.models.first_block import FirstBlockImages, PairScores, products
from jostle.models.images import check_images, check_patches
from jostle.models.norms import Norms

ATTENTIONS = ("softmax", "relu", "linear")
UNIFORM = "uniform"


@register("vit-simple")
class SimpleVisionTransformer(FirstBlockImages):
    """Patches -> tokens + fixed positions -> ``depth`` pre-norm blocks -> LayerNorm -> mean over tokens -> logits.

    At the default sizes it is paper 1's (2403.06925) ViT-simple for CIFAR-10: 1,975,210 parameters. Weights start from
    torch's defaults, as in that paper.

    Arguments:
        image_size: height and width; a multiple of ``patch_size``.
        channels: colours of the image.
        classes: logits; 1 for a binary task with a single logit.
        patch_size: height and width of a patch; there are (image_size / patch_size)^2 tokens.
        dim: width of a token; a multiple of 4, for the positions.
        depth: number of blocks.
        heads: attention heads in each block.
        dim_head: width of a head; need not be dim / heads.
        mlp_dim: hidden width of the MLP in each block.
        attention: ``softmax``, ``relu``, ``linear`` or ``uniform``; see ``PatchAttention``.
        norm, norm_place: the kind of norms and where they are, see ``Norms``; papers have LayerNorm everywhere.
    """

    def __init__(
        self,
        *,
        image_size: int = 32,
        channels: int = 3,
        classes: int = 10,
        patch_size: int = 4,
        dim: int = 64,
        depth: int = 6,
        heads: int = 16,
        dim_head: int = 64,
        mlp_dim: int = 512,
        attention: str = "softmax",
        norm: str = "layer",
        norm_place: str = "everywhere",
    ) -> None:
        super().__init__()
        checks.sizes(image_size=image_size, channels=channels, classes=classes, patch_size=patch_size, dim=dim)
        checks.sizes(depth=depth, heads=heads, dim_head=dim_head, mlp_dim=mlp_dim)
        check_patches(image_size, patch_size)
        self.image_size, self.channels, self.patch_size = image_size, channels, patch_size
        patch_dim, norms = channels * patch_size**2, Norms(norm, norm_place)
        self.embed = nn.Sequential(norms.on_tokens(patch_dim), nn.Linear(patch_dim, dim), norms.on_tokens(dim))
        self.positions: Tensor  # (tokens, dim)
        self.register_buffer("positions", sincos_positions(image_size // patch_size, dim), persistent=False)
        self.blocks = nn.Sequential(
            *(SimpleViTBlock(dim, heads, dim_head, mlp_dim, attention, norms) for _ in range(depth))
        )
        self.norm = norms.in_blocks(dim)
        self.classifier = nn.Linear(dim, classes)

    def features(self, images: Tensor) -> Tensor:
        """The mean over the tokens of the last layer, (batch, dim)."""
        return self._pooled(self.blocks(self.enter(images)))

    def _pooled(self, tokens: Tensor) -> Tensor:
        """The mean over normed tokens, (batch, tokens, dim) -> (batch, dim)."""
        pooled: Tensor = self.norm(tokens).mean(dim=1)
        return pooled

    def cut(self, images: Tensor) -> Tensor:
        """The patches, (batch, tokens, patch_dim)."""
        return cut_patches(images, self.patch_size)

    def place(self, pixels: Tensor, numbers: Tensor) -> Tensor:
        """Tokens with their positions, (..., patch_dim) and (...) -> (..., dim)."""
        embedded: Tensor = self.embed(pixels)
        return embedded + self.positions[numbers]

    def enter(self, images: Tensor) -> Tensor:
        """The tokens that enter the first block, (batch, tokens, dim)."""
        check_images(images, self.channels, self.image_size)
        embedded: Tensor = self.embed(self.cut(images))
        return embedded + self.positions

    def first_attention(self) -> PairScores | None:
        """The attention of the first block."""
        block = self.blocks[0]
        assert isinstance(block, SimpleViTBlock)
        attention = block.attention[1]
        assert isinstance(attention, PatchAttention)
        if len(self.blocks) == 1 or attention.kind != "softmax":
            return None
        until = products(self.embed, block.attention)
        share = until / (until + products(block.mlp, self.blocks[1:]))
        projections = [(weight, None) for weight in attention.to_qkv.weight.chunk(3)]
        scale = attention.dim_head**-0.5
        return PairScores.of(projections, attention.to_out, attention.heads, scale, share)

    def before_attention(self, tokens: Tensor) -> Tensor:
        """The norm of the first block."""
        block = self.blocks[0]
        assert isinstance(block, SimpleViTBlock)
        normed: Tensor = block.attention[0](tokens)
        return normed

    def after_attention(self, tokens: Tensor, attended: Tensor, real: Tensor | None) -> Tensor:  # noqa: ARG002
        """The rest of the first block and all that follows, (batch, tokens, dim) -> (batch, classes)."""
        block = self.blocks[0]
        assert isinstance(block, SimpleViTBlock)
        logits: Tensor = self.classifier(self._pooled(self.blocks[1:](block.mix(tokens + attended))))
        return logits

    def forward(self, images: Tensor) -> Tensor:
        """Images to logits, (batch, channels, image_size, image_size) -> (batch, classes)."""
        logits: Tensor = self.classifier(self.features(images))
        return logits

    def extra_repr(self) -> str:
        """The sizes that no layer below shows."""
        return f"image_size={self.image_size}, patch_size={self.patch_size}"


def cut_patches(images: Tensor, size: int) -> Tensor:
    """Square patches in row order, pixels before channels, (batch, C, H, W) -> (batch, tokens, size * size * C).

    >>> cut_patches(torch.arange(16).reshape(1, 1, 4, 4), 2)[0, 1].tolist()
    [2, 3, 6, 7]
    """
    batch, channels, height, width = images.shape
    grid = images.reshape(batch, channels, height // size, size, width // size, size)
    return grid.permute(0, 2, 4, 3, 5, 1).reshape(batch, -1, size * size * channels)


def sincos_positions(grid: int, dim: int) -> Tensor:
    """Fixed positions of a ``grid`` x ``grid`` image, in row order, (grid * grid, dim).

    A token at (row, column) has [sin(column w), cos(column w), sin(row w), cos(row w)], where w runs over dim / 4
    frequencies from 1 down to 1/10000, evenly spaced in the logarithm.
    """
    if dim % 4:
        raise UsageError(f"dim={dim} must be a multiple of 4: a sine and a cosine for each row and column frequency")
    exponents = torch.linspace(0, 1, dim // 4, dtype=torch.float64)
    frequencies = 10_000.0**-exponents  # (dim / 4,)
    rows, columns = torch.meshgrid(torch.arange(grid), torch.arange(grid), indexing="ij")
    row_angles = rows.reshape(-1, 1) * frequencies  # (tokens, dim / 4)
    column_angles = columns.reshape(-1, 1) * frequencies  # (tokens, dim / 4)
    parts = [column_angles.sin(), column_angles.cos(), row_angles.sin(), row_angles.cos()]
    return torch.cat(parts, dim=1).to(torch.get_default_dtype())  # (tokens, dim)


class SimpleViTBlock(nn.Module):
    """Pre-norm block: x + attention(norm(x)), then x + mlp(norm(x)); tokens in, tokens out."""

    def __init__(self, dim: int, heads: int, dim_head: int, mlp_dim: int, attention: str, norms: Norms) -> None:
        super().__init__()
        self.attention = nn.Sequential(norms.in_blocks(dim), PatchAttention(dim, heads, dim_head, attention))
        self.mlp = nn.Sequential(norms.in_blocks(dim), nn.Linear(dim, mlp_dim), nn.GELU(), nn.Linear(mlp_dim, dim))

    def forward(self, tokens: Tensor) -> Tensor:
        """One block, (batch, tokens, dim) -> (batch, tokens, dim)."""
        return self.mix(tokens + self.attention(tokens))

    def mix(self, tokens: Tensor) -> Tensor:
        """What comes after the attention, token by token, (..., dim) -> (..., dim)."""
        mixed: Tensor = tokens + self.mlp(tokens)
        return mixed


class PatchAttention(nn.Module):
    """Multi-head attention, A v with A made from the scores s = q k^T / sqrt(dim_head); no biases.

    ``softmax``: A = softmax(s). ``relu``: A = relu(s) / tokens (Wortsman et al. 2023, 2309.08586). ``linear``:
    A = s / tokens, computed as q (k^T v), so the cost grows with the number of tokens and not with its square.
    ``uniform``: A = 1 / tokens for all tokens, so that queries and keys have no influence: a control.
    """

    def __init__(self, dim: int, heads: int, dim_head: int, kind: str = "softmax") -> None:
        super().__init__()
        checks.choice("attention", kind, (*ATTENTIONS, UNIFORM))
        self.heads, self.dim_head, self.kind = heads, dim_head, kind
        self.to_qkv = nn.Linear(dim, 3 * heads * dim_head, bias=False)
        self.to_out = nn.Linear(heads * dim_head, dim, bias=False)

    def forward(self, tokens: Tensor) -> Tensor:
        """Every token looks at every token, (batch, tokens, dim) -> (batch, tokens, dim)."""
        batch, num_tokens, _ = tokens.shape
        qkv = self.to_qkv(tokens).reshape(batch, num_tokens, 3, self.heads, self.dim_head)
        q, k, v = qkv.permute(2, 0, 3, 1, 4).unbind(0)  # each (batch, heads, tokens, dim_head)
        mixed = self.mix(q, k, v)  # (batch, heads, tokens, dim_head)
        joined: Tensor = self.to_out(mixed.transpose(1, 2).reshape(batch, num_tokens, -1))  # (batch, tokens, dim)
        return joined

    def mix(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """A v for queries, keys and values of shape (batch, heads, tokens, dim_head)."""
        if self.kind == "softmax":
            return nn.functional.scaled_dot_product_attention(q, k, v)
        if self.kind == UNIFORM:
            return v.mean(dim=-2, keepdim=True).expand_as(v)
        scale: float = self.dim_head**-0.5 / k.shape[-2]
        if self.kind == "relu":
            weights = torch.relu(q @ k.mT) * scale  # (batch, heads, tokens, tokens)
            return weights.matmul(v)
        return q.matmul(k.mT @ v) * scale

    def extra_repr(self) -> str:
        """The settings that the shapes of the weights do not show."""
        return f"heads={self.heads}, dim_head={self.dim_head}, kind={self.kind!r}"
