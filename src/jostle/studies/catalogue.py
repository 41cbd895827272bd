"""All studies by name. Packages publish them as entry points of the group ``jostle.studies``.

A study's module is imported when the study is asked for. The studies of this repository are in ``jostle_papers``, and
``pyproject.toml`` lists them. Anybody's package can publish more.
"""

from typing import Any, TypeVar

from jostle.base.registry import Registry
from jostle.studies.study import Study, check_declared

STUDIES = Registry[type[Study[Any]]]("study", group="jostle.studies")
names = STUDIES.names

AnyStudy = TypeVar("AnyStudy", bound=type[Study[Any]])


def register(study: AnyStudy) -> AnyStudy:
    """A decorator for a subclass of ``Study``: checks what it says about itself and files it under its name."""
    check_declared(study)
    STUDIES.register(study.name)(study)
    return study


def get(name: str) -> Study[Any]:
    """The study called ``name``; an unknown name answers with near matches."""
    return STUDIES.get(name)()
