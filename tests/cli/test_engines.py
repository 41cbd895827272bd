"""``--workers`` and ``--engine`` on the command line."""

import json

import numpy as np
import pytest

from jostle.cli import main
from tests.engines.works import pictures


@pytest.fixture
def words(tmp_path):
    np.save(tmp_path / "inputs.npy", pictures(60).numpy())
    (tmp_path / "factory.py").write_text("from tests.engines.works import Net\ndef make():\n    return Net()\n")
    return [
        "--model",
        f"py:{tmp_path}/factory.py:make",
        "--data",
        str(tmp_path / "inputs.npy"),
        "--tokens",
        "patches:4",
    ]


def run(capsys, *words):
    try:
        main(list(words))
    except SystemExit as ended:
        return ended.code or 0, capsys.readouterr()
    return 0, capsys.readouterr()


def test_two_workers_give_the_number_of_one(words, capsys):
    found = []
    for more in ([], ["--workers", "2"], ["--engine", "serial", "--cpus", "1"]):
        code, printed = run(capsys, "measure", *words, "--draws", "2", "--json", "--quiet", *more)
        assert code == 0, printed.err
        found.append(
            {key: value for key, value in json.loads(printed.out).items() if key not in ("seconds", "provenance")}
        )
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--workers", "0"], "workers=0 must be"),
        (["--address", "auto"], "address=auto is for engine=ray"),
        (["--engine", "torchrun"], "needs a process that torchrun started"),
    ],
)
def test_wrong_engines_are_one_clear_line(words, capsys, more, message):
    code, printed = run(capsys, "measure", *words, *more)
    assert code == 2
    assert message in printed.err
