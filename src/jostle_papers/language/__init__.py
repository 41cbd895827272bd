"""What studies of text networks share: the networks, and settings that turn texts into token ids.

Training, measuring, keeping and comparing are those of ``jostle_papers.trained``, for which an input is an input.
``networks`` has the architectures by name, ``settings`` the choices that images do not have. The studies themselves are
``jostle_papers/p2403_06925/language_*.py``.
"""

from jostle_papers.language.networks import TextSizes, text_networks
from jostle_papers.language.settings import TextTrainingSettings

__all__ = ["TextSizes", "TextTrainingSettings", "text_networks"]
