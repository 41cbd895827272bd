"""The demo: four small networks on real digits, from training to a report. Left of here: report.

``settings`` says what is done, ``run`` does it once and records it, ``findings`` puts intervals into words, ``page``
makes the report of the records.
"""

from jostle_papers.own.demo.page import page
from jostle_papers.own.demo.run import Demo
from jostle_papers.own.demo.settings import FULL, QUICK, Network, Settings

__all__ = ["FULL", "QUICK", "Demo", "Network", "Settings", "page"]
