"""The place inside a model where the embedded text can be changed.

Where a name is known for the module that gives out the embedded text, as in BERT and GPT-2, its output is changed.
Otherwise it is what enters the first of the model's layers, as in Llama and T5.
"""

import contextlib
import fnmatch
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from torch import Tensor, nn

from jostle.base.errors import UsageError
from jostle.integrations.answers import Asked
from jostle.tokens.text_views import Embeddings
from jostle.tokens.views import Inside

Edit = Callable[[Tensor], Tensor]

_BLOCK = "embeddings"
# Of GPT-2 and its kin, of BLOOM, and of BART.
_LAST_STEPS = ("drop", "word_embeddings_layernorm", "layernorm_embedding")
_HIDDEN = "hidden_states"  # how layers of transformers call what they take
_POSITIONS = ("position_embeddings",)  # of XLM, beside words that are called "embeddings"


class Site:
    """A module of a model, whose output or input (batch, tokens, dim) can be replaced while the model runs.

    With ``Inside``, a map of features (batch, channels, height, width) has a vector of its channels for each pixel, and
    a layer (batch, dim) has one vector.

    Attributes:
        path, module: the module.
        is_input: whether what enters the module is replaced, and not what it gives out.

    Arguments:
        model: an ``nn.Module`` that has ``get_input_embeddings()``, as those of transformers and of jostle's zoo.
        view: which module.
        name: how messages call the model.
        takes_whole: whether the caller can change all vectors of a text at once, if the view asks for that.
    """

    def __init__(
        self, model: Any, view: Embeddings | Inside, name: str = "model", *, takes_whole: bool = False
    ) -> None:
        if isinstance(view, Embeddings) and view.whole and not takes_whole:
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
        self.head, self.takes_maps = view.head, isinstance(view, Inside)
        self._heads = _count_heads(model, self.path) if view.head is not None else 1
        if view.head is not None and view.head >= self._heads:
            raise UsageError(f"head={view.head} of {name}: {self.path!r} has {self._heads} heads, from 0 on")

    @contextlib.contextmanager
    def edited(self, edit: Edit, shape: tuple[int, int]) -> Iterator[None]:
        """Inside, the output or input of the module's first call is replaced by ``edit`` of it.

        Only the first call counts: GPT-2 also looks up type ids in its word embedding, and a decoder may share it.

        Arguments:
            edit: from (batch, tokens, dim) to the same shape; it must not change its argument.
            shape: (batch, tokens) of the ids given to the model.
        """
        calls = 0
        edit = edit if self.head is None else self._of_head(edit)

        def replace(module: nn.Module, given: tuple[Any, ...], output: Any) -> Any:  # noqa: ARG001
            nonlocal calls
            calls += 1
            if not self._is_meant(calls, output[0] if isinstance(output, tuple) else output, shape):
                return None
            if isinstance(output, tuple):
                return (self._edit(edit, output[0], shape), *output[1:])
            return self._edit(edit, output, shape)

        def replace_input(module: nn.Module, given: tuple[Any, ...], named: dict[str, Any]) -> Any:  # noqa: ARG001
            nonlocal calls
            calls += 1
            if not self._is_meant(calls, given[0] if given else named.get(_HIDDEN), shape):
                return None
            if given:
                return (self._edit(edit, given[0], shape), *given[1:]), named
            return given, {**named, _HIDDEN: self._edit(edit, named.get(_HIDDEN), shape)}

        if self.is_input:
            handle = self.module.register_forward_pre_hook(replace_input, with_kwargs=True)
        else:
            handle = self.module.register_forward_hook(replace)
        try:
            yield
        finally:
            handle.remove()
        if not calls:
            raise UsageError(
                f"{self.name} never calls its module {self.path!r}: use another tokens=embeddings:module=PATH"
            )

    def _edit(self, edit: Edit, output: Any, shape: tuple[int, int]) -> Tensor:
        """``edit`` of what a module takes or gives out, in its own shape."""
        if not isinstance(output, Tensor):
            return edit(self._checked(output, shape))
        vectors = output
        if self.takes_maps:
            vectors = as_vectors(output)
        elif output.dim() == 2 and len(output) == shape[0] * shape[1]:  # OPT puts all tokens of a batch into one row
            vectors = output.reshape(*shape, -1)
        moved = edit(self._checked(vectors, shape))
        return moved.transpose(1, 2).reshape(output.shape) if output.dim() == 4 else moved.reshape(output.shape)

    def _of_head(self, edit: Edit) -> Edit:
        """``edit`` of the numbers that belong to one head."""
        head = self.head or 0

        def edit_head(vectors: Tensor) -> Tensor:
            width = vectors.shape[2] // self._heads
            mine = slice(head * width, (head + 1) * width)
            moved = vectors.clone()
            moved[..., mine] = edit(vectors[..., mine])
            return moved

        return edit_head

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
                f"({shape[0]}, {shape[1]}, dim): use another tokens=embeddings:module=PATH"
            )
        return output


def as_vectors(output: Tensor) -> Tensor:
    """Vectors (batch, tokens, dim): of a map (batch, channels, height, width) its pixels, of (batch, dim) the only one.

    >>> import torch
    >>> as_vectors(torch.zeros(2, 5, 3, 4)).shape, as_vectors(torch.zeros(2, 5)).shape
    (torch.Size([2, 12, 5]), torch.Size([2, 1, 5]))
    """
    if output.dim() == 4:
        return output.flatten(2).transpose(1, 2)
    return output.unsqueeze(1) if output.dim() == 2 else output


def _find(model: nn.Module, view: Embeddings | Inside, name: str) -> tuple[str, nn.Module, bool]:
    """The module that a view asks for, its path, and whether its input is meant."""
    modules = dict(model.named_modules())
    if view.module is not None:
        if view.module not in modules or not view.module:
            raise UsageError(
                f"module={view.module!r} of Embeddings is not a module of {name}; see model.named_modules()"
            )
        return view.module, modules[view.module], view.part == "input" or view.head is not None
    assert isinstance(view, Embeddings)
    words = _embedding_of_inputs(model)
    path = next((path for path, module in modules.items() if module is words), None)
    if words is None or path is None:
        raise UsageError(
            f"{name} ({type(model).__name__}) does not say which module embeds its words: it has no "
            "get_input_embeddings(); name it, tokens=embeddings:module=PATH"
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


def _count_heads(model: nn.Module, path: str) -> int:
    """The number of attention heads in front of the output projection at ``path``."""
    around, modules = path.split(".")[:-1], dict(model.named_modules())
    inside = [modules[".".join(around[:depth])] for depth in range(len(around), -1, -1)]
    for place in (*inside, getattr(model, "config", None)):
        for name in ("num_heads", "num_attention_heads", "heads", "n_heads", "n_head"):
            found = getattr(place, name, None)
            if isinstance(found, int) and not isinstance(found, bool) and found > 0:
                return found
    raise UsageError(f"head= of {path!r}: the model does not say how many heads it has")


# Paths inside a layer; the first that is there is meant. BERT's ``attention`` and ``output`` add the residual stream
# and norm the sum, so their own answers are those of a ``dense`` inside. The last ones are of T5, and of OPT and BART.
_ATTENTION = (
    "attention.output.dense", "attn", "self_attn", "attention", "self_attention", "mixer", "layer.0.SelfAttention",
)  # fmt: skip
_MLP = (
    "mlp", "feed_forward", "ffn", "ff", "dense_h_to_4h", "channel_mixer", "channels_mlp", "output.dense",
    "layer.1.DenseReluDense", "fc2",
)  # fmt: skip
_PROJECTIONS = ("o_proj", "out_proj", "c_proj", "to_out", "dense", "proj", "wo", "o", "out_lin")
KINDS = ("residual", "attention", "mlp", "head")


def find_sites(model: Any, site: str) -> list[str]:
    """The paths of the modules that a name or pattern means, from the first layer to the last.

    ``residual`` is what each layer gives out, ``attention`` and ``mlp`` what these parts of it give out, and ``head``
    the output projection of its attention, whose input is one head after the other. Anything else is a path, or a
    pattern in which * stands for one or more parts: ``blocks.*.mlp``.

    Arguments:
        model: an ``nn.Module``.
        site: the name, path or pattern.
    """
    if not isinstance(model, nn.Module):
        raise UsageError(f"site={site!r} needs an nn.Module, not {type(model).__name__}")
    modules = dict(model.named_modules())
    if site not in KINDS:
        found = [path for path in modules if path and fnmatch.fnmatchcase(path, site)]
        depth = min((path.count(".") for path in found), default=0)
        found = [path for path in found if path.count(".") == depth]  # mlp, and not what is in an mlp
    else:
        found = [place for layer in _layers(modules) for place in _parts_of(layer, site, modules)]
    if not found and site in KINDS:
        raise UsageError(
            f"site={site!r} is not found in {type(model).__name__}: give a path or pattern of model.named_modules(), "
            "for example blocks.*.mlp"
        )
    if not found:
        raise UsageError(
            f"site={site!r} is no module of {type(model).__name__}: give {', '.join(KINDS)}, or a path or pattern of "
            "model.named_modules(), for example blocks.*.mlp"
        )
    return found


def _layers(modules: Mapping[str, nn.Module]) -> list[str]:
    """The paths of the layers: those of the longest list, or chain, of modules of one kind; if none, of any kinds.

    A list of one is that of a model with one layer, if there is no longer one.
    """
    lists = [
        (len(module) > 1, len({type(one) for one in module}) == 1, len(module), path)
        for path, module in modules.items()
        if (isinstance(module, nn.ModuleList) and len(module))
        or (isinstance(module, nn.Sequential) and len(module) > 1)
    ]
    if not lists:
        return []
    best = max(each[:3] for each in lists)
    path = next(path for *each, path in lists if tuple(each) == best)
    return [f"{path}.{number}" if path else str(number) for number in range(best[2])]


def _parts_of(layer: str, kind: str, modules: Mapping[str, nn.Module]) -> list[str]:
    """The module of this kind in a layer, if it has one."""
    if kind == "residual":
        return [layer]
    names = _MLP if kind == "mlp" else _ATTENTION
    part = next((f"{layer}.{name}" for name in names if f"{layer}.{name}" in modules), None)
    if part is None or kind in ("mlp", "attention"):
        return [] if part is None else [part]
    inside = [path for path in modules if path == part or path.startswith(f"{part}.")]
    return [path for path in inside if path.rpartition(".")[2] in _PROJECTIONS][:1]


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
