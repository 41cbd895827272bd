"""The place inside a model where the embedded text can be changed.

Where a name is known for the module that gives out the embedded text, as in BERT and GPT-2, its output is changed.
Otherwise it is what enters the first of the model's layers, as in Llama and T5.
"""

import contextlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from torch import Tensor, nn

from jostle.base.errors import UsageError
from jostle.integrations.answers import Asked
from jostle.tokens.text_views import Embeddings

Edit = Callable[[Tensor], Tensor]

_BLOCK = "embeddings"
# Of GPT-2 and its kin, of BLOOM, and of BART.
_LAST_STEPS = ("drop", "word_embeddings_layernorm", "layernorm_embedding")
_HIDDEN = "hidden_states"  # how layers of transformers call what they take
_POSITIONS = ("position_embeddings",)  # of XLM, beside words that are called "embeddings"


class Site:
    """A module of a model, whose output or input (batch, tokens, dim) can be replaced while the model runs.

    Attributes:
        path, module: the module.
        is_input: whether what enters the module is replaced, and not what it gives out.

    Arguments:
        model: an ``nn.Module`` that has ``get_input_embeddings()``, as those of transformers and of jostle's zoo.
        view: which module.
        name: how messages call the model.
        takes_whole: whether the caller can change all vectors of a text at once, if the view asks for that.
    """

    def __init__(self, model: Any, view: Embeddings, name: str = "model", *, takes_whole: bool = False) -> None:
        if view.whole and not takes_whole:
            raise UsageError(f"tokens={view.describe()}: here one token is moved at a time, not a whole text")
        if not isinstance(model, nn.Module):
            raise UsageError(
                f"{name} of type {type(model).__name__} has no embeddings to jostle: tokens={view.describe()} needs an "
                "nn.Module such as a model of transformers"
            )
        self.name = name
        # A model that is called again and again for one answer, see ``integrations.answers``, is changed each time.
        self.is_repeated = isinstance(model, Asked)
        model = model.network if isinstance(model, Asked) else model
        self.path, self.module, self.is_input = _find(model, view, name)

    @contextlib.contextmanager
    def edited(self, edit: Edit, shape: tuple[int, int]) -> Iterator[None]:
        """Inside, the output or input of the module's first call is replaced by ``edit`` of it.

        Only the first call counts: GPT-2 also looks up type ids in its word embedding, and a decoder may share it.

        Arguments:
            edit: from (batch, tokens, dim) to the same shape; it must not change its argument.
            shape: (batch, tokens) of the ids given to the model.
        """
        calls = 0

        def replace(module: nn.Module, given: tuple[Any, ...], output: Any) -> Any:  # noqa: ARG001
            nonlocal calls
            calls += 1
            if not self._is_meant(calls, output[0] if isinstance(output, tuple) else output, shape):
                return None
            if isinstance(output, tuple):
                return (edit(self._checked(output[0], shape)), *output[1:])
            return edit(self._checked(output, shape))

        def replace_input(module: nn.Module, given: tuple[Any, ...], named: dict[str, Any]) -> Any:  # noqa: ARG001
            nonlocal calls
            calls += 1
            if not self._is_meant(calls, given[0] if given else named.get(_HIDDEN), shape):
                return None
            if given:
                return (edit(self._checked(given[0], shape)), *given[1:]), named
            return given, {**named, _HIDDEN: edit(self._checked(named.get(_HIDDEN), shape))}

        if self.is_input:
            handle = self.module.register_forward_pre_hook(replace_input, with_kwargs=True)
        else:
            handle = self.module.register_forward_hook(replace)
        try:
            yield
        finally:
            handle.remove()
        if not calls:
            raise UsageError(f"{self.name} never calls its module {self.path!r}: give another module= to Embeddings")

    def _is_meant(self, calls: int, vectors: Any, shape: tuple[int, int]) -> bool:
        """Whether this call of the module embeds the text: the first one, or each that holds it and what follows."""
        if not self.is_repeated or not isinstance(vectors, Tensor):
            return calls == 1
        return vectors.dim() == 3 and vectors.shape[1] >= shape[1]

    def _checked(self, output: Any, shape: tuple[int, int]) -> Tensor:
        is_tensor = isinstance(output, Tensor) and output.is_floating_point() and output.dim() == 3
        if is_tensor and self.is_repeated:
            shape = (shape[0], max(shape[1], output.shape[1]))  # tokens may have been appended
        if not isinstance(output, Tensor) or not is_tensor or tuple(output.shape[:2]) != shape:
            found = f"{tuple(output.shape)} of {output.dtype}" if isinstance(output, Tensor) else type(output).__name__
            does = "takes" if self.is_input else "gives out"
            raise UsageError(
                f"module {self.path!r} of {self.name} {does} {found}, expected real numbers of shape "
                f"({shape[0]}, {shape[1]}, dim): give another module= to Embeddings"
            )
        return output


def _find(model: nn.Module, view: Embeddings, name: str) -> tuple[str, nn.Module, bool]:
    """The module that a view asks for, its path, and whether its input is meant."""
    modules = dict(model.named_modules())
    if view.module is not None:
        if view.module not in modules or not view.module:
            raise UsageError(
                f"module={view.module!r} of Embeddings is not a module of {name}; see model.named_modules()"
            )
        return view.module, modules[view.module], False
    words = _embedding_of_inputs(model)
    path = next((path for path, module in modules.items() if module is words), None)
    if words is None or path is None:
        raise UsageError(
            f"{name} ({type(model).__name__}) does not say which module embeds its words: it has no "
            "get_input_embeddings(); give module= to Embeddings"
        )
    if view.where == "before":
        return path, words, False
    after = _after(path, modules)
    if after is not None:
        return after, modules[after], False
    layer = _first_layer(path, modules)
    if layer is None:
        raise UsageError(
            f"{name} ({type(model).__name__}): no module of it is known to give out the embedded sequence; name one by "
            f"module= of Embeddings, or use where='before' for the output of {path!r}"
        )
    return layer, modules[layer], True


def _embedding_of_inputs(model: nn.Module) -> nn.Module | None:
    """The module that embeds the words of the inputs: of an encoder-decoder, that of its encoder."""
    encoder = getattr(model, "get_encoder", None)
    is_pair = getattr(getattr(model, "config", None), "is_encoder_decoder", False)
    if is_pair and callable(encoder):
        own = word_embedding(encoder())
        return own if own is not None else word_embedding(model)
    return word_embedding(model)


def _first_layer(words: str, modules: Mapping[str, nn.Module]) -> str | None:
    """The path of the first of the layers that stand, as a list, next to the word embedding or around it."""
    around = words.split(".")[:-1]
    for depth in range(len(around), -1, -1):
        inside = ".".join([*around[:depth], ""]) if depth else ""
        for path, module in modules.items():
            beside = path.startswith(inside) and "." not in path[len(inside) :]
            if beside and isinstance(module, nn.ModuleList) and len(module):
                return f"{path}.0"
    return None


def _after(words: str, modules: Mapping[str, nn.Module]) -> str | None:
    """The path of the module whose output enters the first layer, from the path of the word embedding."""
    *around, last = words.split(".")
    for depth in range(len(around), 0, -1):
        if around[depth - 1] == _BLOCK:
            return ".".join(around[:depth])
    beside = {step: ".".join([*around, step]) for step in (*_LAST_STEPS, _BLOCK, *_POSITIONS)}
    if last == _BLOCK:  # the words themselves, and all there is unless positions are added to them
        return None if any(beside[step] in modules for step in _POSITIONS) else words
    return next((beside[step] for step in (*_LAST_STEPS, _BLOCK) if beside[step] in modules), None)


def word_embedding(model: Any) -> nn.Module | None:
    """The module that ``get_input_embeddings()`` returns, if the model has that method and it returns a module."""
    try:
        words = model.get_input_embeddings()
    except (AttributeError, NotImplementedError):
        return None
    return words if isinstance(words, nn.Module) else None
