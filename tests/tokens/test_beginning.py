"""Texts cut at one of their tokens."""

import torch

from jostle.tokens.padding import beginning_at


def test_every_text_begins_at_its_own_column_and_the_rest_is_padding():
    ids = torch.arange(1, 11).view(2, 5)
    batch = {"ids": ids, "mask": torch.ones_like(ids), "labels": torch.tensor([7, 8])}
    for begin, width in (([0, 0], 5), ([1, 4], 4), ([2, 3], 2), ([4, 4], 1)):
        cut = beginning_at(batch, "ids", torch.tensor(begin), width)
        for row, first in enumerate(begin):
            kept = ids[row, first : first + width].tolist()
            assert cut["ids"][row].tolist() == kept + [0] * (width - len(kept))
            assert cut["mask"][row].tolist() == [1] * len(kept) + [0] * (width - len(kept))
        assert cut["labels"] is batch["labels"]
    assert ids.tolist() == torch.arange(1, 11).view(2, 5).tolist()
