"""Training of one network step by step: batches in an order fixed by the seed, Adam, and the state on disk.

``jostle.training.fit`` looks at a network between epochs; a sparse parity is learnt within a few steps, often less than
one epoch of 50,000 examples, so here one can look at any step. What is on disk is a checkpoint of ``jostle.training``
in which steps are counted instead of epochs.
"""

from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from jostle.base.errors import FailureError
from jostle.data import Dataset
from jostle.training import checkpoints, objective
from jostle.training.batches import Batches
from jostle.training.evaluation import Evaluation, predictions
from jostle.training.precision import gradient_scaler
from jostle.training.randomness import order
from jostle.training.recipe import check_same
from jostle_papers.p2403_06925.parity.designs import Design


class Trainer:
    """A network after some steps of training; what a step does depends on the state, the design and the seed alone.

    Arguments:
        network: from bits to logits, (batch, d) -> (batch, 1), on its device.
        data: the training examples.
        design: for batches and Adam.
        seed: of the order of the examples, anew in each epoch.
    """

    def __init__(self, network: nn.Module, data: Dataset, design: Design, seed: int) -> None:
        self.network, self.done = network, 0
        self._design, self._seed, self._count = design, seed, len(data)
        self._batches = Batches(network, data)
        self._parameters = list(network.parameters())
        self._optimizer = torch.optim.Adam(self._parameters, lr=design.lr, foreach=True)
        self._scaler = gradient_scaler("float32", self._parameters[0].device)
        self._epoch, self._order = -1, torch.zeros(0, dtype=torch.int64)

    def advance(self, steps: int) -> None:
        """Train until so many steps are done in all; the network ends in eval mode."""
        self.network.train()
        while self.done < steps:
            self._step(self._rows())
            self.done += 1
        self.network.eval()
        if not all(bool(parameter.isfinite().all()) for parameter in self._parameters):
            raise FailureError(
                f"training diverged before step {self.done}; a smaller lr than {self._design.lr} may help"
            )

    @torch.no_grad()
    def fitted(self, count: int) -> Evaluation:
        """Loss and accuracy on the first ``count`` training examples."""
        inputs, labels = self._batches.slice(0, count)
        logits = torch.cat([self.network(part) for part in torch.split(inputs, 1000)])
        right = (predictions(logits) == labels).double().mean()
        return Evaluation(float(objective.losses(logits, labels).double().mean()), float(right))

    def save(self, path: Path, record: dict[int, Evaluation], settings: dict[str, Any]) -> None:
        """Write the state to a file, with what ``fitted`` gave at each look so far."""
        state = self.network, self._optimizer, self._scaler
        checkpoints.save(path, *state, epochs=self.done, record=record, settings=settings)

    def load(self, path: Path, settings: dict[str, Any]) -> dict[int, Evaluation]:
        """Put the state of a file in place and return its record; settings of another run are one clear line."""
        saved = checkpoints.load(path)
        check_same(saved.settings, settings, path)
        checkpoints.restore(saved, self.network, self._optimizer, self._scaler, path)
        self.done = saved.epochs
        return saved.record

    def _rows(self) -> Tensor:
        """The examples of the next step."""
        epoch, step = divmod(self.done, self._design.steps)
        if epoch != self._epoch:
            self._epoch, self._order = epoch, order(self._count, self._seed, epoch + 1)
        return self._order[step * self._design.batch_size : (step + 1) * self._design.batch_size]

    def _step(self, rows: Tensor) -> None:
        inputs, labels = self._batches.take(rows)
        self._optimizer.zero_grad()
        torch.autograd.backward(objective.losses(self.network(inputs), labels).mean())
        if self._design.clip is not None:
            nn.utils.clip_grad_norm_(self._parameters, self._design.clip)
        self._optimizer.step()
