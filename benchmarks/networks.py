"""The networks that the benchmarks measure: small ones of each kind, trained on real data and kept.

Images: MLP, CNN and ViT on 2,000 digits, a ResNet of a fifth of the paper's width on 600 images of CIFAR-10. Texts: an
encoder, an LSTM and a decoder on 1,200 pairs of questions. Training takes some minutes once; checkpoints are kept in
``.benchmarks/networks``. A network whose data is not there is left out, and the table says so.
"""

import functools
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

import jostle
from jostle import data, models, training
from jostle.base.errors import JostleError

FOLDER = Path(__file__).resolve().parent.parent / ".benchmarks" / "networks"
_TEXT = {"vocabulary": 2000, "dim": 64, "depth": 2, "max_length": 64}
_ATTENTION = {**_TEXT, "heads": 4, "mlp_dim": 256}


@dataclass(frozen=True)
class Network:
    """One kind of network, and the noise at which it is measured.

    Arguments:
        model, sizes: for ``models.create``.
        dataset, count: what it is trained and measured on.
        tokens: what is jostled.
        stds: noise at which its sensitivity is near 0.0005, 0.005 and 0.05, in this order, found by trying; None where
            it stays below. Of the ViT it is 0.00020 at 0.0015, 0.00046 at 0.003 and 0.00099 at 0.008: its LayerNorm
            makes much of little noise on an empty patch.
        target: training accuracy.
    """

    model: str
    dataset: str
    count: int
    tokens: str
    stds: tuple[float | None, float | None, float | None]
    sizes: dict[str, Any] = field(default_factory=dict)
    target: float = 0.98


NETWORKS = {
    "mlp": Network("mlp", "mnist", 2000, "patches:4", (0.25, 1.2, 5.0)),
    "cnn": Network("cnn", "mnist", 2000, "patches:4", (0.16, 0.9, 3.5), {"width": 16}),
    "vit": Network("vit-small", "mnist", 2000, "patches:4", (0.003, 0.36, 25.0), {"depth": 2, "heads": 4}),
    "resnet": Network("resnet-18", "cifar-10", 600, "patches:4", (0.008, 0.063, 0.4), {"width": 12}, 0.95),
    "encoder": Network("text-encoder", "qqp", 1200, "embeddings", (1.5, 3.35, 7.5), _ATTENTION),
    "lstm": Network("text-lstm", "qqp", 1200, "embeddings", (0.1, 0.7, 10.0), _TEXT),
    "decoder": Network("text-decoder", "qqp", 1200, "embeddings", (0.03, 0.25, 4.0), _ATTENTION),
}


@functools.cache
def inputs_of(name: str) -> data.Dataset:
    """The inputs and labels of a network."""
    network = NETWORKS[name]
    if network.dataset != "qqp":
        return data.load(network.dataset, limit=network.count, progress=False, download=False)
    pairs = data.load("qqp", limit=network.count, progress=False, download=False)
    return data.encode(pairs, data.train_tokenizer(pairs, _TEXT["vocabulary"]), _TEXT["max_length"])


@functools.cache
def trained(name: str) -> tuple[nn.Module, Tensor]:
    """A trained network and its inputs."""
    network, dataset = NETWORKS[name], inputs_of(name)
    sizes = dict(network.sizes)
    if network.dataset != "qqp":
        sizes |= {"image_size": dataset.inputs.shape[-1], "channels": dataset.inputs.shape[1]}
    model = models.create(network.model, seed=0, **sizes)
    FOLDER.mkdir(parents=True, exist_ok=True)
    training.fit(
        model,
        dataset,
        lr=1e-3,
        batch_size=64,
        max_epochs=60,
        target_accuracy=network.target,
        checkpoint=FOLDER / f"{name}.safetensors",
        progress=False,
    )
    return model.eval(), dataset.inputs


def available() -> list[str]:
    """The networks whose data is here."""
    found = []
    for name in NETWORKS:
        try:
            inputs_of(name)
        except JostleError:
            continue
        found.append(name)
    return found


if __name__ == "__main__":
    torch.set_num_threads(1)
    for each in sys.argv[2:] or available():
        model, inputs = trained(each)
        for std in NETWORKS[each].stds:
            found = jostle.measure(
                model,
                inputs,
                tokens=NETWORKS[each].tokens,
                perturbation=f"gaussian-noise:{std}",
                plan=jostle.Until(relative=0.3, max_passes=int(sys.argv[1])),
            )
            print(each, std, f"{found.value:.5f} [{found.low:.5f}, {found.high:.5f}]", found.passes, flush=True)
