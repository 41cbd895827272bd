"""An attack on jostle that is kept: kills, mutated files, mutated command lines, odd arguments; `make chaos` runs it.

``forks`` starts commands cheaply, ``kills``, ``files``, ``words`` and ``functions`` are the four attacks, ``record``
keeps the counts, and ``__main__`` is the command.
"""
