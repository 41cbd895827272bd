import pytest
import torch

from jostle.tokens.padding import close_up, without_free_column
from tests.tokens.made_up_texts import PAD, padded, sentences


@pytest.mark.parametrize("side", ["left", "right"])
def test_deleting_is_the_same_as_never_having_had_the_token(side):
    texts = sentences()
    gone = torch.arange(len(texts)) % torch.tensor([len(text) for text in texts])
    shorter = [torch.cat([text[:at], text[at + 1 :]]) for text, at in zip(texts, gone.tolist(), strict=True)]
    batch, expected = padded(texts, side), padded(shorter, side, width=12)
    columns = gone if side == "right" else gone + 12 - torch.tensor([len(text) for text in texts])
    last = batch["attention_mask"].shape[1] - 1 - batch["attention_mask"].flip(1).argmax(dim=1)
    before = {name: tensor.clone() for name, tensor in batch.items()}
    batch |= before | {"number": torch.arange(len(texts))}
    closed = close_up(batch, "input_ids", columns, last, PAD, side)
    for name in ("input_ids", "attention_mask"):
        assert torch.equal(closed[name], expected[name])
        assert torch.equal(batch[name], before[name])
    assert torch.equal(closed["number"], batch["number"])
    cut = without_free_column(closed, "input_ids", side)
    assert torch.equal(cut["input_ids"], padded(shorter, side, width=11)["input_ids"])
    assert torch.equal(cut["number"], batch["number"])


def test_positions_that_are_given_belong_to_the_nth_token():
    real = torch.tensor([[0, 0, 1, 1, 1], [1, 1, 1, 1, 1]])
    positions = (real.cumsum(dim=1) - 1).clamp(min=0)
    batch = {"ids": torch.tensor([[9, 9, 5, 6, 7], [1, 2, 3, 4, 5]]), "position_ids": positions}
    gone, last = torch.tensor([3, 0]), torch.tensor([4, 4])
    left = close_up(batch, "ids", gone, last, 9, "left")
    assert left["ids"].tolist() == [[9, 9, 9, 5, 7], [9, 2, 3, 4, 5]]
    assert left["position_ids"].tolist() == [[0, 0, 0, 0, 1], [0, 0, 1, 2, 3]]
    right = close_up({name: tensor[1:] for name, tensor in batch.items()}, "ids", gone[1:], last[1:], 9, "right")
    assert right["ids"].tolist() == [[2, 3, 4, 5, 9]]
    assert right["position_ids"].tolist() == [[0, 1, 2, 3, 0]]
