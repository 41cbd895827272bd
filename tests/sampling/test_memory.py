"""What was remembered last is found again, and nothing else."""

import numpy as np
import pytest
import torch

from jostle.sampling import memory
from jostle.sampling.memory import Memory


@pytest.mark.parametrize("room", [3, 7, 10, 100])
def test_inputs_are_found_where_they_were_put_last(room, monkeypatch):
    monkeypatch.setattr(memory, "REMEMBERED_NUMBERS", 3 * room)
    held, seen, random = Memory(10), [], np.random.Generator(np.random.PCG64(0))
    for number in range(50):
        indices = random.permutation(10)[: random.integers(1, 5)]
        held.put(
            indices,
            [torch.from_numpy(indices)[:, None] + torch.tensor([0, 100 * number]), torch.zeros(len(indices), 1)],
        )
        seen += [(index, number) for index in indices[: min(room, 10)].tolist()]
        latest = dict(seen)
        known = np.flatnonzero(held.knows(np.arange(10)))
        rows = held.parts[0][held.slots(known)]
        assert rows.tolist() == [[index, index + 100 * latest[index]] for index in known.tolist()]
        assert set(known.tolist()) == {index for index, _ in seen[-min(room, 10) :]}


def test_all_are_kept_if_there_is_room_also_if_some_came_before():
    held = Memory(6)
    for indices in ([0, 1], [0, 1, 2, 3], [4, 5]):
        held.put(np.asarray(indices), [torch.zeros(len(indices), 1)])
    assert held.knows(np.arange(6)).all()


def test_rows_may_be_shorter_than_their_place():
    held = Memory(2, [3])
    held.put(np.asarray([1]), [torch.tensor([[1.0, 2.0]])])
    held.put(np.asarray([0]), [torch.tensor([[3.0, 4.0, 5.0]])])
    assert held.pick(0, held.slots(np.asarray([1, 0])), torch.tensor([0, 1])).tolist() == [[1, 2], [3, 4]]
    assert held.parts[0].shape == (2, 3)
