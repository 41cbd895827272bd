"""The vision transformer for small datasets: Lee, Lee and Song 2021 (2112.13492).

Two changes to the ViT of Dosovitskiy et al. (2010.11929): a token is made from its patch in the image and in four
shifted copies of it (shifted patch tokenisation), and no token attends to itself, at a learned temperature (locality
self-attention).
"""

import math

import torch
from torch import Tensor, nn

from jostle.base import checks
from jostle.base.model import has_hooks
from jostle.models import register
from jostle.models.first_block import FirstBlockImages, PairScores, products
from jostle.models.images import check_images, check_patches
from jostle.models.vit import ATTENTIONS, cut_patches


@register("vit-small")
class SmallVisionTransformer(FirstBlockImages):
    """Shifted patches -> tokens, a class token, learned positions -> ``depth`` blocks -> class token -> logits.

    At the default sizes it is paper 1's (2403.06925) ViT-small for CIFAR-10: 4,482,482 parameters. Weights start from
    torch's defaults, the class token and the positions from N(0, 1), as in that paper. A token sees ``shift`` pixels
    beyond its patch, so a change of one patch reaches the tokens of its neighbours too.

    Differs: Lee et al. shift by half a patch along the diagonals and learn a temperature for each head; paper 1's
    network, and so this one, shifts along the rows and columns by one pixel and has one temperature for each block.

    Arguments:
        image_size: height and width; a multiple of ``patch_size``.
        channels: colours of the image.
        classes: logits; 1 for a binary task with a single logit.
        patch_size: height and width of a patch; there are (image_size / patch_size)^2 + 1 tokens.
        shift: pixels by which the four copies are moved.
        dim: width of a token.
        depth: number of blocks.
        heads: attention heads in each block.
        dim_head: width of a head; need not be dim / heads.
        mlp_dim: hidden width of the MLP in each block.
        dropout: share of attention weights and of MLP and attention outputs set to 0 in training.
        embedding_dropout: the same for the tokens that enter the first block.
        attention: ``softmax``, ``relu`` or ``linear``; see ``LocalityAttention``.
    """

    leading = 1  # the class token

    def __init__(
        self,
        *,
        image_size: int = 32,
        channels: int = 3,
        classes: int = 10,
        patch_size: int = 4,
        shift: int = 1,
        dim: int = 64,
        depth: int = 8,
        heads: int = 32,
        dim_head: int = 64,
        mlp_dim: int = 256,
        dropout: float = 0.1,
        embedding_dropout: float = 0.1,
        attention: str = "softmax",
    ) -> None:
        super().__init__()
        checks.sizes(image_size=image_size, channels=channels, classes=classes, patch_size=patch_size, shift=shift)
        checks.sizes(dim=dim, depth=depth, heads=heads, dim_head=dim_head, mlp_dim=mlp_dim)
        checks.number("dropout", dropout, least=0, below=1)
        checks.number("embedding_dropout", embedding_dropout, least=0, below=1)
        check_patches(image_size, patch_size)
        self.image_size, self.channels, self.patch_size, self.shift = image_size, channels, patch_size, shift
        patch_dim = 5 * channels * patch_size**2
        self.embed = nn.Sequential(nn.LayerNorm(patch_dim), nn.Linear(patch_dim, dim))
        self.class_token = nn.Parameter(torch.randn(1, 1, dim))
        self.positions = nn.Parameter(torch.randn((image_size // patch_size) ** 2 + 1, dim))
        self.drop = nn.Dropout(embedding_dropout)
        self.blocks = nn.Sequential(
            *(SmallViTBlock(dim, heads, dim_head, mlp_dim, dropout, attention) for _ in range(depth))
        )
        self.norm = nn.LayerNorm(dim)
        self.classifier = nn.Linear(dim, classes)

    def features(self, images: Tensor) -> Tensor:
        """The class token of the last layer, (batch, dim).

        The last block computes no other token, which no logit depends on, unless somebody looks into the blocks by a
        hook. With one of two blocks so short, training takes half the time.
        """
        tokens = self.enter(images)  # (batch, tokens, dim)
        first = self.blocks(tokens)[:, 0] if has_hooks(self.blocks) else self._read_first(tokens, 0)  # (batch, dim)
        summary: Tensor = self.norm(first)  # (batch, dim)
        return summary

    def _read_first(self, tokens: Tensor, begin: int) -> Tensor:
        """The class token of the last block from the tokens that enter block ``begin``, (batch, dim)."""
        last = self.blocks[-1]
        assert isinstance(last, SmallViTBlock)
        return last.read_first(self.blocks[begin:-1](tokens))

    def cut(self, images: Tensor) -> Tensor:
        """The patches and what is shifted into them, (batch, tokens - 1, patch_dim)."""
        return cut_patches(with_shifts(images, self.shift), self.patch_size)

    def place(self, pixels: Tensor, numbers: Tensor) -> Tensor:
        """Tokens with their positions, (..., patch_dim) and (...) -> (..., dim)."""
        embedded: Tensor = self.embed(pixels)
        return embedded + self.positions[numbers]

    def enter(self, images: Tensor) -> Tensor:
        """The tokens that enter the first block, (batch, tokens, dim)."""
        check_images(images, self.channels, self.image_size)
        tokens = torch.cat([self.class_token.expand(len(images), -1, -1), self.embed(self.cut(images))], dim=1)
        entered: Tensor = self.drop(tokens + self.positions)
        return entered

    def first_attention(self) -> PairScores | None:
        """The attention of the first block, without its dropout."""
        block = self.blocks[0]
        assert isinstance(block, SmallViTBlock)
        attention = block.attention[1]
        assert isinstance(attention, LocalityAttention)
        if len(self.blocks) == 1 or attention.kind != "softmax":
            return None
        until = products(self.embed, block.attention)
        share = until / (until + products(block.mlp, self.blocks[1:-1]))
        projections = [(weight, None) for weight in attention.to_qkv.weight.chunk(3)]
        scale = attention.log_temperature.exp()
        out = attention.to_out[0]
        assert isinstance(out, nn.Linear)
        return PairScores.of(projections, out, attention.heads, scale, share, sees_itself=False)

    def before_attention(self, tokens: Tensor) -> Tensor:
        """The norm of the first block."""
        block = self.blocks[0]
        assert isinstance(block, SmallViTBlock)
        normed: Tensor = block.attention[0](tokens)
        return normed

    def after_attention(self, tokens: Tensor, attended: Tensor, real: Tensor | None) -> Tensor:  # noqa: ARG002
        """The rest of the first block and all that follows, (batch, tokens, dim) -> (batch, classes)."""
        block = self.blocks[0]
        assert isinstance(block, SmallViTBlock)
        logits: Tensor = self.classifier(self.norm(self._read_first(block.mix(tokens + attended), 1)))
        return logits

    def forward(self, images: Tensor) -> Tensor:
        """Images to logits, (batch, channels, image_size, image_size) -> (batch, classes)."""
        logits: Tensor = self.classifier(self.features(images))
        return logits

    def extra_repr(self) -> str:
        """The sizes that no layer below shows."""
        return f"image_size={self.image_size}, patch_size={self.patch_size}, shift={self.shift}"


def with_shifts(images: Tensor, shift: int) -> Tensor:
    """The images and their copies moved right, left, down and up, (batch, C, H, W) -> (batch, 5 C, H, W).

    Pixels that move out are lost; zeros move in.

    >>> with_shifts(torch.tensor([[[[1, 2], [3, 4]]]]), 1)[0].tolist()
    [[[1, 2], [3, 4]], [[0, 1], [0, 3]], [[2, 0], [4, 0]], [[0, 0], [1, 2]], [[3, 4], [0, 0]]]
    """
    height, width = images.shape[-2:]
    padded = nn.functional.pad(images, (shift, shift, shift, shift))
    corners = ((shift, shift), (shift, 0), (shift, 2 * shift), (0, shift), (2 * shift, shift))
    return torch.cat([padded[..., top : top + height, left : left + width] for top, left in corners], dim=1)


class SmallViTBlock(nn.Module):
    """Pre-norm block: x + attention(norm(x)), then x + mlp(norm(x)); tokens in, tokens out."""

    def __init__(self, dim: int, heads: int, dim_head: int, mlp_dim: int, dropout: float, attention: str) -> None:
        super().__init__()
        self.attention = nn.Sequential(nn.LayerNorm(dim), LocalityAttention(dim, heads, dim_head, dropout, attention))
        widen, narrow = nn.Linear(dim, mlp_dim), nn.Linear(mlp_dim, dim)
        self.mlp = nn.Sequential(nn.LayerNorm(dim), widen, nn.GELU(), nn.Dropout(dropout), narrow, nn.Dropout(dropout))

    def forward(self, tokens: Tensor) -> Tensor:
        """One block, (batch, tokens, dim) -> (batch, tokens, dim)."""
        return self.mix(tokens + self.attention(tokens))

    def mix(self, tokens: Tensor) -> Tensor:
        """What comes after the attention, token by token, (..., dim) -> (..., dim)."""
        mixed: Tensor = tokens + self.mlp(tokens)
        return mixed

    def read_first(self, tokens: Tensor) -> Tensor:
        """The first token that comes out, (batch, tokens, dim) -> (batch, dim)."""
        norm, attention = self.attention
        assert isinstance(attention, LocalityAttention)
        return self.mix(tokens[:, 0] + attention.read_first(norm(tokens)))


class LocalityAttention(nn.Module):
    """Multi-head attention to all other tokens, A v with A made from the scores s = exp(log_temperature) q k^T.

    ``softmax``: A = softmax(s), taken over the other tokens only. ``relu`` and ``linear``: A = relu(s) / others and
    A = s / others with zeros on the diagonal, where others = tokens - 1. The temperature starts at 1 / sqrt(dim_head).
    """

    def __init__(self, dim: int, heads: int, dim_head: int, dropout: float, kind: str = "softmax") -> None:
        super().__init__()
        checks.choice("attention", kind, ATTENTIONS)
        self.heads, self.dim_head, self.kind, self.dropout = heads, dim_head, kind, dropout
        self.log_temperature = nn.Parameter(torch.tensor(-0.5 * math.log(dim_head)))
        self.to_qkv = nn.Linear(dim, 3 * heads * dim_head, bias=False)
        self.to_out = nn.Sequential(nn.Linear(heads * dim_head, dim), nn.Dropout(dropout))

    def forward(self, tokens: Tensor) -> Tensor:
        """Every token looks at every other token, (batch, tokens, dim) -> (batch, tokens, dim)."""
        batch, num_tokens, _ = tokens.shape
        qkv = self.to_qkv(tokens).reshape(batch, num_tokens, 3, self.heads, self.dim_head)
        q, k, v = qkv.permute(2, 0, 3, 1, 4).unbind(0)  # each (batch, heads, tokens, dim_head)
        mixed = self.mix(q, k, v)  # (batch, heads, tokens, dim_head)
        joined: Tensor = self.to_out(mixed.transpose(1, 2).reshape(batch, num_tokens, -1))  # (batch, tokens, dim)
        return joined

    def read_first(self, tokens: Tensor) -> Tensor:
        """What the first token gets from the others, (batch, tokens, dim) -> (batch, dim).

        With one query, q (K x) = (q K) x and A (V x) = (A x) V: no token needs a key or a value of its own.
        """
        to_q, to_k, to_v = self.to_qkv.weight.reshape(3, self.heads, self.dim_head, -1)
        q = torch.einsum("bd,hed->bhe", tokens[:, 0], to_q) * self.log_temperature.exp()
        others = tokens[:, 1:]
        scores = torch.einsum("bhe,hed->bhd", q, to_k) @ others.mT  # (batch, heads, others)
        if self.kind == "softmax":
            weights = scores.softmax(dim=-1)
        else:
            weights = (torch.relu(scores) if self.kind == "relu" else scores) / others.shape[1]
        weights = nn.functional.dropout(weights, self.dropout, self.training)
        mixed = torch.einsum("bhd,hed->bhe", weights @ others, to_v)
        joined: Tensor = self.to_out(mixed.flatten(start_dim=1))
        return joined

    def mix(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """A v for queries, keys and values of shape (batch, heads, tokens, dim_head)."""
        itself = torch.eye(k.shape[-2], dtype=torch.bool, device=k.device)  # (tokens, tokens)
        dropout = self.dropout if self.training else 0.0
        scaled = q * self.log_temperature.exp()  # Here and not as scale=, which takes no tensor and so no gradient.
        if self.kind == "softmax":
            return nn.functional.scaled_dot_product_attention(
                scaled, k, v, attn_mask=~itself, dropout_p=dropout, scale=1.0
            )
        scores = scaled @ k.mT  # (batch, heads, tokens, tokens)
        weights = torch.relu(scores) if self.kind == "relu" else scores
        weights = weights.masked_fill(itself, 0.0) / (k.shape[-2] - 1)
        return nn.functional.dropout(weights, dropout).matmul(v)

    def extra_repr(self) -> str:
        """The settings that the shapes of the weights do not show."""
        return f"heads={self.heads}, dim_head={self.dim_head}, kind={self.kind!r}, dropout={self.dropout}"
