"""``worst_case``: the call most people need, and its arguments."""

import math
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jostle.base import progress as progress_bar
from jostle.base import specs
from jostle.base.errors import FailureError, UsageError
from jostle.base.provenance import provenance
from jostle.base.randomness import Stream
from jostle.estimates import JostleWarning
from jostle.estimates.result import checked_level, checked_whole
from jostle.perturbations import Sphere
from jostle.responses import RESPONSES, Response
from jostle.sampling.batches import TOKENS_ON_CPU, Batching
from jostle.sampling.plans import Integers
from jostle.sampling.text_checks import check_text
from jostle.tokens import VIEWS, Embeddings, Inputs, TextView, TokenView
from jostle.tokens.text import padding_id
from jostle.worst.cells import Cells, GradientFunction, Objective
from jostle.worst.result import WorstCase, WorstSettings
from jostle.worst.search import Effort, Gathered, gradient_problem, search
from jostle.worst.starts import Directions, suggested

_NUMBERS_AT_ONCE = 2**24
_EACH, _WORST = "each", "worst"


def worst_case(
    model: Callable[..., Any],
    inputs: Any,
    *,
    tokens: TokenView | str,
    radius: float | Sequence[float] = 1.0,
    response: Response | str = "flip",
    positions: str | int | Sequence[int] = _EACH,
    starts: int = 8,
    steps: int = 100,
    draws: int = 64,
    directions: Directions | None = None,
    candidates: int = 4,
    relative: bool = True,
    mask: Any = None,
    level: float = 0.95,
    seed: int = 0,
    batch_size: int = 128,
    device: str | None = None,
    progress: progress_bar.Progress = False,
    name: str = "model",
) -> WorstCase:
    """The largest response that can be found by moving one token within a ball: a lower bound of the supremum.

        W(x, tau) = sup over ||Delta|| <= r ||x_tau||  of  R(f(x), f(x with token tau moved by Delta))

    For ``response="relative-change"`` and the worst position this is paper 3's word sensitivity (2402.02969), for
    ``"flip"`` the worst case of paper 1's sensitivity (2403.06925): whether a token is *flippable within r*. First come
    ``draws`` random changes on the sphere, whose mean and maximum are reported beside it; then projected gradient
    ascent with normalised steps of cosine size from the best draws, from deletion and from the direction in which the
    response grows fastest near the clean token, both ways. For flips the margin is brought down, and a token is done
    once it flips. The best of all that was looked at counts, so mean <= max of draws <= largest found, and nothing
    falls as the radius grows.

    >>> import torch, jostle
    >>> halfspace = lambda x: x.sum(dim=(1, 2))  # 4 tokens of 9 numbers: the worst is r * ||x_tau|| * ||(1, ..., 1)||
    >>> w = jostle.worst_case(halfspace, torch.full((1, 4, 9), 2.0), tokens="rows", radius=0.5, response="margin")
    >>> round(w.value, 6)  # 0.5 * 6 * 3
    9.0

    Differs from paper 3's released code: the ball is centred on the clean token, not on a jittered start; many starts
    instead of one; the best iterate instead of the last.

    Arguments:
        model: an ``nn.Module`` (put in eval mode and put back) or any callable from a batch to outputs. A model
            without gradients gets the largest of the draws and of deletion, and a warning.
        inputs: a tensor (N, ...), a mapping of tensors with an attention mask, a ``Dataset`` or a ``DataLoader``.
        tokens: what a token is, of real numbers: ``Patches(4)``, ``Rows()``, ``Embeddings()``, ... or a spec.
        radius: of the ball, one or several, in units of the token's own norm; each begins where the smaller one ended.
        response: ``"flip"``, ``"margin"``, ``"relative-change"``, ... or an object of ``jostle.responses``.
        positions: ``"each"``; ``"worst"``, where only the most promising positions of each input are ascended; or the
            positions to look at.
        starts: of the ascent for each token; more if there are more ``directions``.
        steps: of each start, a forward and a backward pass each.
        draws: random changes of each token; those of ``measure`` with ``Sphere(radius, relative=True)`` and ``Grid``.
        directions: a function of (inputs, positions), both (n,) arrays, to further directions to start in, both ways,
            (n, any number, dim): a construction that is known for the model. By default those that a map of
            ``jostle_papers.p2402_02969.features`` knows of itself, such as paper 3's for attention.
        candidates: for ``"worst"``, how many positions of an input are ascended.
        relative: false for radii in absolute length.
        mask: (N, T), true for tokens that may be moved; by default the mapping's own attention mask.
        level: coverage of the intervals over inputs.
        seed: of the draws.
        batch_size: how many moved inputs the model answers at once.
        device: where the model runs; by default where it is.
        progress: true for a bar on a terminal and plain lines elsewhere, or a function of ``progress.State``.
        name: how messages and files call the model.
    """
    started = time.perf_counter()
    view = specs.build(VIEWS, tokens, "tokens", TokenView)
    change = specs.build(RESPONSES, response, "response", Response)
    held = Inputs(inputs, view, mask, padding_id([model]) if isinstance(view, TextView) else None)
    if held.moving is not None:
        raise UsageError(f"tokens={view.describe()} moves whole texts, and worst_case one token: leave out whole=true")
    held.check_finite()
    if not isinstance(view, Embeddings):  # those are real numbers once the model has embedded them
        Sphere(1.0).check(held.sample_token())
    settings = WorstSettings(
        tokens=view.describe(),
        response=change.describe(),
        radii=_radii(radius),
        relative=bool(relative),
        positions=_positions(positions),
        draws=checked_whole("draws", draws, least=1),
        starts=checked_whole("starts", starts, least=1),
        steps=checked_whole("steps", steps, least=1),
        candidates=checked_whole("candidates", candidates, least=1) if positions == _WORST else 0,
        level=checked_level(level),
        seed=checked_whole("seed", seed),
        num_inputs=len(held),
        num_tokens=held.num_tokens,
    )
    function = GradientFunction(model, held, name, device)
    most_tokens = TOKENS_ON_CPU if function.device.type == "cpu" else np.inf
    batching = Batching(held, checked_whole("batch_size", batch_size, least=1), most_tokens)
    report = progress_bar.reporter(progress, name)
    try:
        with function.evaluating(settings.seed):
            gathered = _searched(function, Objective(change), batching, settings, directions, report)
    finally:
        report.close()
    result = gathered.result(function, settings, time.perf_counter() - started, provenance())
    for text in dict.fromkeys(result.warnings):
        warnings.warn(text, JostleWarning, stacklevel=2)
    return result


def _searched(
    function: GradientFunction,
    objective: Objective,
    batching: Batching,
    settings: WorstSettings,
    directions: Directions | None,
    report: progress_bar.Reporter,
) -> Gathered:
    """Search block by block of inputs, and gather what is found."""
    held = function.inputs
    function.check_steady()
    directions = suggested(function) if directions is None else directions
    if held.padding is not None:
        check_text([function], Sphere(1.0), batching)
    effort = Effort(
        settings.radii, settings.draws, settings.starts, settings.steps, settings.candidates or None, directions
    )
    gathered = Gathered(held, settings, function.dim)
    noise, problem, is_first = Stream(settings.seed, "noise"), None, True
    for chosen, done, share in _blocks(held, batching, settings, function.dim):
        rows, columns = np.nonzero(_searched_tokens(held, chosen, settings.positions))
        if not len(rows):
            continue
        cells = Cells(function, objective, batching, chosen[rows], columns, noise, is_relative=settings.relative)
        if is_first:
            problem, is_first = gradient_problem(cells), False

        def tell(part: float, done: float = done, share: float = share) -> None:
            report(progress_bar.State(done + part * share, function.passes, ""))

        gathered.add(cells, search(cells, effort, problem is None, tell))
    if is_first:
        raise UsageError(f"positions={settings.positions} names no token of any input, which have {held.num_tokens}")
    if not gathered.is_anything_known:
        raise FailureError(
            "nothing could be measured: no change has a finite response (NaN outputs, or an undefined change)"
        )
    gathered.problem = problem
    return gathered


def _blocks(
    held: Inputs, batching: Batching, settings: WorstSettings, dim: int
) -> Iterator[tuple[Integers, float, float]]:
    """Inputs in the order of their lengths, some at a time, so that all their starts fit in memory.

    With each block the share that is done before it, and its own.
    """
    order = batching.order(np.arange(len(held)))
    step = max(1, _NUMBERS_AT_ONCE // (held.num_tokens * settings.starts * dim))
    for first in range(0, len(order), step):
        chosen = order[first : first + step]
        yield chosen, first / len(order), len(chosen) / len(order)


def _searched_tokens(held: Inputs, chosen: Integers, positions: str) -> NDArray[np.bool_]:
    """(len(chosen), T) true for the tokens that are searched."""
    shape = (len(chosen), held.num_tokens)
    may_move = np.ones(shape, dtype=bool) if held.mask is None else held.mask[chosen]
    if positions in (_EACH, _WORST):
        return may_move
    columns = np.tile(np.arange(held.num_tokens), len(chosen))
    named = held.profile_positions(np.repeat(chosen, held.num_tokens), columns).reshape(shape)
    wanted: NDArray[np.bool_] = np.isin(named, [int(word) for word in positions.split("/")])
    return may_move & wanted


def _radii(radius: Any) -> tuple[float, ...]:
    """The radii, each once, increasing."""
    given = list(radius) if isinstance(radius, Sequence | np.ndarray) and not isinstance(radius, str) else [radius]
    numbers = [value for value in given if isinstance(value, int | float | np.number) and not isinstance(value, bool)]
    if not given or len(numbers) < len(given) or not all(math.isfinite(value) and value >= 0 for value in numbers):
        raise UsageError(f"radius={radius!r} must be a finite number, 0 or larger, or several of them")
    return tuple(sorted({float(value) for value in numbers}))


def _positions(positions: Any) -> str:
    """The positions as they are written in the settings."""
    if positions in (_EACH, _WORST):
        return str(positions)
    given = [positions] if isinstance(positions, int | np.integer) else positions
    is_listed = isinstance(given, Sequence | np.ndarray) and not isinstance(given, str) and len(given) > 0
    if not is_listed or not all(isinstance(one, int | np.integer) and one >= 0 for one in given):
        raise UsageError(f"positions={positions!r} must be each, worst, or whole numbers from 0 on")
    return "/".join(str(int(one)) for one in sorted(set(given)))
