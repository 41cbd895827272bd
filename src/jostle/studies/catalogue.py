"""All studies by name. Packages publish them as entry points of the group ``jostle.studies``.

A study's module is imported when the study is asked for. The studies of this repository are in ``jostle_papers``, and
``pyproject.toml`` lists them. Anybody's package can publish more.
"""

from typing import TypeVar

from jostle.base.registry import Registry
from jostle.studies.study import AnyStudy, check_declared

STUDIES = Registry[type[AnyStudy]]("study", group="jostle.studies")
names = STUDIES.names

StudyClass = TypeVar("StudyClass", bound=type[AnyStudy])


def register(study: StudyClass) -> StudyClass:
    """A decorator for a subclass of ``Study``: checks its attributes and files it under its name."""
    check_declared(study)
    STUDIES.register(study.name)(study)
    return study


def get(name: str) -> AnyStudy:
    """The study called ``name``; the error for an unknown name lists near matches."""
    return STUDIES.get(name)()
