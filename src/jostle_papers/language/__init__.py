"""What studies of text networks share: the networks, and settings that turn texts into token ids.

``jostle_papers.trained`` trains, measures, keeps and compares networks, of images and of texts.
``networks`` has the architectures by name, ``settings`` the choices that images do not have. The studies themselves are
``jostle_papers/p2403_06925/language_*.py``.
"""

from jostle_papers.language.networks import TextSizes, text_networks
from jostle_papers.language.settings import TextTrainingSettings

__all__ = ["TextSizes", "TextTrainingSettings", "text_networks"]
