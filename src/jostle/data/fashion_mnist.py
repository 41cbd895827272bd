"""Fashion-MNIST from its official files. Xiao, Rasul and Vollgraf (2017), arXiv 1708.07747."""

from collections.abc import Collection
from dataclasses import replace

from jostle.base.errors import UsageError
from jostle.data import register
from jostle.data.idx import read_images
from jostle.data.images import Images
from jostle.data.official import FileDataset, FoundFiles, OfficialFile

HELD_OUT = 10_000
_ADDRESSES = (
    "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
    "https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion/",
)
_TRAIN = ("train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz")
_TEST = ("t10k-images-idx3-ubyte.gz", "t10k-labels-idx1-ubyte.gz")


def _file(name: str, size: int, sha256: str) -> OfficialFile:
    return OfficialFile(name, size, sha256, tuple(address + name for address in _ADDRESSES))


class FashionMnist(FileDataset):
    """Fashion-MNIST: 60,000 training and 10,000 test pictures of clothes, 28 x 28 grey pixels, from the official files.

    If the test images are absent, the last 10,000 training images are the test split and the others the training split,
    so that no image is in both; the dataset's note says so.
    """

    name = "fashion-mnist"
    folders = ("fashion_mnist", "fashion-mnist", "FashionMNIST/raw")
    licence = "MIT (Zalando)"
    files = (
        _file(_TRAIN[0], 26_421_880, "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84"),
        _file(_TRAIN[1], 29_515, "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845"),
        _file(_TEST[0], 4_422_102, "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073"),
        _file(_TEST[1], 5_148, "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5"),
    )

    def names_of(self, split: str) -> tuple[str, ...]:
        """All four files for training: which images are for training depends on whether the test images are there."""
        return _TRAIN + _TEST if split == "train" else _TEST

    def missing(self, split: str, names: Collection[str]) -> tuple[str, ...]:
        """The training files are enough for both splits, the test files for one."""
        if split == "test" and set(_TEST) <= set(names):
            return ()
        return tuple(name for name in _TRAIN if name not in names)

    def read(self, split: str, found: FoundFiles) -> Images:
        """The official split, or, without test images, the one made of the training images."""
        is_official = found.names.issuperset(_TEST)
        names = _TEST if is_official and split == "test" else _TRAIN
        images = read_images(found.path(names[0]), found.path(names[1]), classes=10)
        return images if is_official else _hold_out(images, split, found)


def _hold_out(images: Images, split: str, found: FoundFiles) -> Images:
    kept = len(images.labels) - HELD_OUT
    if kept < 1:
        raise UsageError(
            f"{found.folder / _TRAIN[0]} holds {len(images.labels):,} images; without {_TEST[0]} the last {HELD_OUT:,} "
            f"are held out for testing, so more are needed"
        )
    rows = slice(kept) if split == "train" else slice(kept, None)
    note = (
        f"no official test images: the last {HELD_OUT:,} training images are the test split, "
        f"the first {kept:,} the training split"
    )
    return replace(images, pixels=images.pixels[rows], labels=images.labels[rows], note=note)


register("fashion-mnist")(FashionMnist())
