"""Which kind of bench suits models and inputs."""

from typing import Any

from torch import Tensor

from jostle.data import Dataset
from jostle.data.image_folder import ImageFiles
from jostle.play.bench import Bench, Models
from jostle.play.pictures import PictureBench
from jostle.play.sentences import SentenceBench


def make_bench(models: Models, inputs: Any, *, patch: int | None = None, tokenizer: str | None = None) -> Bench:
    """The bench for these models: of pictures if there are images, of sentences if there are texts.

    Arguments:
        models: by name.
        inputs: to begin with: images, as a ``Dataset`` if their classes are known, image files, or a list of texts.
        patch: height and width of a patch; None for a size that suits the images.
        tokenizer: for models of texts that come without their own.
    """
    if isinstance(inputs, Dataset | Tensor | ImageFiles):
        return PictureBench(models, inputs, patch)
    return SentenceBench(models, list(inputs), tokenizer)
