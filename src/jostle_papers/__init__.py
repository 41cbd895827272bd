"""The experiments: studies of three papers and of our own, and what only they need. The library is ``jostle``.

A study is one figure or table, in one file, from settings to a verdict. ``jostle run NAME`` runs it, ``jostle list
studies`` lists the names. What is in which folder:

* ``p2403_06925``: paper 1, "Transformers Learn Low Sensitivity Functions". Its ``__init__`` says which figure is where.
* ``p2402_09963``: paper 2, "Why are Sensitive Functions Hard for Transformers?".
* ``p2402_02969``: paper 3, "Word Sensitivity of Attention Layers".
* ``own``: questions of our own, and the demo.
* ``trained``, ``language``, ``stacked``: shared by studies that train networks; on texts; many networks at once.
* ``commands``: what this package adds to the command line, ``jostle demo``.

To add a study: write a file with a subclass of ``jostle.studies.Study`` and ``@register`` on it, and add a line for it
to the group ``jostle.studies`` in ``pyproject.toml``. Its name is ``paper/item``, e.g. ``2403.06925/figure-4``, and its
file is called by the item. The file to imitate is ``p2403_06925/language_init.py``, or ``figure_4.py`` if networks are
trained. Settings, cells and records are frozen dataclasses; ``jostle.studies.schema`` says how files hold them.

Records under ``docs/results/studies`` are read by these classes: a new field of a record needs a default, and a change
of a number needs another ``version`` of the study.
"""
