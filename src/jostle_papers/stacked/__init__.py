"""Training of networks whose weights lie in one tensor, a row for each network; shared by the papers.

``layout`` says where each weight lies in its row, ``adamw`` is the optimiser, ``state`` what is on disk, and ``looks``
the measurements along the way. ``training`` is the one loop: with checkpoints, resumption, looks, progress, a device
and Ctrl-C. A subclass of ``StackedTraining`` tells the loop what is trained: first weights, loss and gradient, learning
rates, and when to look. ``trajectory`` holds the curves that come out.
"""
