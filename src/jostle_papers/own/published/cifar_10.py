"""Four networks of CIFAR-10 that others trained, written here from their papers; their weights are read from files.

The files are not part of jostle. The environment variable ``JOSTLE_NETWORKS`` names the folder that holds them, one
folder for each source:

    cifar10_resnets/resnet20-12fca82f.th, resnet56-4bfd9763.th   github.com/akamaster/pytorch_resnet_cifar10
    cifar10_cct/model_checkpoint84_59.pt                         github.com/Nik212/Compact-Convolutional-Transformer
    cifar10_vit128/vit_cifar10.pth                               github.com/smmk47/CIFAR10-Classification

As specs: ``py:jostle_papers.own.published.cifar_10:resnet_20`` and so on. Pixels lie in [-1, 1], as ``jostle.data``
gives them, and are normalised inside as each network was trained.
"""

import hashlib
import itertools
import os
import re
from pathlib import Path

import torch
from torch import Tensor, nn

from jostle.base.errors import UsageError
from jostle.base.weights import fill_weights, read_weights
from jostle.data.preprocessing import IMAGENET_MEAN, IMAGENET_STD, Preprocessing
from jostle.integrations.image_classifier import ImageClassifier

VARIABLE = "JOSTLE_NETWORKS"
PIXELS = Preprocessing(size=32, resize=32, mean=(0.5,) * 3, std=(0.5,) * 3)  # in [-1, 1]
_CIFAR = Preprocessing(size=32, resize=32, mean=(0.4914, 0.4822, 0.4465), std=(0.247, 0.2435, 0.2616))
_IMAGENET = Preprocessing(size=32, resize=32, mean=IMAGENET_MEAN, std=IMAGENET_STD)


class ResidualNetwork(nn.Module):
    """He et al. 2015, "Deep residual learning" (1512.03385), section 4.2: 6 n + 2 layers for images of 32 x 32.

    Where a block halves the image and doubles the channels, the shortcut takes every second pixel and fills the new
    channels with zeros (option A), half of them before and half after the old ones.

    Arguments:
        repeats: n, the blocks of each of the three stages.
    """

    def __init__(self, repeats: int) -> None:
        super().__init__()
        self.stem = _normed(3, 16, 1)
        widths = [16] * (repeats + 1) + [32] * repeats + [64] * repeats
        self.blocks = nn.Sequential(*(ResidualBlock(*pair) for pair in itertools.pairwise(widths)))
        self.classifier = nn.Linear(64, 10)

    def forward(self, images: Tensor) -> Tensor:
        """(batch, 3, 32, 32) -> (batch, 10)."""
        logits: Tensor = self.classifier(self.blocks(self.stem(images).relu()).mean(dim=(2, 3)))
        return logits


class ResidualBlock(nn.Module):
    """relu(x + norm(convolution(relu(norm(convolution(x))))))."""

    def __init__(self, before: int, after: int) -> None:
        super().__init__()
        self.step = 1 if before == after else 2
        self.filled = (after - before) // 2
        self.first, self.second = _normed(before, after, self.step), _normed(after, after, 1)

    def forward(self, maps: Tensor) -> Tensor:
        """(batch, before, height, width) -> (batch, after, height / step, width / step)."""
        short = nn.functional.pad(maps[:, :, :: self.step, :: self.step], (0, 0, 0, 0, self.filled, self.filled))
        added: Tensor = short + self.second(self.first(maps).relu())
        return added.relu()


def _normed(before: int, after: int, stride: int) -> nn.Sequential:
    return nn.Sequential(nn.Conv2d(before, after, 3, stride, padding=1, bias=False), nn.BatchNorm2d(after))


class CompactConvolutionalTransformer(nn.Module):
    """Hassani et al. 2021, "Escaping the big data paradigm with compact transformers" (2104.05704).

    A convolution and a maximum over neighbours make 256 tokens, to which learned positions are added; pre-norm blocks;
    and a learned softmax over the tokens weighs them into one (sequence pooling).
    """

    def __init__(self, dim: int = 128, depth: int = 4, heads: int = 2, mlp_dim: int = 256) -> None:
        super().__init__()
        self.tokenizer = nn.Sequential(
            nn.Conv2d(3, dim, 3, padding=1, bias=False), nn.ReLU(), nn.MaxPool2d(3, stride=2, padding=1)
        )
        self.positions = nn.Parameter(torch.zeros(1, 256, dim))
        self.blocks = nn.Sequential(*(PreNormBlock(dim, heads, mlp_dim) for _ in range(depth)))
        self.norm, self.weigh, self.classifier = nn.LayerNorm(dim), nn.Linear(dim, 1), nn.Linear(dim, 10)

    def forward(self, images: Tensor) -> Tensor:
        """(batch, 3, 32, 32) -> (batch, 10)."""
        tokens = self.tokenizer(images).flatten(2).mT + self.positions  # (batch, 256, dim)
        tokens = self.norm(self.blocks(tokens))
        pooled = (self.weigh(tokens).softmax(dim=1) * tokens).sum(dim=1)  # (batch, dim)
        logits: Tensor = self.classifier(pooled)
        return logits


class PreNormBlock(nn.Module):
    """x + attention(norm(x)), then x + mlp(norm(x))."""

    def __init__(self, dim: int, heads: int, mlp_dim: int) -> None:
        super().__init__()
        self.heads = heads
        self.attention_norm, self.mlp_norm = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.to_qkv, self.to_out = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.widen, self.narrow = nn.Linear(dim, mlp_dim), nn.Linear(mlp_dim, dim)

    def forward(self, tokens: Tensor) -> Tensor:
        """(batch, tokens, dim) -> (batch, tokens, dim)."""
        parts = self.to_qkv(self.attention_norm(tokens)).chunk(3, dim=-1)
        q, k, v = (part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in parts)
        mixed = nn.functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(start_dim=2)
        tokens = tokens + self.to_out(mixed)
        after: Tensor = tokens + self.narrow(nn.functional.gelu(self.widen(self.mlp_norm(tokens))))
        return after


class ClassTokenTransformer(nn.Module):
    """Dosovitskiy et al. 2020, "An image is worth 16x16 words" (2010.11929), with post-norm blocks and ReLU."""

    def __init__(self, dim: int = 128, depth: int = 6, heads: int = 8, mlp_dim: int = 256) -> None:
        super().__init__()
        self.embed = nn.Conv2d(3, dim, 4, stride=4)
        self.class_token, self.positions = nn.Parameter(torch.zeros(1, 1, dim)), nn.Parameter(torch.zeros(1, 65, dim))
        block = nn.TransformerEncoderLayer(dim, heads, mlp_dim, batch_first=True)
        self.blocks = nn.TransformerEncoder(block, depth, enable_nested_tensor=False)
        self.norm, self.classifier = nn.LayerNorm(dim), nn.Linear(dim, 10)

    def forward(self, images: Tensor) -> Tensor:
        """(batch, 3, 32, 32) -> (batch, 10)."""
        patches = self.embed(images).flatten(2).mT  # (batch, 64, dim)
        tokens = torch.cat([self.class_token.expand(len(images), -1, -1), patches], dim=1) + self.positions
        logits: Tensor = self.classifier(self.norm(self.blocks(tokens)[:, 0]))
        return logits


def resnet_20() -> ImageClassifier:
    """ResNet-20: 0.27 million weights."""
    names = _resnet_names(3)
    return _load(ResidualNetwork(3), "cifar10_resnets/resnet20-12fca82f.th", "12fca82f", names, _IMAGENET)


def resnet_56() -> ImageClassifier:
    """ResNet-56: 0.85 million weights."""
    names = _resnet_names(9)
    return _load(ResidualNetwork(9), "cifar10_resnets/resnet56-4bfd9763.th", "4bfd9763", names, _IMAGENET)


def cct() -> ImageClassifier:
    """A compact convolutional transformer: 0.57 million weights."""
    names = (
        (r"^tokenizer\.tokenizer_layers\.", "tokenizer."),
        (r"^positional_embeddings$", "positions"),
        (r"^pool\.attention_pool\.", "weigh."),
        (r"^fc\.", "classifier."),
        (r"\.attention_pre_norm\.", ".attention_norm."),
        (r"\.mlp_pre_norm\.", ".mlp_norm."),
        (r"\.attention\.in_proj\.", ".to_qkv."),
        (r"\.attention\.out_proj\.", ".to_out."),
        (r"\.mlp\.0\.", ".widen."),
        (r"\.mlp\.3\.", ".narrow."),
    )
    file = "cifar10_cct/model_checkpoint84_59.pt"
    return _load(CompactConvolutionalTransformer(), file, "f37e370f", names, _CIFAR)


def vit() -> ImageClassifier:
    """A vision transformer with 64 patches and a class token: 0.81 million weights."""
    names = (
        (r"^patch_embed\.proj\.", "embed."),
        (r"^cls_token$", "class_token"),
        (r"^pos_embed$", "positions"),
        (r"^transformer\.", "blocks."),
        (r"^mlp_head\.0\.", "norm."),
        (r"^mlp_head\.1\.", "classifier."),
    )
    return _load(ClassTokenTransformer(), "cifar10_vit128/vit_cifar10.pth", "2d061eb1", names, _CIFAR)


def _resnet_names(repeats: int) -> tuple[tuple[str, str], ...]:
    """The names in the files: stages of their own, and in each block two convolutions and two norms."""
    blocks = tuple(
        (rf"^layer{stage + 1}\.{number}\.", f"blocks.{stage * repeats + number}.")
        for stage in range(3)
        for number in range(repeats)
    )
    return (
        (r"^conv1\.", "stem.0."),
        (r"^bn1\.", "stem.1."),
        (r"^linear\.", "classifier."),
        *blocks,
        (r"\.conv1\.", ".first.0."),
        (r"\.bn1\.", ".first.1."),
        (r"\.conv2\.", ".second.0."),
        (r"\.bn2\.", ".second.1."),
    )


def _load(
    network: nn.Module, file: str, digest: str, names: tuple[tuple[str, str], ...], pixels: Preprocessing
) -> ImageClassifier:
    """A network with published weights.

    Arguments:
        network: with random weights.
        file: under the folder of networks.
        digest: the first eight digits of the file's SHA-256.
        names: patterns of names in the file, and what replaces them.
        pixels: with which it was trained.
    """
    path = networks_folder() / file
    if not path.is_file():
        raise UsageError(f"{VARIABLE} has no file {file}; see the docstring of {__name__} for where it comes from")
    found = hashlib.sha256(path.read_bytes()).hexdigest()
    if not found.startswith(digest):
        raise UsageError(f"{path} has sha256 {found[:8]}..., expected {digest}...: it is another file")
    tensors: dict[str, Tensor] = {}
    for published, tensor in read_weights(path)[0].items():
        name = published
        for pattern, own in names:
            name = re.sub(pattern, own, name)
        tensors[name] = tensor
    network = network.float()
    counters = {key: value for key, value in network.state_dict().items() if key.endswith("num_batches_tracked")}
    tensors = counters | tensors  # files of older versions of torch have no such counters; eval mode does not use them
    fill_weights(network, tensors, path)
    return ImageClassifier(network, pixels, f"published network {file}").accept(PIXELS)


def networks_folder() -> Path:
    """The folder of published networks that the environment names."""
    folder = os.environ.get(VARIABLE, "")
    if not folder:
        raise UsageError(f"set {VARIABLE} to the folder of networks that others trained; see docs/pretrained.md")
    if not Path(folder).expanduser().is_dir():
        raise UsageError(f"{VARIABLE}={folder} is no folder")
    return Path(folder).expanduser()
