"""Networks that others trained and published, measured as they are: ``jostle/published-networks``.

* ``cifar_10``: four networks of CIFAR-10, written from their papers, and the reading of their published weights.
* ``study``: these and three networks of ImageNet under the same noise.
"""
