"""The loop: what is on disk after an end, a kill and Ctrl-C; looks and states in their order; what is refused."""

import json
import os
import signal
from dataclasses import dataclass
from typing import Self

import pytest
import torch
from safetensors.torch import load_file, save_file

from jostle.base.errors import FailureError, KeptFileError, UsageError
from jostle_papers.stacked.adamw import StackedAdamW
from jostle_papers.stacked.looks import LOOKS, Looks
from jostle_papers.stacked.state import (
    FORMAT,
    STATE,
    StackedState,
    check_folder,
    kept_steps,
    load_settings,
    load_state,
    load_weights,
    save_state,
    save_weights,
)
from jostle_papers.stacked.training import StackedTraining, check_seeds, train_stacked

STEPS = 23


@dataclass
class Counted(StackedState):
    """A state that remembers one thing more."""

    total: torch.Tensor

    @classmethod
    def start(cls, weights: torch.Tensor) -> Self:
        return cls(weights, StackedAdamW.start(weights), torch.zeros(len(weights)))


class Slope(StackedTraining[Counted]):
    """Networks of four weights that go down to their step number; a look every five steps."""

    kind, lr, weight_decay = Counted, 0.1, 0.01

    def __init__(self, steps=STEPS, at_step=None, **described):
        self.steps, self.at_step, self.described, self.events = steps, at_step or (lambda state: None), described, []

    def describe(self):
        return {"kind": "slope", **self.described}

    def start(self):
        return Counted.start(torch.arange(8.0).view(2, 4))

    def rates(self, state):
        return self.lr if state.steps < self.steps else 0.0

    def loss_and_gradient(self, state):
        self.at_step(state)
        apart = state.weights - state.steps
        return apart.square().sum(dim=1), 2 * apart

    def note(self, state, losses, rates):
        state.total = state.total + losses * rates

    def next_look(self, step):
        return step - step % 5 + 5

    def look(self, state):
        self.events.append(("look", state.steps))

    def share(self, state):
        return state.steps / self.steps

    def summary(self, state, losses):
        return f"loss {losses.tolist()}"


def bits(state):
    return [(name, tensor.tolist()) for name, tensor in state.tensors().items()], state.steps


def run(training, folder, **options):
    return train_stacked(training, folder=folder, **{"checkpoint_every": 4} | options)


def test_looks_come_before_the_state_of_their_step(tmp_path, monkeypatch):
    training = Slope()

    def noting(folder, state, settings):
        training.events.append(("state", state.steps))
        save_state(folder, state, settings)

    monkeypatch.setattr("jostle_papers.stacked.training.save_state", noting)
    run(training, tmp_path)
    looks = [("look", step) for step in range(0, 21, 5)]
    states = [("state", step) for step in (0, 4, 8, 12, 16, 20, STEPS)]
    assert sorted(training.events, key=lambda event: (event[1], event[0])) == training.events
    assert set(training.events) == {*looks, *states}


@pytest.mark.parametrize("stop_at", [1, 4, 5, 13, 22])
def test_a_training_that_was_killed_ends_with_the_same_bits(stop_at, tmp_path):
    whole = run(Slope(), None)

    class Stop(BaseException):
        pass

    def stop(state):
        if state.steps == stop_at:
            raise Stop

    with pytest.raises(Stop):
        run(Slope(at_step=stop), tmp_path)
    again = Slope()
    assert bits(run(again, tmp_path)) == bits(whole)
    last = stop_at - stop_at % 4  # the last state
    assert again.events == [("look", step) for step in range(last - last % 5 + 5, STEPS, 5)]


def test_ctrl_c_writes_the_state_after_the_step(tmp_path):
    before = signal.getsignal(signal.SIGINT)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        whole = run(Slope(), None)

        def press(state):
            if state.steps == 9:
                os.kill(os.getpid(), signal.SIGINT)

        with pytest.raises(KeyboardInterrupt):
            run(Slope(at_step=press), tmp_path)
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
        state = load_state(Counted, tmp_path, Slope().describe())
        assert state.steps == 10
        assert bits(run(Slope(), tmp_path)) == bits(whole)
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_second_ctrl_c_does_not_wait(tmp_path):
    before = signal.getsignal(signal.SIGINT)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:

        def press(state):
            if state.steps == 9:
                os.kill(os.getpid(), signal.SIGINT)
                os.kill(os.getpid(), signal.SIGINT)

        with pytest.raises(KeyboardInterrupt):
            run(Slope(at_step=press), tmp_path)
        assert load_state(Counted, tmp_path, Slope().describe()).steps == 8  # the last checkpoint
    finally:
        signal.signal(signal.SIGINT, before)


def test_somebody_elses_ctrl_c_is_left_to_them(tmp_path):
    before, seen = signal.getsignal(signal.SIGINT), []
    signal.signal(signal.SIGINT, lambda *_: seen.append(1))
    try:
        run(Slope(at_step=lambda state: os.kill(os.getpid(), signal.SIGINT) if state.steps == 3 else None), tmp_path)
        assert seen == [1]
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_finished_training_takes_no_step_and_can_be_made_longer(tmp_path):
    run(Slope(), tmp_path)
    before = (tmp_path / STATE).stat().st_mtime_ns
    run(Slope(at_step=pytest.fail), tmp_path)
    assert (tmp_path / STATE).stat().st_mtime_ns == before
    assert bits(run(Slope(steps=31), tmp_path)) == bits(run(Slope(steps=31), None))


def test_progress_is_told_at_looks_states_and_every_twenty_steps():
    shown = []
    run(Slope(), None, progress=shown.append)
    assert [state.passes for state in shown] == [4, 5, 8, 10, 12, 15, 16, 20]
    assert shown[0].unit == "steps"
    assert shown[-1].share == 20 / STEPS


def test_divergence_is_one_line_and_leaves_the_last_good_state(tmp_path):
    def break_weights(state):
        if state.steps == 6:
            state.weights.fill_(torch.inf)

    with pytest.raises(FailureError, match=r"training diverged before step 8; a smaller lr than 0\.1 may help"):
        run(Slope(at_step=break_weights), tmp_path)
    assert load_state(Counted, tmp_path, Slope().describe()).steps == 4


def test_a_device_that_is_not_there_is_one_line():
    with pytest.raises(UsageError, match="device='cuda:77' cannot be used"):
        run(Slope(), None, device="cuda:77")


def test_a_state_of_another_training_is_refused(tmp_path):
    run(Slope(seed=1), tmp_path)
    assert load_settings(tmp_path) == {"kind": "slope", "seed": 1}
    with pytest.raises(UsageError, match="is from another run: seed was 1, is 2"):
        run(Slope(seed=2), tmp_path)
    with pytest.raises(UsageError, match="there is no training in"):
        load_settings(tmp_path / "other")


@pytest.mark.parametrize(
    ("training", "message"),
    [
        ("{}", "is damaged"),
        ("no JSON", "is damaged"),
        (json.dumps({"steps": 3, "settings": []}), "is damaged"),
        (json.dumps({"steps": 3, "settings": {"kind": "slope"}}), "is damaged"),  # without tensors
    ],
)
def test_a_damaged_state_is_one_line(training, message, tmp_path):
    save_file({"weights": torch.zeros(1)}, tmp_path / STATE, metadata={"format": FORMAT, "training": training})
    with pytest.raises(UsageError, match=message):
        run(Slope(), tmp_path)


def test_a_file_of_another_format_is_one_line(tmp_path):
    save_file({"weights": torch.zeros(1)}, tmp_path / STATE)
    with pytest.raises(UsageError, match="has format None, this version reads"):
        run(Slope(), tmp_path)
    (tmp_path / STATE).write_bytes(b"nothing")
    with pytest.raises(UsageError, match="cannot be read"):
        run(Slope(), tmp_path)


def test_kept_weights_come_back(tmp_path):
    weights = torch.arange(6.0).view(2, 3)
    save_weights(tmp_path, 12, weights)
    save_weights(tmp_path, 3, 2 * weights)
    assert kept_steps(tmp_path) == (3, 12)
    assert torch.equal(load_weights(tmp_path, 3), 2 * weights)
    assert list(load_file(tmp_path / "weights-000012.safetensors")) == ["weights"]
    with pytest.raises(UsageError, match="there are no weights of step 4"):
        load_weights(tmp_path, 4)


def test_a_flipped_bit_in_kept_weights_is_noticed(tmp_path):
    save_weights(tmp_path, 3, torch.arange(5.0))
    path = tmp_path / "weights-000003.safetensors"
    content = bytearray(path.read_bytes())
    content[-2] ^= 1
    path.write_bytes(content)
    with pytest.raises(KeptFileError, match="its checksum does not fit"):
        load_weights(tmp_path, 3)


def test_a_folder_is_checked(tmp_path):
    (tmp_path / "taken").write_text("mine")
    with pytest.raises(UsageError, match="taken' is a file; expected a folder"):
        check_folder(tmp_path / "taken")
    with pytest.raises(UsageError, match="folder=3 must be the path of a folder"):
        check_folder(3)
    assert check_folder(str(tmp_path / "new")).is_dir()


@pytest.mark.parametrize("in_memory", [True, False])
def test_looks_are_found_by_step_and_none_is_written_twice(in_memory, tmp_path):
    looks = Looks(None if in_memory else tmp_path, {"seed": 0})
    assert looks.take(5, lambda: {"value": 0.5}) == {"value": 0.5}
    looks.take(0, lambda: {"value": 0.0})
    assert looks.take(5, pytest.fail) == {"value": 0.5}
    assert looks.until() == {0: {"value": 0.0}, 5: {"value": 0.5}}
    assert looks.until(4) == {0: {"value": 0.0}}
    assert looks.last(9) == (5, {"value": 0.5})


def test_looks_survive_and_belong_to_one_training(tmp_path):
    Looks(tmp_path, {"seed": 0}).take(3, lambda: {"value": 0.1})
    assert Looks(tmp_path, {"seed": 0}).until() == {3: {"value": 0.1}}
    with pytest.raises(UsageError, match="is from another run: seed was 0, is 1"):
        Looks(tmp_path, {"seed": 1})
    with pytest.raises(UsageError, match=f"{LOOKS} has no look up to step 2; delete {STATE}"):
        Looks(tmp_path, {"seed": 0}).last(2)


@pytest.mark.parametrize("seeds", [[], 3, [-1], [2**64], [True], "ab", [0.5], None])
def test_wrong_seeds_are_one_line(seeds):
    with pytest.raises(UsageError, match=r"seeds=.* must be whole numbers from 0 to 2\^64 - 1, one for each network"):
        check_seeds(seeds)
