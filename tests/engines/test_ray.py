"""A real cluster of Ray on this machine, with two workers, one of which is killed."""

import os

import pytest

import jostle
from jostle.base.errors import FailureError, UsageError
from jostle.engines import Done, Lost, Ray
from tests.engines.toy import Toy
from tests.engines.works import Net, pictures
from tests.estimates.test_workers import IMAGES, plain
from tests.studies.test_runner import content
from tests.studies.toys import make_known

ray = pytest.importorskip("ray", reason="the package ray is not installed")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::ResourceWarning"),  # of Ray's own sockets and processes
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture(scope="module")
def cluster():
    os.environ.setdefault("RAY_raylet_start_wait_time_s", "120")
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    yield Ray(workers=2)
    ray.shutdown()


def test_units_on_two_workers_one_of_which_is_killed(cluster, tmp_path):
    states = []
    units = [("sleep", 3.0, "slow"), ("die_once", str(tmp_path / "mark"), "alive"), *range(6)]
    with cluster.crew(Toy()) as crew:
        assert list(crew.results(units)) == ["slow", "alive", *(number * number for number in range(6))]
        assert crew.deaths == 1
        assert len(set(crew.results([("where", 0.5)] * 6))) == 2
        ended = dict(crew.outcomes([("die",), ("sleep", 4.0, 1)], lambda unit, state: states.append(state)))
        assert isinstance(ended[0], Lost)
        assert ended[1] == Done(1)
        assert states[-1].summary == "halfway"
        with pytest.raises(UsageError, match="no such luck"):
            list(crew.results([("complain", "no such luck")]))


def test_one_measurement_is_that_of_this_process_though_a_worker_is_killed(cluster, tmp_path):
    mark = tmp_path / "mark"
    arguments = IMAGES | {"plan": jostle.Until(half_width=0.03)}
    alone = jostle.measure(Net(), pictures(), **arguments)
    found = jostle.measure(Net(mark=mark, after=2), pictures(), **arguments, engine=cluster)
    assert mark.exists()
    assert plain(found) == plain(alone)
    assert plain(jostle.measure(Net(), pictures(), **arguments, engine="ray", workers=1)) == plain(alone)


def test_no_more_workers_than_there_is_room_for(cluster):
    """A unit that was given to an actor without room would wait for ever."""
    with Ray(workers=7).crew(Toy()) as crew:
        assert list(crew.results(range(20))) == [number * number for number in range(20)]
        assert len(crew.workers) == 2


def test_cells_of_a_study(cluster, tmp_path, monkeypatch):
    make_known(monkeypatch)
    on_ray = jostle.run("toy/noise", out=tmp_path / "ray", engine=cluster, progress=False)
    here = jostle.run("toy/noise", out=tmp_path / "here", progress=False)
    assert content(on_ray.folder) == content(here.folder)


def test_more_than_the_cluster_has_is_one_clear_line(cluster):
    with pytest.raises(UsageError, match="too few for one worker with cpus=64"), Ray(cpus=64).crew(Toy()):
        pass
    with pytest.raises(UsageError, match="too few for one worker with cpus=1 and gpus=1"), Ray(gpus=1).crew(Toy()):
        pass


def test_seven_workers_one_of_which_is_killed_give_the_same_bits(cluster, tmp_path):
    """On a cluster of their own, which the engine starts and ends; also as on the command line."""
    ray.shutdown()
    mark = tmp_path / "mark"
    arguments = IMAGES | {"plan": jostle.Until(half_width=0.03)}
    alone = jostle.measure(Net(), pictures(), **arguments)
    found = jostle.measure(Net(mark=mark, after=2), pictures(), **arguments, engine="ray", workers=7)
    assert mark.exists()
    assert plain(found) == plain(alone)
    assert not ray.is_initialized()


def test_no_cluster_at_an_address_is_one_clear_line(cluster, monkeypatch):
    def refuse(*_, **__):
        raise ConnectionRefusedError("nobody there")

    ray.shutdown()
    monkeypatch.setattr("socket.create_connection", refuse)
    nowhere = Ray(address="127.0.0.1:1")
    with pytest.raises(FailureError, match=r"cannot reach address=127\.0\.0\.1:1 .*nobody"), nowhere.crew(Toy()):
        pass
