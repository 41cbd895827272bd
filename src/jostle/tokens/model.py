"""A model that is called on inputs: it counts its passes, and collects warnings about the model.

``jostle.base.model`` calls any model and finds the logits in what it returns.
"""

import contextlib
import functools
import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from jostle.base.errors import UsageError
from jostle.base.interrupts import Uninterrupted
from jostle.base.model import call, check_outputs, device_of, dtype_hint, eval_mode, logits_of, on_device
from jostle.base.products import quick_products
from jostle.data.table import DataTable
from jostle.integrations.answers import Asked
from jostle.integrations.callables import callable_of
from jostle.integrations.lexicon import TextFunction
from jostle.responses import Flip, Margin, Response
from jostle.tokens.inputs import Inputs
from jostle.tokens.readout import Readout
from jostle.tokens.sites import Edit, Site
from jostle.tokens.sources import MASK_KEY, Batch
from jostle.tokens.text import check_fits, features
from jostle.tokens.text_views import Embeddings
from jostle.tokens.views import Inside

_CHECKED = 16
_TOLERANCE = 1e-3


class TokenFunction:
    """A model that answers batches of ``Inputs`` and counts how many inputs it answered.

    Attributes:
        passes: inputs answered so far.
        warnings: what is suspicious about the model.
        notes: what is worth knowing about how it was asked, and is nothing to worry about.
        widest: bytes of the largest tensor that the model makes on its way, for one input; known after
            ``check_steady``.
        attends: whether torch's own attention is on that way; known after ``check_steady``.
        numbers: how many numbers its last answer had for each input.

    Arguments:
        model: any callable from a batch to outputs (batch, ...): a tensor, the first part of a tuple, or the
            ``logits`` of a mapping or object. Mappings are passed as keyword arguments.
        inputs: what it will be asked about.
        name: how messages call it.
        device: where it runs; by default where its first parameter is.
        readout: which of its answers are read, if it answers at every token of a text.
    """

    def __init__(
        self,
        model: Callable[..., Any],
        inputs: Inputs,
        name: str = "model",
        device: str | None = None,
        readout: Readout = Readout("answer"),  # noqa: B008 - it is frozen
    ) -> None:
        self.model, self.inputs, self.name = _asked(model, inputs, name), inputs, name
        self.readout = readout
        readout.check(model, name)
        self.passes = self.numbers = 0
        self.warnings: list[str] = []
        self.notes: list[str] = []
        self.is_steady = True
        self.widest = 0
        self.attends = False
        view = inputs.view
        self.site = Site(model, view, name, takes_whole=True) if isinstance(view, Embeddings | Inside) else None
        if inputs.padding is not None:
            check_fits(model, inputs.ids(), inputs.padding, inputs.has_mask, name)
        self.device = device_of(model) if device is None else on_device(device, model)

    def move(self, device: str) -> None:
        """Ask the model there from now on."""
        self.device = on_device(device, self.model)

    @contextlib.contextmanager
    def evaluating(self) -> Iterator[None]:
        """Inside, the model is in eval mode and no gradients are recorded; afterwards every part has its own mode."""
        with eval_mode(self.model) as was_training, torch.inference_mode(), quick_products(self.model):
            if was_training:
                self.notes.append(f"{self.name} was in train mode; it was measured in eval mode and put back")
            yield

    def __call__(self, batch: Batch, edit: Edit | None = None, through: Callable[..., Any] | None = None) -> Tensor:
        """Outputs (batch, ...) of the model, on the CPU.

        Arguments:
            batch: named tensors.
            edit: for ``Embeddings``, what becomes of the embedded sequence on its way through the model.
            through: another way to the model's outputs than calling it, with the arguments it takes.
        """
        if self.device.type != "cpu":
            batch = {key: tensor.to(self.device, non_blocking=True) for key, tensor in batch.items()}
        positional, named = self._arguments(batch)
        is_torch = isinstance(self.model, nn.Module)  # any other function may take minutes
        with Uninterrupted() if is_torch else contextlib.nullcontext(), self._editing(edit, batch):
            hint = functools.partial(self._hint, batch)
            answer = call(through or self.model, *positional, named=named, name=self.name, hint=hint)
        outputs = self.read_outputs(answer, batch)
        size = len(next(iter(batch.values())))
        check_outputs(outputs, size, name=self.name)
        self.passes += size * (self.model.calls if isinstance(self.model, Asked) else 1)
        self.numbers = outputs[:1].numel()
        return outputs.detach().cpu()

    def read_outputs(self, answer: Any, batch: Batch) -> Tensor:
        """The outputs (batch, ...) in the model's answer.

        Of an encoder without a classifier, its features; of a model that answers at every token of a text, what the
        ``readout`` picks.
        """
        if self.inputs.padding is None:
            return logits_of(answer, name=self.name)
        if hasattr(answer, "last_hidden_state") and not hasattr(answer, "logits"):
            return features(answer, self.inputs.real(batch))
        outputs, real = logits_of(answer, name=self.name), self.inputs.answered(batch)
        by_token = outputs.dim() == 3 and outputs.shape[:2] == real.shape
        if self.readout.reads_tokens and not by_token:
            raise UsageError(
                f"{self.name} answers {len(real)} texts of {real.shape[1]} tokens with outputs of shape "
                f"{tuple(outputs.shape)}; expected logits for each token, (batch, tokens, vocabulary)"
            )
        if not by_token or self.readout.at == "whole":
            return outputs
        return self.readout.read(outputs, real, self.inputs.answers)

    def _arguments(self, batch: Batch) -> tuple[tuple[Tensor, ...], dict[str, Tensor]]:
        """What the model is called with; a model without an ``attention_mask`` gets the ids alone.

        Padding is on the right where answers at tokens are read, so a model that reads in order does not see it.
        """
        positional, named = self.inputs.arguments(batch)
        if self.inputs.is_aligned and set(named) == {self.inputs.key, MASK_KEY} and not self._takes_mask:
            return (named[self.inputs.key],), {}
        return positional, named

    @functools.cached_property
    def _takes_mask(self) -> bool:
        """Whether the model can be called with an attention mask."""
        parameters = self._parameters
        if parameters is None:
            return True
        return MASK_KEY in parameters or any(each.kind is each.VAR_KEYWORD for each in parameters.values())

    @functools.cached_property
    def _parameters(self) -> Mapping[str, inspect.Parameter] | None:
        """What the model can be called with, by name; None if it does not tell."""
        called = self.model.forward if isinstance(self.model, nn.Module) else self.model
        try:
            return inspect.signature(called).parameters
        except (TypeError, ValueError):
            return None

    def _editing(self, edit: Edit | None, batch: Batch) -> contextlib.AbstractContextManager[None]:
        if edit is None or self.site is None:
            return contextlib.nullcontext()
        rows, columns = batch[self.inputs.key].shape[:2]
        return self.site.edited(edit, (rows, columns if self.inputs.padding is not None else self.inputs.num_tokens))

    def _hint(self, batch: Batch, error: BaseException) -> str:
        """What to look at after an error: names, ids without a word, or inputs of another type than the model."""
        if isinstance(error, TypeError) and "unexpected keyword argument" in str(error):
            taken = ", ".join(self._parameters or ("unknown",))
            return f" (entries of the inputs are given by name, and the names of its arguments are: {taken})"
        given = batch[self.inputs.key]
        if isinstance(error, IndexError) and not given.is_floating_point() and given.numel():
            return (
                f" (the ids of this batch go from {int(given.min())} to {int(given.max())}: does the model have a word "
                "for each, also for those that a perturbation puts there, and a position for each token?)"
            )
        return "" if self.inputs.padding is not None else dtype_hint(self.model, [given], whole_numbers=True)

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

    def check_steady(self, response: Response | None = None) -> None:
        """Warn if the model answers the same input differently twice, or differently in another batch.

        Arguments:
            response: what will be read from the outputs. If it is not the same for logits and probabilities, outputs
                that look like probabilities are warned about too.
        """
        indices = np.arange(min(_CHECKED, len(self.inputs)))
        with Uninterrupted() if isinstance(self.model, nn.Module) else contextlib.nullcontext(), _Sizes() as sizes:
            first = self(self.inputs.batch(indices)).double()
        self.widest, self.attends = sizes.largest // len(indices), sizes.attends
        second = self(self.inputs.batch(indices)).double()
        if not first.isfinite().all():
            return  # an error says so where clean outputs are read, with a count
        self._check_probabilities(first, response)
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

    def _check_probabilities(self, outputs: Tensor, response: Response | None) -> None:
        """Warn of outputs that look like probabilities where logits are expected."""
        if response is not None and not response.reads_ranks and outputs.dim() == 2 and outputs.shape[1] > 1:
            is_share = bool(((outputs >= 0) & (outputs <= 1)).all())
            if is_share and float((outputs.sum(dim=1) - 1).abs().max()) < _TOLERANCE:
                self.warnings.append(
                    f"{self.name} gives {outputs.shape[1]} outputs per input, all between 0 and 1, that sum to 1: if "
                    "those are probabilities, give the logits instead; "
                    f"{response.describe()} is a change of the outputs as given"
                )
        if (response is None or isinstance(response, Flip | Margin)) and _are_labels_apart(outputs):
            self.notes.append(
                f"{self.name} gives {outputs.shape[1]} outputs per input, all between 0 and 1, that do not sum to 1: "
                "if an input can have several labels at once, mind that only the largest output is looked at; for one "
                "label, measure a model that gives its logit"
            )
        reads_sign = response is None or isinstance(response, Flip | Margin)
        if reads_sign and getattr(getattr(self.model, "function", self.model), "is_regression", False):
            self.warnings.append(
                f"{self.name} predicts a number and no class, so a flip is a change of its sign: "
                "response='absolute-change' says by how much the number changes"
            )
            return
        if reads_sign and outputs.numel() == len(outputs) and bool(((outputs > 0) & (outputs < 1)).all()):
            self.warnings.append(
                f"{self.name} gives one output per input, all between 0 and 1: if that is a probability, give the "
                "logit or two columns instead; a single output is read by its sign"
            )


def _are_labels_apart(outputs: Tensor) -> bool:
    """Whether outputs look like probabilities of labels that do not exclude each other: sigmoids, not a softmax."""
    if outputs.dim() != 2 or outputs.shape[1] < 2:
        return False
    is_inside = bool(((outputs > 0) & (outputs < 1)).all())
    return is_inside and float((outputs.sum(dim=1) - 1).abs().min()) > _TOLERANCE


def _asked(model: Any, inputs: Inputs, name: str) -> Callable[..., Any]:
    """The model as a callable that takes batches of these inputs.

    What is no module gets texts as strings if they were cut into words, and rows of a frame as such a frame.
    """
    if isinstance(model, nn.Module | TextFunction | _RowFunction):
        if inputs.lexicon is not None and isinstance(model, nn.Module):
            raise UsageError(f"{name} is a module, and the texts are cut into words for a function of strings")
        return model
    function, lexicon, table = callable_of(model, name), inputs.lexicon, inputs.table
    if lexicon is not None:
        return TextFunction(function, lexicon)
    return _RowFunction(function, table) if table is not None and table.frame is not None else function


class _RowFunction:
    """A function of frames as a function of tensors."""

    def __init__(self, function: Callable[..., Any], table: DataTable) -> None:
        self.function, self.table = function, table

    def __call__(self, rows: Tensor) -> Any:
        return self.function(self.table.framed(rows))


class _Sizes(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Inside, the size of the largest tensor that is computed, in bytes; views of others do not count.

    And whether torch's fused attention is among the operations.
    """

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # to skip it, torch would import all of torch._dynamo, which takes over a second

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.largest, self.attends = 0, False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = func(*args, **(kwargs or {}))
        self.attends |= "scaled_dot_product" in func._schema.name
        is_new = all(returned.alias_info is None for returned in func._schema.returns)
        if is_new and isinstance(made, Tensor) and made.layout == torch.strided:  # sparse ones have no such size
            self.largest = max(self.largest, made.nbytes)
        return made
