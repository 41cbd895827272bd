"""What studies of text networks share: the networks, and settings that turn texts into token ids.

Training, following, keeping and comparing is that of ``jostle_papers.trained``, which does not mind what an input is.
"""

from jostle_papers.language.networks import text_networks
from jostle_papers.language.settings import TextTraining

__all__ = ["TextTraining", "text_networks"]
