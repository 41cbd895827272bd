"""Imported by the server that worker processes are forks of: all that they need, and an end when their run is gone."""

from chaos.forks import warm_up

warm_up()
