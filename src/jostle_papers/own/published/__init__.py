"""Networks that others trained and published, measured as they are.

* ``cifar_10``: four networks of CIFAR-10, written from their papers, and the reading of their published weights.
* ``study``: ``jostle/published-networks``, of these, and ``jostle/published-photographs``, of three networks of
  ImageNet.
"""
