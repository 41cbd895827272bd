"""The demo: four small networks on real digits, from training to a report. ``jostle demo`` runs it.

``settings`` says what is done, ``run`` does it, ``records`` keeps what was found, ``findings`` puts intervals into
words and ``page`` makes the report of the records. Each is imported when it is used: others share the settings, and
need nothing that draws.
"""
