"""Random feature maps of n words, how far one word moves them, and what linear models on them can learn of one word.

Source: paper 3, "Word Sensitivity of Attention Layers" (2402.02969).

``random_features`` and ``attention`` are the maps, each with an exact update for one moved word; ``lazy_gaussian`` is a
random matrix that is never in memory. ``word_sensitivity`` searches for the worst change. ``interpolation`` and
``modification`` ask whether a model that learnt an input is right about the input with one word changed. ``words`` are
the inputs, made up or of real texts.
"""

from jostle_papers.p2402_02969.features.attention import RandomAttention
from jostle_papers.p2402_02969.features.feature_map import (
    FEATURE_MAPS,
    FeatureMap,
    OneWord,
    RecomputedWord,
    create,
    names,
    register,
)
from jostle_papers.p2402_02969.features.interpolation import TRAININGS, Interpolator, LearntModel, ModifiedInputs
from jostle_papers.p2402_02969.features.lazy_gaussian import LazyGaussian
from jostle_papers.p2402_02969.features.modification import Modification, modify_word
from jostle_papers.p2402_02969.features.random_features import (
    DeepRandomFeatures,
    DrawnFeatures,
    RandomFeatures,
    wide_change,
)
from jostle_papers.p2402_02969.features.word_sensitivity import (
    WordAscent,
    WordSensitivity,
    ascend,
    sensitivity_at,
    word_sensitivity,
)
from jostle_papers.p2402_02969.features.words import (
    embedded_words,
    isotropic_words,
    linear_labels,
    minilm_folder,
    on_sphere,
    shared_mean_words,
    word_embeddings,
)

__all__ = [
    "FEATURE_MAPS",
    "TRAININGS",
    "DeepRandomFeatures",
    "DrawnFeatures",
    "FeatureMap",
    "Interpolator",
    "LazyGaussian",
    "LearntModel",
    "Modification",
    "ModifiedInputs",
    "OneWord",
    "RandomAttention",
    "RandomFeatures",
    "RecomputedWord",
    "WordAscent",
    "WordSensitivity",
    "ascend",
    "create",
    "embedded_words",
    "isotropic_words",
    "linear_labels",
    "minilm_folder",
    "modify_word",
    "names",
    "on_sphere",
    "register",
    "sensitivity_at",
    "shared_mean_words",
    "wide_change",
    "word_embeddings",
    "word_sensitivity",
]
