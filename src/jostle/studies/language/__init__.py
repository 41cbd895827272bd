"""What studies of text networks share: the networks, and settings that turn texts into token ids.

Training, following, keeping and comparing is that of ``jostle.studies.trained``, which does not mind what an input is.
"""

from jostle.studies.language.networks import text_networks
from jostle.studies.language.settings import TextTraining

__all__ = ["TextTraining", "text_networks"]
