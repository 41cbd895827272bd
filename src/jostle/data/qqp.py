"""Quora question pairs from two files of the balanced partition of Wang, Hamza and Florian (2017), arXiv 1702.03814.

A file is tab-separated without a header: label, first question, second question, number of the pair; quotation marks
are ordinary characters.
"""

import torch

from jostle.data import register_text
from jostle.data.official import FoundFiles, OfficialFile, TextFileDataset
from jostle.data.text_dataset import TextDataset
from jostle.data.text_tables import read_pairs

_FILES = {"train": "bimpm_dev.tsv", "test": "bimpm_test.tsv"}


class Qqp(TextFileDataset):
    """Quora question pairs: 10,000 + 10,000 balanced pairs; 1 if both questions ask the same.

    The development pairs of the partition are the training split and its test pairs the test split, because its large
    training file is hard to get. No pair is in both splits; some single questions are. GLUE's QQP, paper 1's
    (2403.06925), is another sample: 363,846 + 40,430 pairs, 37 % duplicates.
    """

    name = "qqp"
    folders = ("qqp", "QQP", "Quora_question_pair_partition")
    licence = "Quora's terms (non-commercial use)"
    origin = (
        "dev.tsv and test.tsv of Quora_question_pair_partition, the data of arXiv 1702.03814, renamed to bimpm_dev.tsv "
        "and bimpm_test.tsv"
    )
    files = (
        OfficialFile(_FILES["train"], 1_274_548, "cb30d59e673c54be16f41b3b1d88bf427b78bbb1fc56b399856a1c115bd0cd38"),
        OfficialFile(_FILES["test"], 1_272_999, "98718aa027a05b8acbfe4d48d72fa99eaede120a89c8e70362d9d9bf8f6a39a8"),
    )

    def names_of(self, split: str) -> tuple[str, ...]:
        """The one file of the split."""
        return (_FILES[split],)

    def read_texts(self, split: str, found: FoundFiles) -> TextDataset:
        """The pairs of one file, in its order, in which the two labels alternate."""
        rows = read_pairs(found.path(_FILES[split]), columns=4, texts=(1, 2))
        part = "development" if split == "train" else "test"
        note = f"the {part} pairs of the balanced partition of arXiv 1702.03814"
        notes = "; ".join(filter(None, (note, rows.note)))
        return TextDataset(self.name, rows.texts, torch.from_numpy(rows.labels), 2, split, notes)


register_text("qqp")(Qqp())
