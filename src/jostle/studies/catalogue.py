"""All studies by name. A study's module is imported when a name is first asked for."""

from typing import Any, TypeVar

from jostle.registry import Registry
from jostle.studies.study import Study, check_declared

# One line for each module with a study in it.
MODULES: list[str] = [
    "jostle.studies.p2403_06925.proposition_3_1",
    "jostle.studies.p2403_06925.proposition_3_2",
    "jostle.studies.p2403_06925.table_1",
    "jostle.studies.p2403_06925.figure_3",
    "jostle.studies.p2403_06925.figure_4",
    "jostle.studies.p2403_06925.figure_13",
    "jostle.studies.p2403_06925.figure_14",
    "jostle.studies.p2403_06925.figure_17",
    "jostle.studies.p2403_06925.figure_18",
    "jostle.studies.p2403_06925.figure_19",
    "jostle.studies.p2403_06925.figure_9",
    "jostle.studies.p2403_06925.depth_heads",
    "jostle.studies.p2403_06925.table_2",
    "jostle.studies.p2403_06925.table_4",
    "jostle.studies.p2403_06925.table_4_language",
    "jostle.studies.p2403_06925.imagenet_pretrained",
    "jostle.studies.p2403_06925.grokking",
    "jostle.studies.p2403_06925.language_sensitivity",
    "jostle.studies.p2403_06925.language_positions",
    "jostle.studies.p2403_06925.language_variance",
    "jostle.studies.p2403_06925.language_validation",
    "jostle.studies.p2403_06925.language_gpt2",
    "jostle.studies.p2403_06925.language_choices",
    "jostle.studies.p2403_06925.language_init",
    "jostle.studies.p2403_06925.figure_23",
    "jostle.studies.p2403_06925.figure_26",
    "jostle.studies.p2402_02969.word_sensitivity",
    "jostle.studies.p2402_02969.context_modification",
    "jostle.studies.p2402_09963.figure_1",
    "jostle.studies.p2402_09963.figure_2",
    "jostle.studies.p2402_09963.figure_3",
    "jostle.studies.p2402_09963.figure_4",
    "jostle.studies.p2402_09963.scratchpad",
    "jostle.studies.p2402_09963.length_generalisation",
    "jostle.studies.p2402_09963.random_init",
    "jostle.studies.jostle.architectures",
    "jostle.studies.jostle.average_to_worst",
    "jostle.studies.jostle.average_to_worst_maps",
    "jostle.studies.jostle.correlations",
    "jostle.studies.jostle.dose_response",
    "jostle.studies.jostle.longer_training",
    "jostle.studies.jostle.random_networks",
    "jostle.studies.jostle.graded_sensitivity",
    "jostle.studies.jostle.sharpness_architectures",
]

STUDIES = Registry[type[Study[Any]]]("study", MODULES)
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
