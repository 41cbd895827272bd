"""One measurement in units: 1, 2 or 7 workers give the same bits, stopping included."""

import numpy as np
import pytest
import torch
from torch import nn

import jostle
from jostle.base.errors import UsageError
from jostle.engines import Automatic, Processes
from jostle.engines.processes import cores
from jostle.sampling.units import _gains
from tests.engines.works import Copies, Net, pictures

IMAGES = {"tokens": "patches:4", "perturbation": "gaussian-noise:1"}


def plain(result):
    """All of a result but the time it took."""
    return plain_record(result.to_dict())


def plain_record(part):
    """The same of a part of a record."""
    if isinstance(part, dict):
        return {key: plain_record(value) for key, value in part.items() if key not in ("seconds", "provenance")}
    return [plain_record(each) for each in part] if isinstance(part, list) else part


def same(ask, *, workers=(1, 2, 7)):
    """What ``ask(engine)`` gives with this process and with copies of the work, which must be equal; the units."""
    alone = plain(ask(None))
    for count in workers:
        engine = Copies(count)
        assert plain(ask(engine)) == alone
        assert "TrialUnit" in engine.log
    return engine.log


@pytest.mark.parametrize(
    ("response", "plan"),
    [
        ("flip", "grid:3"),
        ("margin", "grid:2"),
        ("flip", "until:half_width=0.02"),
        ("margin", "until:relative=0.1"),
        ("flip", "until:half_width=0.001,max_passes=3000"),
    ],
)
def test_any_number_of_workers_gives_the_same_bits(response, plan):
    log = same(lambda engine: jostle.measure(Net(), pictures(), **IMAGES, response=response, plan=plan, engine=engine))
    assert {"crew", "CleanUnit", "TrialUnit"} == set(log)


def test_the_population_stops_at_the_same_draw():
    plan = jostle.Until(half_width=0.03)
    same(lambda engine: jostle.measure(Net(), pictures(), **IMAGES, target="population", plan=plan, engine=engine))


def test_adaptive_sampling_goes_the_same_way():
    def ask(engine):
        return jostle.measure(
            Net(),
            pictures(2000),
            tokens="patches:2",
            perturbation="gaussian-noise:0.1",
            plan=jostle.Until(relative=0.1),
            engine=engine,
        )

    same(ask, workers=(2,))
    assert any("sampled adaptively" in note for note in ask(None).notes)


@pytest.mark.parametrize("plan", ["until:decided=true", "until:half_width=0.05", "grid:1"])
def test_comparisons(plan):
    models = {"a": Net(0), "b": Net(1)}
    same(lambda engine: jostle.compare(models, pictures(), **IMAGES, plan=plan, engine=engine), workers=(3,))


def test_sweeps_keep_their_workers_from_strength_to_strength():
    def ask(engine):
        return jostle.sweep(
            Net(), pictures(), tokens="patches:4", stds=[0, 0.5, 1.5], plan="until:half_width=0.05", engine=engine
        )

    log = same(ask, workers=(2,))
    assert log.count("crew") == 1


class Files(torch.utils.data.Dataset):
    """Pictures that are read one by one."""

    def __init__(self, count=60):
        self.held = pictures(count)

    def __len__(self):
        return len(self.held)

    def __getitem__(self, index):
        return self.held[index]


def test_inputs_that_are_read_one_by_one():
    same(
        lambda engine: jostle.measure(Net(), Files(), **IMAGES, plan="until:half_width=0.05", engine=engine),
        workers=(2,),
    )


@pytest.mark.parametrize("name", ["text-encoder", "text-lstm"])
def test_texts_of_all_lengths(name):
    """The second one reads on from what came before the jostled token."""
    network = jostle.models.create(name, vocabulary=43, dim=16, depth=2, seed=0)
    lengths = torch.randint(4, 13, (80,), generator=torch.Generator().manual_seed(2))
    mask = torch.arange(12)[None] < lengths[:, None]
    ids = torch.randint(5, 40, (80, 12), generator=torch.Generator().manual_seed(3)) * mask
    texts = {"input_ids": ids, "attention_mask": mask.long()}
    arguments = {"tokens": "embeddings", "perturbation": "gaussian-noise:1", "plan": "grid:2"}
    same(lambda engine: jostle.measure(network, texts, **arguments, response="margin", engine=engine), workers=(2,))


def test_a_network_that_is_read_from_memory_stays_here():
    torch.manual_seed(0)
    chain = nn.Sequential(nn.Flatten(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10)).float()
    engine = Copies(2)
    found = jostle.measure(chain, pictures(), **IMAGES, plan="grid:2", engine=engine)
    alone = jostle.measure(chain, pictures(), **IMAGES, plan="grid:2")
    assert plain(found) == plain(alone)  # notes too: a result says the same, whoever was asked
    assert "note: measured in one process" in str(found)  # people are told
    assert jostle.Measurement.from_dict(found.to_dict()).remarks == found.remarks != alone.remarks
    assert not engine.log


def test_a_killed_process_changes_no_bit(tmp_path):
    """Two real processes; the first to get a third batch is killed in the middle of a unit."""
    mark = tmp_path / "mark"
    arguments = IMAGES | {"plan": jostle.Until(half_width=0.03), "response": "flip"}
    alone = jostle.measure(Net(), pictures(), **arguments)
    states = []
    with_deaths = jostle.measure(
        Net(mark=mark, after=2), pictures(), **arguments, engine=Processes(2), progress=states.append
    )
    assert mark.exists()
    assert plain(with_deaths) == plain(alone)
    assert states[-1].passes == alone.passes


@pytest.mark.slow
def test_seven_real_processes():
    ask = lambda **where: jostle.measure(Net(), pictures(), **IMAGES, plan="until:half_width=0.01", **where)  # noqa: E731
    assert plain(ask(workers=7)) == plain(ask(workers=2)) == plain(ask(workers=1)) == plain(ask())


def test_a_model_that_cannot_travel(monkeypatch):
    generator = (number for number in range(3))

    class Bound(Net):
        def forward(self, images):
            assert generator is not None
            return super().forward(images)

    with pytest.raises(UsageError, match=r"cannot be sent to other processes .*generator"):
        jostle.measure(Bound(), pictures(), **IMAGES, workers=2)
    monkeypatch.setattr("jostle.sampling.units._SECONDS_TO_JUDGE", 0.0)
    found = jostle.measure(Bound(), pictures(), **IMAGES, engine=Automatic(workers=2, least_seconds=0.0))
    assert any("measured in one process" in note for note in found.remarks)
    assert plain(found) == plain(jostle.measure(Bound(), pictures(), **IMAGES))


class Slow(nn.Module):
    """Takes its time, so that there is something to save."""

    def __init__(self, network, seconds=0.05):
        super().__init__()
        self.network, self.seconds = network, seconds

    def forward(self, images):
        import time

        time.sleep(self.seconds)
        return self.network(images)


class TestAutomatic:
    """Begins here and goes over to processes."""

    def test_short_work_stays_here(self, monkeypatch):
        monkeypatch.setattr(Processes, "crew", lambda *_: pytest.fail("processes were started"))
        jostle.measure(Net(), pictures(), **IMAGES, plan="grid:1")

    @pytest.mark.slow
    def test_long_work_goes_over_and_changes_no_bit(self, monkeypatch):
        slow, started = Slow(Net(), 0.25), []
        crew = Processes.crew
        monkeypatch.setattr(Processes, "crew", lambda self, work: started.append(self) or crew(self, work))
        found = jostle.measure(slow, pictures(), **IMAGES, plan="grid:30", engine=Automatic(2, least_seconds=5.0))
        assert started
        alone = jostle.measure(slow.network, pictures(), **IMAGES, plan="grid:30", engine="serial")
        assert plain(found) == plain(alone)

    def test_threads_must_not_change_a_bit(self, monkeypatch):
        """A network whose answers depend on the number of threads stays here."""
        if torch.get_num_threads() == 1:
            monkeypatch.setattr(torch, "get_num_threads", lambda: 2)
            monkeypatch.setattr(torch, "set_num_threads", lambda _: None)
        request = jostle.estimates.request.Request.build(**IMAGES)
        evaluation = request.prepare({"model": Net()}, pictures())
        answers = iter([0.0, 0.0, 1e-7, 0.0])
        network = evaluation.functions[0].model
        evaluation.functions[0].model = lambda images: network(images) + next(answers)
        assert not _gains(evaluation, 2)


def test_processors_are_counted():
    assert cores() >= 1
    assert np.isfinite(cores())
