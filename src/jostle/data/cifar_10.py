"""CIFAR-10 from its official binary batches. Krizhevsky (2009), Learning multiple layers of features from tiny images.

A batch is a sequence of records of 3,073 bytes: a label, then 1,024 red, 1,024 green and 1,024 blue pixels, each row by
row.
"""

from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

import numpy as np

from jostle.base.errors import UsageError
from jostle.data import register
from jostle.data.images import Images, check_file_labels
from jostle.data.official import FileDataset, FoundFiles, OfficialFile

RECORD = 1 + 3 * 32 * 32
_BATCH_SIZE = 30_730_000
_TRAIN = tuple(f"data_batch_{number}.bin" for number in range(1, 6))
_TEST = "test_batch.bin"


class Cifar10(FileDataset):
    """CIFAR-10: 50,000 training and 10,000 test images, 32 x 32 in colour, from the official binary batches.

    If training batches are absent, the others make the training split; the dataset's note says so.
    """

    name = "cifar-10"
    folders = ("cifar10", "cifar-10", "cifar-10-batches-bin")
    licence = "none stated; cite Krizhevsky (2009)"
    files = (
        OfficialFile(_TRAIN[0], _BATCH_SIZE, "cee916563c9f80d84e3cc88e17fdc0941787f1244f00a67874d45b261883ada5"),
        OfficialFile(_TRAIN[1], _BATCH_SIZE, "a591ca11fa1708a91ee40f54b3da4784ccd871ecf2137de63f51ada8b3fa57ed"),
        OfficialFile(_TRAIN[2], _BATCH_SIZE, "bbe8596564c0f86427f876058170b84dac6670ddf06d79402899d93ceea26f67"),
        OfficialFile(_TRAIN[3], _BATCH_SIZE, "014e562d6e23c72197cc727519169a60359f5eccd8945ad5a09d710285ff4e48"),
        OfficialFile(_TRAIN[4], _BATCH_SIZE, "755304fc0b379caeae8c14f0dac912fbc7d6cd469eb67a1029a08a39453a9add"),
        OfficialFile(_TEST, _BATCH_SIZE, "8e2eb146ae340b09e24670f29cabc6326dba54da8789dab6768acf480273f65b"),
    )
    archive = OfficialFile(
        "cifar-10-binary.tar.gz",
        170_052_171,
        "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd",
        ("https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",),
    )

    def names_of(self, split: str) -> tuple[str, ...]:
        """Five batches for training, one for testing."""
        return _TRAIN if split == "train" else (_TEST,)

    def missing(self, split: str, names: Collection[str]) -> tuple[str, ...]:
        """One batch is enough."""
        wanted = self.names_of(split)
        return () if set(wanted) & set(names) else wanted

    def read(self, split: str, found: FoundFiles) -> Images:
        """The batches in the folder, in the order of their numbers."""
        wanted = self.names_of(split)
        present = [name for name in wanted if name in found.names]
        images = read_batches([found.path(name) for name in present])
        absent = [name for name in wanted if name not in found.names]
        if not absent:
            return images
        note = f"{len(images.labels):,} training images of {len(present)} of 5 batches; absent: {', '.join(absent)}"
        return replace(images, note=note)


def read_batches(paths: list[Path]) -> Images:
    """The images of binary batches, one after the other, # (examples, 3, 32, 32)."""
    counts = [_count(path) for path in paths]
    records = np.empty((sum(counts), RECORD), dtype=np.uint8)
    start = 0
    for path, count in zip(paths, counts, strict=True):
        part = records[start : start + count]
        try:
            with path.open("rb") as file:
                size = file.readinto(part.data)
        except OSError as error:
            raise UsageError(f"{path} cannot be read: {error.strerror or error}") from None
        if size != part.size:
            raise UsageError(f"{path} became shorter while it was read: {size:,} of {part.size:,} bytes")
        check_file_labels(part[:, 0], 10, path)
        start += count
    return Images(records[:, 1:].reshape(-1, 3, 32, 32), records[:, 0], classes=10)


def _count(path: Path) -> int:
    """Number of records of a batch."""
    size = path.stat().st_size
    if size == 0 or size % RECORD:
        raise UsageError(
            f"{path} has {size:,} bytes; a CIFAR-10 binary batch has a multiple of {RECORD:,}, 1 label and 3,072 "
            f"pixels an image"
        )
    return size // RECORD


register("cifar-10")(Cifar10())
