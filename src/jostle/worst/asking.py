"""A model asked with gradients: only those of the moved token, and nothing of the model is touched."""

import contextlib
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn

from jostle.tokens import Batch, Edit, TokenFunction
from jostle.training.seeding import random_numbers

_BACKWARD = 2  # passes that a backward pass counts as


class GradientFunction(TokenFunction):
    """A ``TokenFunction`` whose outputs can be differentiated with respect to what is put into it."""

    _latest: Tensor | None = None

    @contextlib.contextmanager
    def evaluating(self, seed: int = 0) -> Iterator[None]:
        """Inside: eval mode, no gradients unless asked for, none for parameters, own random numbers. Then all is back.

        Parameters that need no gradient save the memory and time of what only their gradients would need.
        """
        modules = list(self.model.modules()) if isinstance(self.model, nn.Module) else []
        modes = [module.training for module in modules]
        # A tensor made in inference mode can neither be asked to require gradients nor be asked not to.
        wanting = [p for m in modules for p in m.parameters(recurse=False) if p.requires_grad and not p.is_inference()]
        if any(modes):
            self.warnings.append(f"{self.name} was in train mode; it was measured in eval mode and put back")
        try:
            for module in modules:
                module.training = False  # not .eval(), which a module may override to keep a part in train mode
            for parameter in wanting:
                parameter.requires_grad = False
            with random_numbers(seed), torch.inference_mode(mode=False), torch.no_grad():
                yield
        finally:
            for module, mode in zip(modules, modes, strict=True):
                module.training = mode
            for parameter in wanting:
                parameter.requires_grad = True

    def _outputs(self, answer: Any, batch: Batch) -> Tensor:
        self._latest = super()._outputs(answer, batch)
        return self._latest

    def with_graph(self, batch: Batch, edit: Edit | None = None) -> Tensor:
        """Outputs (batch, ...) on the CPU, still attached to what was put in; otherwise as the call."""
        self(batch, edit)  # hands out detached outputs; what it read them from is kept by _outputs
        attached, self._latest = self._latest, None
        assert attached is not None
        return attached.cpu()

    def gradient(self, height: Tensor, moved: Tensor) -> Tensor:
        """d (sum of height) / d moved, in the shape of ``moved`` (batch, dim); counts the backward pass."""
        self.passes += _BACKWARD * len(moved)
        (gradient,) = torch.autograd.grad(height.sum(), moved)
        return gradient
