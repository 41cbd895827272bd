"""MNIST from its four official files. LeCun, Cortes and Burges, the MNIST database of handwritten digits."""

from jostle.data import register
from jostle.data.idx import read_images
from jostle.data.images import Images
from jostle.data.official import FileDataset, FoundFiles, OfficialFile

# The authors' own address no longer answers reliably; these hold the same files.
_MIRRORS = ("https://ossci-datasets.s3.amazonaws.com/mnist/", "https://storage.googleapis.com/cvdf-datasets/mnist/")
_NAMES = {
    "train": ("train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz"),
    "test": ("t10k-images-idx3-ubyte.gz", "t10k-labels-idx1-ubyte.gz"),
}


def _file(name: str, size: int, sha256: str) -> OfficialFile:
    return OfficialFile(name, size, sha256, tuple(mirror + name for mirror in _MIRRORS))


class Mnist(FileDataset):
    """MNIST: 60,000 training and 10,000 test digits, 28 x 28 grey pixels, from the official files."""

    name = "mnist"
    folders = ("mnist", "MNIST/raw")
    licence = "CC BY-SA 3.0"
    files = (
        _file(_NAMES["train"][0], 9_912_422, "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609"),
        _file(_NAMES["train"][1], 28_881, "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c"),
        _file(_NAMES["test"][0], 1_648_877, "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6"),
        _file(_NAMES["test"][1], 4_542, "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6"),
    )

    def names_of(self, split: str) -> tuple[str, ...]:
        """Images and labels of the split."""
        return _NAMES[split]

    def read(self, split: str, found: FoundFiles) -> Images:
        """The official split."""
        images, labels = _NAMES[split]
        return read_images(found.path(images), found.path(labels), classes=10)


register("mnist")(Mnist())
