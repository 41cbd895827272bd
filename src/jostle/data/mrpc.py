"""MRPC from its two official files. Dolan and Brockett (2005), "Automatically constructing a corpus of sentential
paraphrases".

A file is tab-separated with a header, CRLF and a byte order mark; quotation marks are ordinary characters.
"""

import torch

from jostle.data import register_text
from jostle.data.official import FoundFiles, OfficialFile, TextFileDataset
from jostle.data.text_dataset import TextDataset
from jostle.data.text_tables import read_pairs

_ADDRESS = "https://dl.fbaipublicfiles.com/senteval/senteval_data/"
_FILES = {"train": "msr_paraphrase_train.txt", "test": "msr_paraphrase_test.txt"}
_HEADER = ("Quality", "#1 ID", "#2 ID", "#1 String", "#2 String")


def _file(split: str, size: int, sha256: str) -> OfficialFile:
    return OfficialFile(_FILES[split], size, sha256, (_ADDRESS + _FILES[split],))


class Mrpc(TextFileDataset):
    """MRPC: 4,076 training and 1,725 test pairs of news sentences; 1 if one is a paraphrase of the other.

    Two thirds of the pairs are paraphrases. These are the official splits; GLUE makes another one of the same
    training file, 3,668 + 408.
    """

    name = "mrpc"
    folders = ("mrpc", "MRPC")
    licence = "Microsoft Research terms (research use)"
    origin = f"published at {_ADDRESS}"
    # Sizes and checksums of the files at the address, as a widely used list of datasets gives them; below those of a
    # second copy that is in use.
    files = (
        _file("train", 1_047_044, "60a9b09084528f0673eedee2b69cb941920f0b8cd0eeccefc464a98768457f89"),
        _file("test", 441_275, "a04e271090879aaba6423d65b94950c089298587d9c084bf9cd7439bd785f784"),
    )
    other_copies = (
        _file("train", 1_026_746, "2174e11735d71a0f852d51f77fe098baf52ac01a5dfc54b62ddb41b9837b9ebf"),
        _file("test", 432_882, "51a1f197d8786712d2f0d97700f5be653b7488a96cde00e158159350d23e3d90"),
    )

    def names_of(self, split: str) -> tuple[str, ...]:
        """The one file of the split."""
        return (_FILES[split],)

    def read_texts(self, split: str, found: FoundFiles) -> TextDataset:
        """The official split, in the order of the file."""
        rows = read_pairs(found.path(_FILES[split]), columns=5, texts=(3, 4), header=_HEADER)
        return TextDataset(self.name, rows.texts, torch.from_numpy(rows.labels), 2, split, rows.note)


register_text("mrpc")(Mrpc())
