"""Which code a kept network depends on: all of it that decides numbers, and nothing of what people read."""

import sys

import pytest

from jostle import FailureError
from jostle_papers.trained import networks


@pytest.fixture
def package(tmp_path, monkeypatch):
    folder = tmp_path / "made_up_code"
    folder.mkdir()
    (folder / "__init__.py").write_text('"""Code."""\n\nFACTOR = 2\n')
    monkeypatch.syspath_prepend(tmp_path)
    yield folder
    sys.modules.pop("made_up_code", None)


def code_of(*packages):
    return networks._code.__wrapped__(packages)


def test_a_package_that_does_not_exist_is_an_error():
    with pytest.raises(FailureError, match=r"code of jostle\.renamed decides trained networks, but there is no such"):
        code_of("jostle.models", "jostle.renamed")


def test_every_package_of_the_keys_exists():
    for packages in (networks._DECIDING, networks._LOWERING, networks._MEASURING):
        assert code_of(*packages)


def test_what_people_read_does_not_count(package):
    before = code_of("made_up_code")
    (package / "__init__.py").write_text('"""Code, better explained."""\n# A comment.\nFACTOR = 2\n')
    assert code_of("made_up_code") == before


def test_what_the_machine_reads_counts(package):
    before = code_of("made_up_code")
    (package / "__init__.py").write_text('"""Code."""\n\nFACTOR = 3\n')
    changed = code_of("made_up_code")
    (package / "more.py").write_text('"""More."""\n')
    assert len({before, changed, code_of("made_up_code")}) == 3
