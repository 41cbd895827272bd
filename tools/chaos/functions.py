"""Odd arguments for the public functions: each answers with a sound result, or refuses in one line.

Hypothesis draws the arguments. A result is sound if its numbers are finite, in their order and, for flips, shares.
"""

import math
import resource
import traceback
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

import jostle
from chaos import forks
from chaos.record import Count
from jostle.base.errors import JostleError

_ODD = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 3),
    st.sampled_from(
        [0.0, -1.0, 0.5, 1.0, math.nan, math.inf, -math.inf, 1e308, 1e-308, "", "x", "1", [], {}, (), b"x"]
    ),
    st.integers(-(2**70), 2**70),
)
_TENSORS = st.sampled_from(
    [
        torch.zeros(0, 4), torch.zeros(3, 0), torch.zeros(3), torch.tensor(1.0), torch.randn(5, 4),
        torch.randn(5, 1, 4, 4), torch.ones(2, 2, 2, 2, 2), torch.full((3, 4), math.nan), torch.full((3, 4), math.inf),
        torch.arange(12).view(3, 4),
        torch.ones(3, 4, dtype=torch.bool), torch.randn(4, 4).double(), torch.randn(4, 4).to(torch.float16),
        torch.randn(4, 4, requires_grad=True), torch.randn(4, 4).t(), torch.zeros(2, 3, dtype=torch.complex64),
        np.ones((3, 4)), np.ones((3, 4), dtype=np.float32)[::-1], np.array([["a", "b"]]), np.array([object()]),
        [[1.0, 2.0], [3.0, 4.0]], [[1.0], [2.0, 3.0]], {}, {"x": torch.randn(3, 4)}, "text", ["a b", "c"], 3, None, [],
    ]
)  # fmt: skip
_VIEWS = st.one_of(
    st.sampled_from(
        ["coordinates", "rows", "whole", "patches:2", "patches:0", "patches", "words", "nope", "rows:key=x"]
    ),
    _ODD,
)
_PERTURBATIONS = st.one_of(
    st.sampled_from(
        ["gaussian-noise:1", "gaussian-noise:-1", "sphere:1", "sign-flip", "uniform-token:-1/1", "replace-by:0",
         "replace-by:x", "deletion", "correlated:0.5", "nope", "gaussian-noise:std=nan"]
    ),
    _ODD,
)  # fmt: skip
_RESPONSES = st.one_of(
    st.sampled_from(["flip", "margin", "logit-change", "absolute-change", "relative-change", "angle", "kl", "nope"]),
    _ODD,
)


def _models() -> list[Any]:
    """Callables of many kinds."""
    return [
        lambda x: x, lambda x: x.flatten(1).sum(dim=1), lambda x: x.flatten(1)[:, :2], lambda _: None,
        lambda _: "answer", lambda _: 1 / 0, lambda x: torch.full((len(x), 2), math.nan), lambda x: x[:1],
        lambda x: torch.zeros(len(x), 0), lambda x: torch.rand(len(x), 3), lambda x: {"logits": x.flatten(1)},
        lambda x: [0.0] * len(x), lambda x: x.flatten(1).argmax(dim=1), lambda: None, torch.nn.Linear(4, 2).float(),
        torch.nn.Dropout(), abs, None, 3, "zoo:mlp",
    ]  # fmt: skip


_MODELS = st.integers(0, len(_models()) - 1).map(lambda number: _models()[number])
_PLANS = st.one_of(st.sampled_from(["grid:1", "grid:0", "until:relative=0.5,max_passes=200", "nope"]), _ODD)


def is_sound(value: float, low: float, high: float, *, is_share: bool) -> bool:
    """Whether an estimate can be one."""
    ordered = low <= value <= high or math.isinf(low) or math.isinf(high)
    return math.isfinite(value) and ordered and (not is_share or (0 <= low <= high <= 1))


def try_measure(model: Any, inputs: Any, view: Any, perturbation: Any, response: Any, plan: Any, level: Any) -> str:
    """``measure`` with anything."""
    found = jostle.measure(
        model, inputs, tokens=view, perturbation=perturbation, response=response, plan=plan, level=level
    )
    if not is_sound(found.value, found.low, found.high, is_share=response == "flip"):
        raise AssertionError(f"unsound: {found.value} [{found.low}, {found.high}]")
    str(found)
    return "measured"


def try_compare(model: Any, other: Any, inputs: Any, view: Any, perturbation: Any) -> str:
    """``compare`` with anything."""
    models = {"a": model, "b": other}
    found = jostle.compare(models, inputs, tokens=view, perturbation=perturbation, plan=jostle.Grid(1))
    for one in found.differences:
        if not is_sound(one.value, one.low, one.high, is_share=False):
            raise AssertionError(f"unsound: {one}")
    return "compared"


def try_sweep(model: Any, inputs: Any, view: Any, stds: Any, response: Any) -> str:
    """``sweep`` with anything."""
    found = jostle.sweep(model, inputs, tokens=view, stds=stds, response=response, plan=jostle.Grid(1))
    for row in found.rows():
        if not is_sound(row["value"], row["low"], row["high"], is_share=response == "flip"):
            raise AssertionError(f"unsound: {row}")
    return "measured"


def try_stability(model: Any, inputs: Any, rho: Any, response: Any, draws: Any) -> str:
    """``stability`` with anything."""
    found = jostle.stability(model, inputs, rho=rho, response=response, plan=jostle.Grid(draws))
    for point in found.points:
        if not is_sound(point.value, point.low, point.high, is_share=response == "agreement"):
            raise AssertionError(f"unsound: {point}")
    return "measured"


def try_certify(model: Any, inputs: Any, std: Any, draws: Any, alpha: Any) -> str:
    """``certify`` with anything."""
    found = jostle.certify(model, inputs, std=std, draws=draws, selection=10, alpha=alpha)
    if not all(math.isfinite(radius) and radius >= 0 for radius in found.radii):
        raise AssertionError(f"unsound: {found.radii}")
    return "certified"


def try_worst_case(model: Any, inputs: Any, view: Any, radius: Any, response: Any, steps: Any) -> str:
    """``worst_case`` with anything."""
    found = jostle.worst_case(
        model, inputs, tokens=view, radius=radius, response=response, starts=1, steps=steps, draws=2
    )
    str(found)
    return "searched"


def try_depth(model: Any, inputs: Any, site: Any, std: Any, response: Any) -> str:
    """``depth`` with anything."""
    str(jostle.depth(model, inputs, site=site, std=std, response=response, plan=jostle.Grid(1)))
    return "measured"


def try_influence(model: Any, prompts: Any, response: Any, half_width: Any, max_passes: Any) -> str:
    """``influence`` with anything."""
    found = jostle.influence(
        model, prompts, perturbation=jostle.ReplaceBy(4), response=response, half_width=half_width,
        max_passes=max_passes,
    )  # fmt: skip
    str(found)
    return "measured"


def try_change_texts(model: Any, texts: Any, change: Any, draws: Any, words: Any) -> str:
    """``change_texts`` with anything."""
    str(jostle.change_texts(model, texts, change=change, draws=draws, words=words))
    return "changed"


def try_boolean(values: Any, n: Any) -> str:
    """``boolean.analyse`` with anything."""
    found = jostle.boolean.analyse(values, n=n)
    if not 0 <= found.sensitivity <= 1:
        raise AssertionError(f"unsound: {found.sensitivity}")
    return "analysed"


def try_corrupt(images: Any, name: Any, severity: Any, value_range: Any) -> str:
    """``corruptions.corrupt`` with anything."""
    found = jostle.corruptions.corrupt(images, name, severity=severity, seed=0, value_range=value_range)
    if np.asarray(found).shape != np.asarray(images).shape:
        raise AssertionError("unsound: another shape")
    return "corrupted"


def try_names(kind: Any, name: Any, option: Any) -> str:
    """Models, datasets and specs by any name."""
    if kind == "model":
        jostle.models.create(name, image_size=option, channels=1, classes=2)
    elif kind == "data":
        jostle.data.load(name, limit=option, download=False)
    else:
        jostle.load(name)
    return "made"


def try_classes(kind: Any, one: Any, other: Any) -> str:
    """The public classes with any arguments."""
    getattr(jostle, kind)(*(part for part in (one, other) if part is not None))
    return "made"


_TABLES = st.one_of(
    st.lists(st.sampled_from([-1, 1, 0, 0.5, math.nan, "x", None]), max_size=9),
    st.sampled_from([lambda x: x[:, 0], lambda x: x, lambda _: None, lambda _: 1 / 0, "majority", "nope", 3, None]),
)
_KINDS = st.sampled_from(
    ["Patches", "GaussianNoise", "Sphere", "UniformToken", "ReplaceBy", "Grid", "Until", "SensitivityPenalty",
     "NoiseAugmentation", "Coordinates", "Rows", "Whole", "Probe", "Words", "Embeddings", "Correlated"]
)  # fmt: skip


_INPUTS = torch.randn(5, 4, generator=torch.Generator().manual_seed(0))


def _identity(x: Any) -> Any:
    return x


def _next_is_last(ids: Any) -> Any:
    """A language model that says the last word again."""
    return torch.nn.functional.one_hot(ids, 5).double()


def _lengths(texts: Any) -> Any:
    """A classifier of texts: whether the number of letters is odd."""
    return np.array([len(text) % 2 for text in texts])


_TWO_LAYERS = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.Linear(3, 2)).float()
_TEXTS = st.one_of(
    st.lists(st.text(max_size=8), max_size=3),
    st.sampled_from(["one text", [""], [" "], ["a", None], [1, 2], [b"x"], np.array(["a b"]), ("a b",), {"a": "b"}]),
    _TENSORS,
)
_PROMPTS = st.one_of(
    st.lists(st.lists(st.integers(-2, 6), max_size=4), max_size=3), st.sampled_from([["a b"], "a b", [[1.5]]]), _TENSORS
)
_CHANGES = st.one_of(
    st.sampled_from(["case", "ocr", "typo:swap", "typo:nope", "slot:a|b", "slot:", "alternatives:nope.csv"]), _ODD
)


def _mostly(right: Any, odd: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Three times of four what is right."""
    return st.integers(0, 3).flatmap(lambda number: odd if number == 0 else st.just(right))


ATTACKS: dict[str, tuple[Callable[..., str], tuple[st.SearchStrategy[Any], ...]]] = {
    "measure": (
        try_measure,
        (
            _mostly(_identity, _MODELS),
            _mostly(_INPUTS, _TENSORS),
            _mostly("coordinates", _VIEWS),
            _mostly("gaussian-noise:1", _PERTURBATIONS),
            _mostly("flip", _RESPONSES),
            _mostly("grid:1", _PLANS),
            _mostly(0.95, _ODD),
        ),
    ),
    "compare": (
        try_compare,
        (
            _mostly(_identity, _MODELS),
            _mostly(_identity, _MODELS),
            _mostly(_INPUTS, _TENSORS),
            _mostly("coordinates", _VIEWS),
            _mostly("gaussian-noise:1", _PERTURBATIONS),
        ),
    ),
    "sweep": (
        try_sweep,
        (
            _mostly(_identity, _MODELS),
            _mostly(_INPUTS, _TENSORS),
            _mostly("coordinates", _VIEWS),
            _mostly([0.5, 2.0], st.one_of(st.lists(_ODD, max_size=3), _ODD)),
            _mostly("flip", _RESPONSES),
        ),
    ),
    "stability": (
        try_stability,
        (
            _mostly(_identity, _MODELS),
            _mostly(_INPUTS, _TENSORS),
            _mostly([0.5, 0.9], st.one_of(st.lists(_ODD, max_size=3), _ODD)),
            _mostly("agreement", st.one_of(st.just("correlation"), _ODD)),
            _mostly(1, _ODD),
        ),
    ),
    "certify": (
        try_certify,
        (
            _mostly(_identity, _MODELS),
            _mostly(_INPUTS, _TENSORS),
            _mostly(1.0, _ODD),
            _mostly(20, _ODD),
            _mostly(0.05, _ODD),
        ),
    ),
    "worst_case": (
        try_worst_case,
        (
            _mostly(torch.nn.Linear(4, 2).float(), _MODELS),
            _mostly(_INPUTS.float(), _TENSORS),
            _mostly("coordinates", _VIEWS),
            _mostly(1.0, st.one_of(st.lists(_ODD, max_size=3), _ODD)),
            _mostly("flip", _RESPONSES),
            _mostly(1, _ODD),
        ),
    ),
    "depth": (
        try_depth,
        (
            _mostly(_TWO_LAYERS, _MODELS),
            _mostly(_INPUTS.float(), _TENSORS),
            _mostly("0", st.one_of(st.sampled_from(["residual", "*", "head", "nope"]), _ODD)),
            _mostly(1.0, _ODD),
            _mostly("flip", _RESPONSES),
        ),
    ),
    "influence": (
        try_influence,
        (
            _mostly(_next_is_last, _MODELS),
            _mostly([[1, 2, 3]], _PROMPTS),
            _mostly(None, _RESPONSES),
            _mostly(0.5, _ODD),
            _mostly(200, _ODD),
        ),
    ),
    "change_texts": (
        try_change_texts,
        (
            _mostly(_lengths, _MODELS),
            _mostly(["a fine film", "so so"], _TEXTS),
            _mostly("typo", _CHANGES),
            _mostly(1, _ODD),
            _mostly(None, _ODD),
        ),
    ),
    "boolean": (try_boolean, (_mostly([1, -1, -1, 1], _TABLES), st.one_of(st.sampled_from([None, 1, 2, 3]), _ODD))),
    "corrupt": (
        try_corrupt,
        (
            _mostly(torch.rand(2, 1, 8, 8), _TENSORS),
            _mostly("contrast", st.one_of(st.sampled_from(["fog", "zoom_blur"]), _ODD)),
            _mostly(1, _ODD),
            _mostly((-5.0, 5.0), _ODD),
        ),
    ),
    "names": (
        try_names,
        (st.sampled_from(["model", "data", "load"]), _mostly("mlp", st.one_of(st.just("drawn-digits"), _ODD)), _ODD),
    ),
    "classes": (try_classes, (_KINDS, _ODD, st.one_of(st.none(), _ODD))),
}  # fmt: skip


def attack(name: str, number: int, chosen: int, count: Count) -> None:
    """So many calls of one function."""
    function, strategies = ATTACKS[name]

    @seed(chosen)
    @settings(
        max_examples=number,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(st.tuples(*strategies))
    def once(arguments: tuple[Any, ...]) -> None:
        count.tried["calls"] += 1
        count.where[name] += 1
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                count.ended[function(*arguments)] += 1
        except JostleError as error:
            count.ended["refused in one line"] += 1
            if len(str(error).splitlines()) > 1:
                count.fault("several lines", f"{name}{arguments}: {error}")
        except AssertionError as error:
            count.fault("silent wrong number", f"{name}{arguments}: {error}")
        except TypeError as error:
            if traceback.extract_tb(error.__traceback__)[-1].filename == __file__:
                count.ended["refused by Python: not the arguments of the function"] += 1
            else:
                count.fault("traceback", f"{name}{_shown(arguments)}: TypeError: {error}")
        except Exception as error:
            count.fault("traceback", f"{name}{_shown(arguments)}: {type(error).__name__}: {error}")

    once()


def _shown(arguments: tuple[Any, ...]) -> str:
    return str(tuple(str(one)[:60] for one in arguments))


def run(_: Path, number: int, chosen: int, keep: Callable[[Count], None], __: Mapping[str, int]) -> None:
    """So many calls in all; arguments as of ``kills.run``."""
    resource.setrlimit(resource.RLIMIT_AS, (forks.MEMORY, forks.MEMORY))  # a number that is too large ends here
    count = Count()
    for name in ATTACKS:
        attack(name, max(number // len(ATTACKS), 1), chosen, count)
        keep(count)
