"""``hf:DIR``: a model of Hugging Face transformers from a local folder, as ``save_pretrained`` writes it.

Image classifiers, and text classifiers with their tokenizer; the configuration says which. ``hf:DIR:features`` is an
encoder of texts without a classifier.
"""

from pathlib import Path
from typing import Any

from jostle.integrations import register
from jostle.integrations.huggingface_folder import (
    check_complete,
    check_folder,
    import_transformers,
    kind_of,
    load_network,
    quiet,
)
from jostle.integrations.huggingface_images import preprocessing
from jostle.integrations.image_classifier import ImageClassifier
from jostle.integrations.text_classifier import TextClassifier

__all__ = ["from_huggingface", "preprocessing"]

_FEATURES = "features"


@register("hf")
def from_huggingface(rest: str, seed: int) -> ImageClassifier | TextClassifier:  # noqa: ARG001 - the folder has the weights
    """The classifier in a folder that holds ``config.json`` and ``model.safetensors``, in float32.

    Weights that the folder lacks are an error: transformers would draw them at random and go on. An image classifier
    knows its size, mean and std if there is a ``preprocessor_config.json``; a text classifier finds its tokenizer in
    ``tokenizer.json`` of the same folder. With ``:features`` after the folder, the weights of an encoder are enough; it
    answers with what its pooler gives out, or with the mean of its last layer if the folder has no weights of one.

    Differs: an image keeps its proportions and its middle is cropped, where some processors squash it to a square.
    """
    place, colon, word = rest.rpartition(":")
    wants_features = bool(colon) and word == _FEATURES
    folder, spec = Path(place if wants_features else rest).expanduser(), f"hf:{rest}"
    check_folder(folder if rest else Path("nothing"), spec)
    transformers = import_transformers(spec)
    with quiet(transformers):
        if wants_features:
            return TextClassifier(_encoder(transformers, folder, spec), folder, spec, has_head=False)
        if kind_of(folder, transformers, spec) == "image":
            network, lacking = load_network(transformers, "AutoModelForImageClassification", folder, spec)
            check_complete(lacking, spec)
            return ImageClassifier(network, preprocessing(folder), spec)
        network, lacking = load_network(transformers, "AutoModelForSequenceClassification", folder, spec)
    check_complete(lacking, spec, f"; for what the encoder itself gives out, write {spec}:{_FEATURES}")
    return TextClassifier(network, folder, spec)


def _encoder(transformers: Any, folder: Path, spec: str) -> Any:
    """A network without a classifier; a pooler of which the folder has no weights is left out."""
    network, lacking = load_network(transformers, "AutoModel", folder, spec)
    if lacking and all(name.startswith("pooler.") for name in lacking):
        network, lacking = load_network(transformers, "AutoModel", folder, spec, add_pooling_layer=False)
    check_complete(lacking, spec)
    return network
