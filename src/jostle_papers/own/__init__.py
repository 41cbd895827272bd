"""Questions of our own, beyond the papers.

Study, and where it is:

* ``jostle/average-to-worst``: from the average change of a token to the worst, trained networks.
  ``average_to_worst.py``, with ``average_networks.py`` for one network
* ``jostle/average-to-worst-maps``: the same of random maps of words. ``average_to_worst_maps.py``, with
  ``average_maps.py`` for one map. ``average_ladder.py`` has what both share: the ladder of rungs and its figure.
* ``jostle/correlations``, ``jostle/correlations-cifar``: sensitivity against robustness and flatness.
  ``correlations.py``
* ``jostle/dose-response``: a penalty on sensitivity, from none to strong. ``dose_response.py``. Studies of the penalty
  share ``penalties.py``.
* ``jostle/graded-sensitivity``: how hard are functions between the least and the most sensitive?
  ``graded_sensitivity.py``
* ``jostle/longer-training``: sensitivity after the last training error. ``longer_training.py``
* ``jostle/norms``, ``jostle/norms-texts``: is it the norms, and not attention? ``norms.py``
* ``jostle/published-networks``, ``jostle/published-photographs``: networks that others trained. ``published``
* ``jostle/random-networks``: the sensitivity of networks with random weights. ``random_networks.py``
* ``jostle/sharpness-architectures``: sharpness and sensitivity in networks that are no transformers.
  ``sharpness_architectures.py``

``demo`` is no study: it is what ``jostle demo`` runs.
"""
