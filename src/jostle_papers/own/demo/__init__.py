"""The demo: four small networks on real digits, from training to a report. ``jostle demo`` runs it.

``settings`` says what is done, ``run`` does it, ``records`` keeps what was found, ``findings`` puts intervals into
words and ``page`` makes the report of the records.
"""

from jostle_papers.own.demo.page import page
from jostle_papers.own.demo.records import DemoRecords
from jostle_papers.own.demo.run import Demo
from jostle_papers.own.demo.settings import FULL, QUICK, DemoNetwork, DemoSettings

__all__ = ["FULL", "QUICK", "Demo", "DemoNetwork", "DemoRecords", "DemoSettings", "page"]
