"""Tests of datasets see no files but those they make, unless they ask for the real ones."""

import pytest


@pytest.fixture(autouse=True)
def cache(tmp_path_factory, monkeypatch):
    """An empty cache; JOSTLE_DATA is not set."""
    folder = tmp_path_factory.mktemp("cache")
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder))
    monkeypatch.delenv("JOSTLE_DATA", raising=False)
    return folder / "jostle"
