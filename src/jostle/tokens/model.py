"""A model as a function from a batch to outputs, in eval mode, and what is suspicious about it."""

import contextlib
import functools
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from jostle.base.errors import FailureError, JostleError, UsageError
from jostle.tokens.inputs import Inputs
from jostle.tokens.sites import Edit, Site
from jostle.tokens.sources import Batch
from jostle.tokens.text import check_fits, features
from jostle.tokens.text_views import Embeddings

_CHECKED = 16
_NAMED = 5  # entries of a mapping that a message names
_TOLERANCE = 1e-3


class TokenFunction:
    """A model that answers batches of ``Inputs`` and counts how often it was asked.

    Arguments:
        model: any callable from a batch to outputs (batch, ...): a tensor, the first part of a tuple, or the
            ``logits`` of a mapping or object. Mappings are passed as keyword arguments.
        inputs: what it will be asked about.
        name: how messages call it.
        device: where it runs; by default where its first parameter lives.
    """

    def __init__(
        self, model: Callable[..., Any], inputs: Inputs, name: str = "model", device: str | None = None
    ) -> None:
        if not callable(model):
            raise UsageError(f"{name} of type {type(model).__name__} cannot be called; give an nn.Module or a function")
        self.model, self.inputs, self.name = model, inputs, name
        self.passes = 0
        self.warnings: list[str] = []
        self.is_steady = True
        view = inputs.view
        self.site = Site(model, view, name, takes_whole=True) if isinstance(view, Embeddings) else None
        if inputs.padding is not None:
            check_fits(model, inputs.ids(), inputs.padding, inputs.has_mask, name)
        self.device = _device_of(model)
        if device:
            self._move(device)

    def _move(self, device: str) -> None:
        try:
            self.device = torch.device(device)
            if isinstance(self.model, nn.Module):
                self.model.to(self.device)
        except (RuntimeError, AssertionError) as error:
            raise UsageError(f"device={device!r} cannot be used: {' '.join(str(error).split())}") from None

    @contextlib.contextmanager
    def evaluating(self) -> Iterator[None]:
        """Eval mode and no gradients inside; every module's own mode is put back after."""
        modules = list(self.model.modules()) if isinstance(self.model, nn.Module) else []
        modes = [module.training for module in modules]
        if any(modes):
            self.warnings.append(f"{self.name} was in train mode; it was measured in eval mode and put back")
        try:
            for module in modules:
                module.training = False
            with torch.inference_mode():
                yield
        finally:
            for module, mode in zip(modules, modes, strict=True):
                module.training = mode

    def __call__(self, batch: Batch, edit: Edit | None = None, through: Callable[..., Any] | None = None) -> Tensor:
        """Outputs (batch, ...) of the model, on the CPU.

        Arguments:
            batch: named tensors.
            edit: for ``Embeddings``, what becomes of the embedded sequence on its way through the model.
            through: another way to the model's outputs than calling it, with the arguments it takes.
        """
        if self.device.type != "cpu":
            batch = {key: tensor.to(self.device, non_blocking=True) for key, tensor in batch.items()}
        positional, named = self.inputs.arguments(batch)
        try:
            with self._editing(edit, batch):
                answer = (through or self.model)(*positional, **named)
        except (JostleError, KeyboardInterrupt):
            raise
        except Exception as error:
            shapes = ", ".join(f"{key or 'input'} {tuple(tensor.shape)}" for key, tensor in batch.items())
            reason = " ".join(str(error).split()) + self._dtype_hint(batch) + self._words_hint(error, batch)
            raise FailureError(f"{self.name} raised {type(error).__name__} on a batch of {shapes}: {reason}") from error
        outputs = self._outputs(answer, batch)
        size = len(next(iter(batch.values())))
        if outputs.dim() == 0 or len(outputs) != size:
            raise UsageError(
                f"{self.name} answered {size} inputs with outputs of shape {tuple(outputs.shape)}; "
                f"expected ({size}, classes), ({size}, 1) or ({size},)"
            )
        self.passes += size
        return outputs.detach().cpu()

    def _editing(self, edit: Edit | None, batch: Batch) -> contextlib.AbstractContextManager[None]:
        if edit is None or self.site is None:
            return contextlib.nullcontext()
        rows, columns = batch[self.inputs.key].shape
        return self.site.edited(edit, (rows, columns))

    @property
    def dim(self) -> int:
        """The size of a token that is jostled."""
        return self.sample_token.shape[1]

    def rounding(self, dtype: torch.dtype) -> float:
        """By how much of their size outputs of this type may differ for reasons of rounding alone."""
        parameters = self.model.parameters() if isinstance(self.model, nn.Module) else ()
        kinds = {dtype, *(parameter.dtype for parameter in parameters)}
        return max((float(torch.finfo(kind).eps) ** 0.5 for kind in kinds if kind.is_floating_point), default=0.0)

    @functools.cached_property
    def sample_token(self) -> Tensor:
        """A token like those that are jostled, (1, dim): of the inputs, or embedded by the model."""
        if self.site is None:
            return self.inputs.sample_token()
        seen: list[Tensor] = []

        def look(embedded: Tensor) -> Tensor:
            seen.append(embedded[:, 0].detach().cpu())
            return embedded

        self(self.inputs.batch(np.zeros(1, dtype=np.int64)), look)
        return seen[0]

    def check_steady(self, response: str = "flip") -> None:
        """Note whether the model answers the same input differently twice, or differently in another batch.

        Arguments:
            response: what will be read from the outputs; other responses than flips differ between logits and
                probabilities, which is noted too.
        """
        indices = np.arange(min(_CHECKED, len(self.inputs)))
        first, second = (self(self.inputs.batch(indices)).double() for _ in range(2))
        if not first.isfinite().all():
            return  # said elsewhere, with a count
        self._check_probability(first, response)
        scale = float(first.abs().max()) + 1e-12
        if float((first - second).abs().max()) > _TOLERANCE * scale:
            self.is_steady = False
            self.warnings.append(
                f"{self.name} answers the same input differently twice (dropout or sampling left on?); part of the "
                "measured sensitivity is its own randomness"
            )
        elif len(indices) > 1:
            halves = [self(self.inputs.batch(part)).double() for part in np.array_split(indices, 2)]
            if float((first - torch.cat(halves)).abs().max()) > _TOLERANCE * scale:
                self.warnings.append(
                    f"{self.name} answers an input differently in another batch (batch statistics left on?); results "
                    "depend on batch_size"
                )

    def _check_probability(self, outputs: Tensor, response: str) -> None:
        """Note outputs that look like probabilities: the sign of one says nothing, and changes of several are others.

        The largest of several is the same for logits and probabilities, so flips are the same, too.
        """
        is_fraction = (outputs > 0) & (outputs < 1)
        if response.split(":")[0] != "flip" and outputs.dim() == 2 and outputs.shape[1] > 1:
            is_share = bool(((outputs >= 0) & (outputs <= 1)).all())
            if is_share and float((outputs.sum(dim=1) - 1).abs().max()) < _TOLERANCE:
                self.warnings.append(
                    f"{self.name} gives {outputs.shape[1]} outputs an input, all between 0 and 1, that sum to 1: if "
                    f"those are probabilities, give the logits instead; {response} is a change of the outputs as given"
                )
        if outputs.numel() == len(outputs) and bool(is_fraction.all()):
            self.warnings.append(
                f"{self.name} gives one output an input, all between 0 and 1: if that is a probability, give the logit "
                "or two columns instead; a single output is read by its sign"
            )

    def _dtype_hint(self, batch: Batch) -> str:
        """What to do if the inputs are of another type than the model's parameters."""
        given = batch[self.inputs.key].dtype
        if self.inputs.padding is not None:
            return ""  # token ids are never of the model's type
        held = next((p.dtype for p in self.model.parameters()), given) if isinstance(self.model, nn.Module) else given
        if held == given or not held.is_floating_point:
            return ""
        return f" (the inputs are {given}, the model is {held}: convert the inputs with .to({held}))"

    def _words_hint(self, error: Exception, batch: Batch) -> str:
        """What to look at if a table of the model has no row for an id."""
        ids = batch[self.inputs.key]
        if not isinstance(error, IndexError) or ids.is_floating_point() or not ids.numel():
            return ""
        return (
            f" (the ids of this batch go from {int(ids.min())} to {int(ids.max())}: does the model have a word for "
            "each, also for those that a perturbation puts there, and a position for each token?)"
        )

    def _outputs(self, answer: Any, batch: Batch) -> Tensor:
        if isinstance(answer, Mapping) and "logits" in answer:
            answer = answer["logits"]
        elif hasattr(answer, "logits"):
            answer = answer.logits
        elif isinstance(answer, tuple | list) and answer:
            answer = answer[0]
        elif self.inputs.padding is not None and hasattr(answer, "last_hidden_state"):
            answer = features(answer, self.inputs.real(batch))
        if isinstance(answer, np.ndarray):
            answer = torch.from_numpy(answer)
        if not isinstance(answer, Tensor):
            raise UsageError(f"{self.name} must answer with a tensor of outputs, not {_described(answer)}")
        return answer


def _described(answer: Any) -> str:
    """What a model answered, in a few words; of a mapping, the entries it has instead of logits."""
    if not isinstance(answer, Mapping):
        return type(answer).__name__
    held = ", ".join(repr(key) for key in list(answer)[:_NAMED]) or "nothing"
    more = f" and {len(answer) - _NAMED} more" if len(answer) > _NAMED else ""
    return f"a {type(answer).__name__} with {held}{more}; expected 'logits': return that entry alone, or name it so"


def _device_of(model: Callable[..., Any]) -> torch.device:
    parameter = next(model.parameters(), None) if isinstance(model, nn.Module) else None
    return torch.device("cpu") if parameter is None else parameter.device
