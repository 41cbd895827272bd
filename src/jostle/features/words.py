"""Words as paper 3 assumes them: vectors of norm sqrt(d). Made up here; of real texts in ``embedded``."""

import math

import torch
from torch import Tensor

from jostle.errors import UsageError
from jostle.features.feature_map import gaussian
from jostle.models.sizes import check_positive


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

    x = sqrt(cosine) m + sqrt(1 - cosine) g, put on the sphere, with m of norm sqrt(d), the same for all words of a
    seed, and g a standard normal vector: two words have a cosine of about ``cosine``.

    Arguments:
        count, num_tokens, dim, seed, split: as in ``isotropic_words``.
        cosine: of two words, on average, from 0 to below 1.
    """
    check_positive(count=count, num_tokens=num_tokens, dim=dim)
    if not 0 <= cosine < 1:
        raise UsageError(f"cosine={cosine!r} must be a number from 0 to below 1")
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
