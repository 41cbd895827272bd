"""The files that commands of README and docs name: small random models of images and texts, and a few inputs.

Names are the ones that the pages use, so that a command runs as it is printed.
"""

from pathlib import Path

import numpy as np
import torch
from PIL import Image

from tests.integrations import families, text_folders

MODEL = """
import torch
from torch import nn


def make():
    torch.manual_seed({seed})
    return nn.Sequential(nn.Flatten(), nn.Linear(64, 10))


def bits():
    torch.manual_seed(0)
    return nn.Linear(10, 1)
"""


PIPELINE = """
from sklearn.datasets import load_iris
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler


def flowers():
    data = load_iris(as_frame=True)
    return make_pipeline(StandardScaler(), LogisticRegression()).fit(data.data, data.target_names[data.target])


def reviews():
    texts = ["the film is good", "a good plot", "a bad film", "not good but bad", "dull", "very fine"]
    return make_pipeline(TfidfVectorizer(), LogisticRegression()).fit(texts, [1, 1, 0, 0, 0, 1])
"""


RUN = """
import lightning
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

x = torch.randn(320, 1, 8, 8)
loader = DataLoader(TensorDataset(x, (x[:, 0, :4].sum(dim=(1, 2)) > 0).long()), batch_size=32)


class Classifier(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.network = nn.Sequential(nn.Flatten(), nn.Linear(64, 2))

    def forward(self, images):
        return self.network(images)

    def training_step(self, batch, _):
        return nn.functional.cross_entropy(self(batch[0]), batch[1])

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=0.01)
"""


def fill(folder: Path) -> None:
    """Write all files."""
    numbers = np.random.default_rng(0)
    (folder / "my_run.py").write_text(RUN)
    (folder / "my_pipeline.py").write_text(PIPELINE)
    tables(folder)
    for seed, name in enumerate(("my_model", "a", "b")):
        (folder / f"{name}.py").write_text(MODEL.format(seed=seed))
    np.save(folder / "inputs.npy", numbers.standard_normal((40, 1, 8, 8)).astype(np.float32))
    for number in range(4):
        path = folder / "my_photographs" / f"{number}.png"
        path.parent.mkdir(exist_ok=True)
        Image.fromarray(numbers.integers(0, 256, (40, 52, 3), dtype=np.uint8)).save(path)
    texts(folder)
    vision(folder / "my_classifier")


def texts(folder: Path) -> None:
    """A classifier, a language model, reviews and prompts."""
    for name in ("my_text_classifier", "my-classifier"):
        (folder / name).mkdir()
        text_folders.save(folder / name)
    families.network("gpt2").float().save_pretrained(folder / "my-language-model")
    text_folders.tokenizer("gpt2").save(str(folder / "my-language-model" / "tokenizer.json"))
    long = [text for text in text_folders.TEXTS if " " in text]  # a text of one word cannot lose it
    rows = [f'"{text}",{number % 2}' for number, text in enumerate(long)]
    (folder / "reviews.csv").write_text("review,sentiment\n" + "\n".join(rows) + "\n")
    (folder / "prompts.csv").write_text("prompt\nthe film is good\na dull plot\nnot bad\n")


def tables(folder: Path) -> None:
    """A table of flowers, and a network in ONNX's format."""
    from onnx import TensorProto
    from sklearn.datasets import load_iris

    from tests.integrations import onnx_files

    data = load_iris(as_frame=True)
    frame = data.data.assign(species=data.target_names[data.target])
    frame.to_csv(folder / "flowers.csv", index=False)
    weights = np.random.default_rng(0).normal(size=(64, 10)).astype(np.float32)
    nodes = [("Flatten", ["x"], ["row"], {}), ("MatMul", ["row", "w"], ["logits"], {})]
    names = {"x": (TensorProto.FLOAT, ["batch", 1, 8, 8])}, {"logits": (TensorProto.FLOAT, ["batch", 10])}
    onnx_files.write(folder / "my_network.onnx", nodes, *names, {"w": weights})


def vision(folder: Path) -> None:
    """A small vision transformer with its image processor."""
    from transformers import ViTConfig, ViTForImageClassification

    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    ViTForImageClassification(ViTConfig(image_size=32, patch_size=16, num_labels=3, **sizes)).float().save_pretrained(
        folder
    )
    (folder / "preprocessor_config.json").write_text(
        '{"image_processor_type": "ViTImageProcessor", "size": {"height": 32, "width": 32}, '
        '"image_mean": [0.5, 0.5, 0.5], "image_std": [0.5, 0.5, 0.5]}'
    )
