"""``jostle play``: a local page on which people jostle one token and watch the prediction.

``bench`` holds the models and inputs and measures, ``pictures`` and ``sentences`` are its two kinds, ``server`` answers
the page, and ``page.html``, ``page.js`` and ``page.css`` are the page. Nothing leaves the machine.
"""
