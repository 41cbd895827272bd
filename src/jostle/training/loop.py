"""One epoch of training: a step for each batch, in an order fixed by the seed, and a check that it did not diverge."""

import contextlib
import copy
import math
from collections.abc import Callable

import torch
from torch import Tensor, nn

from jostle.base.errors import FailureError, UsageError
from jostle.base.interrupts import Uninterrupted
from jostle.base.model import logits_of
from jostle.data import Dataset
from jostle.training.batches import Batches
from jostle.training.evaluation import Evaluation, evaluate
from jostle.training.objective import Augment, Penalty, add_penalty, augment_batch, losses
from jostle.training.precision import autocast, check_precision, gradient_scaler
from jostle.training.randomness import own_randomness
from jostle.training.recipe import Recipe

STEPS_BETWEEN_LOOKS = 200  # Each look reads a number from the device, which must have finished all steps by then.


class Loop:
    """A model with its data, recipe, optimiser, penalty and augmentation.

    The result of an epoch is a function of the weights, the state of ``optimizer`` and ``scaler``, the recipe and the
    number of the epoch, and of nothing else. That holds also with a penalty and an augmentation, if they draw their
    random numbers from torch's global generator, which is seeded for each epoch, and keep no state of their own.
    """

    def __init__(
        self,
        model: nn.Module,
        dataset: Dataset,
        recipe: Recipe,
        device: torch.device,
        penalty: Penalty | None = None,
        augment: Augment | None = None,
    ) -> None:
        check_precision(recipe.precision, model, device)
        self.model, self.dataset, self.recipe, self.device = model, dataset, recipe, device
        if penalty is not None and getattr(augment, "is_inside", False):
            raise UsageError("penalty and an augment inside the model: the penalty would not see its noise; give one")
        self._penalty, self._augment = penalty, augment
        self.optimizer = recipe.build_optimizer(model)
        self.scaler = gradient_scaler(recipe.precision, device)
        self._parameters = list(model.parameters())
        self._batches = Batches(model, dataset)
        self._check_last_batch()

    def train(self, epoch: int, tell: Callable[[int], None]) -> None:
        """One pass over the data; the model ends in eval mode.

        Arguments:
            epoch: its number, from 1.
            tell: called now and then with the number of examples trained on in all epochs.
        """
        before, batch_size = (epoch - 1) * len(self.dataset), self.recipe.batch_size
        for group in self.optimizer.param_groups:
            group["lr"] = self.recipe.lr_of(epoch)
        batches = self._batches.shuffle(batch_size, self.recipe.seed, epoch)
        total = torch.zeros((), device=self.device)
        self.model.train()
        try:
            with own_randomness("dropout", self.recipe.seed, epoch, self.device):
                for step, rows in enumerate(batches, start=1):
                    with Uninterrupted():
                        total = total + self._step(rows)
                    if step % STEPS_BETWEEN_LOOKS == 0:
                        self._check_finite(float(total), f"by step {step} of epoch {epoch}")
                        tell(before + min(step * batch_size, len(self.dataset)))
        finally:
            self.model.eval()
        self._check_finite(float(total), f"in epoch {epoch}")
        # The last step comes after the last loss. If it broke the weights, a checkpoint of them would be of no use.
        if not all(bool(parameter.isfinite().all()) for parameter in self._parameters):
            raise self._divergence(f"a weight is not finite after epoch {epoch}")

    def evaluate(self, epoch: int) -> Evaluation:
        """Loss and accuracy after ``epoch`` epochs, on all examples, in the floating-point type of the weights."""
        with own_randomness("evaluation", self.recipe.seed, epoch, self.device):
            evaluation = evaluate(self.model, self.dataset)
        if epoch == 0 and not math.isfinite(evaluation.loss):
            raise UsageError(
                f"the loss is {evaluation.loss} before training; look for nan or inf in the inputs of "
                f"{self.dataset.name!r} and in the initial weights"
            )
        self._check_finite(evaluation.loss, f"after epoch {epoch}")
        return evaluation

    def _step(self, rows: Tensor) -> Tensor:
        """One step on the examples ``rows``; returns their mean loss before it, still on the device."""
        inputs, labels = self._batches.take(rows)
        noisy: contextlib.AbstractContextManager[None] = contextlib.nullcontext()
        if self._augment is not None:
            inputs, labels, noisy = augment_batch(self._augment, self.model, inputs, labels)
        self.optimizer.zero_grad()
        with autocast(self.recipe.precision, self.device), noisy:
            logits = logits_of(self.model(inputs), name="the model")  # (batch, classes)
        loss = losses(logits, labels).mean()
        if self._penalty is not None:
            with autocast(self.recipe.precision, self.device):
                loss = add_penalty(loss, self._penalty, self.model, inputs, logits)
        torch.autograd.backward(self.scaler.scale(loss))
        if self.recipe.clip is not None:
            self.scaler.unscale_(self.optimizer)
            nn.utils.clip_grad_norm_(self._parameters, self.recipe.clip)
        self.scaler.step(self.optimizer)
        self.scaler.update()
        return loss.detach()

    def _check_finite(self, loss: float, when: str) -> None:
        if not math.isfinite(loss):
            raise self._divergence(f"the loss is {loss} {when}")

    def _divergence(self, what: str) -> FailureError:
        advice = f"lower lr={self.recipe.lr}" + (" or set clip=1.0" if self.recipe.clip is None else "")
        return FailureError(f"training diverged: {what}; {advice}")

    def _check_last_batch(self) -> None:
        """Raise, before any step, if an epoch has a batch of a single example and BatchNorm cannot take it."""
        examples, batch_size = len(self.dataset), self.recipe.batch_size
        has_one = examples % batch_size == 1 % batch_size
        if not has_one or not any(isinstance(each, nn.modules.batchnorm._BatchNorm) for each in self.model.modules()):
            return
        inputs, _ = self._batches.take(torch.tensor([0]))
        try:
            with torch.no_grad(), own_randomness("last batch", self.recipe.seed, 0, self.device):
                copy.deepcopy(self.model).train()(inputs)  # A copy: a pass in training changes the running means.
        except ValueError as error:
            larger = [size for size in range(batch_size + 1, examples + 1) if examples % size != 1]
            advice = f"try batch_size={larger[0]}" if larger else "give at least 2 examples"
            raise UsageError(
                f"batch_size={batch_size} leaves a batch of 1 of the {examples} examples, too few for BatchNorm "
                f"({str(error).splitlines()[0]}); {advice}"
            ) from None
