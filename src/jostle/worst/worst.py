"""``worst_case``: the call, its arguments, the search block by block of inputs, and the result put together.

``worst_case`` and the command line end in ``run_search``.
"""

import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jostle.base import checks
from jostle.base import progress as progress_bar
from jostle.base.errors import FailureError, UsageError
from jostle.base.estimate import provenance
from jostle.base.randomness import Stream
from jostle.estimates import JostleWarning
from jostle.estimates.request import Request
from jostle.perturbations import Sphere
from jostle.responses import Response
from jostle.sampling import Grid
from jostle.sampling.plans import TOKENS_ON_CPU, Batching, Integers
from jostle.sampling.text_checks import check_text
from jostle.tokens import Embeddings, Inputs, TextView, TokenView
from jostle.worst.objective import Objective
from jostle.worst.result import SCALED, WorstCase, WorstSettings
from jostle.worst.search import BlockResult, draw_counts, gradient_problem, search
from jostle.worst.spots import Floats, GradientFunction, Spots
from jostle.worst.starts import Directions, directions_of_model

_NUMBERS_AT_ONCE = 2**24
_MOST_DRAWS, _MOST_STARTS, _MOST_STEPS = 1_000_000, 10_000, 1_000_000
_EACH, _WORST = "each", "worst"
_MOVE = Sphere(1.0)  # random changes are on a sphere; here it only checks that tokens can be moved


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
    ``"flip"`` the worst case of paper 1's sensitivity (2403.06925): whether a token is *flippable within r*.

    The search first tries ``draws`` random changes on the sphere; the result has their mean and maximum. Then it
    ascends by projected gradients with normalised steps of cosine size. The ascents start from the best draws, from
    deletion, and from the direction in which the response grows fastest near the clean token, both ways. For flips the
    margin is lowered, and a token is done as soon as it flips. The best of all changes that were tried counts. So mean
    <= max of draws <= largest found, and nothing falls as the radius grows.

    >>> import torch, jostle
    >>> halfspace = lambda x: x.sum(dim=(1, 2))  # 4 tokens of 9 numbers: the worst is r * ||x_tau|| * ||(1, ..., 1)||
    >>> w = jostle.worst_case(halfspace, torch.full((1, 4, 9), 2.0), tokens="rows", radius=0.5, response="margin")
    >>> round(w.value, 6)  # 0.5 * 6 * 3
    9.0

    Differs from paper 3's released code: the ball is centred on the clean token, not on a jittered start; there are
    many starts instead of one; the best iterate counts instead of the last.

    Arguments:
        model: an ``nn.Module`` (put in eval mode and put back) or any callable from a batch to outputs. For a model
            without gradients the result is the largest of the draws and of deletion, with a warning.
        inputs: a tensor (N, ...), a mapping of tensors with an attention mask, a ``Dataset`` or a ``DataLoader``.
        tokens: what a token is, of real numbers: ``Patches(4)``, ``Rows()``, ``Embeddings()``, ... or a spec.
        radius: of the ball, one or several, in units of the token's own norm; for ``Columns()`` of the standard
            deviation of each column, like the noise of ``measure``. The search in a ball begins where the search in the
            next smaller ball ended.
        response: ``"flip"``, ``"margin"``, ``"relative-change"``, ... or an object of ``jostle.responses``.
        positions: ``"each"``; ``"worst"``, which ascends only at the most promising positions of each input; or the
            positions to search.
        starts: how many ascents each token gets; more if there are more ``directions``.
        steps: of each ascent, a forward and a backward pass each.
        draws: random changes of each token: those of ``measure`` with ``Sphere(radius, relative=True)`` and ``Grid``.
        directions: further directions to start in, both ways: a function of (inputs, positions), both (n,) arrays, to a
            tensor (n, any number, dim), for example a construction that is known for the model. By default the
            directions that the model offers, if it has a method ``starting_directions(tokens, position)`` and a token
            is a row: from one input (T, dim) and a position to directions (any number, dim).
        candidates: for ``"worst"``, at how many positions of an input to ascend.
        relative: false for radii in absolute length; for tables that is ``Columns(scaled=False)`` and false.
        mask: (N, T), true for tokens that may be moved; by default the mapping's own attention mask.
        level: coverage of the intervals over inputs.
        seed: of the draws.
        batch_size: how many moved inputs the model answers at once.
        device: where the model runs; by default where it is.
        progress: true for a bar on a terminal and plain lines elsewhere, or a function of ``progress.State``.
        name: how messages and files call the model.
    """
    checks.text("name", name)
    request = Request.build(
        tokens=tokens,
        perturbation=_MOVE,
        response=response,
        plan=Grid(draws),
        mask=mask,
        level=level,
        seed=seed,
        batch_size=batch_size,
        device=device,
    )
    result = run_search(
        request,
        model,
        inputs,
        radius=radius,
        positions=positions,
        starts=starts,
        steps=steps,
        directions=directions,
        candidates=candidates,
        relative=relative,
        progress=progress,
        name=name,
    )
    for text in dict.fromkeys(result.warnings):
        warnings.warn(text, JostleWarning, stacklevel=2)
    return result


def run_search(
    request: Request,
    model: Callable[..., Any],
    inputs: Any,
    *,
    radius: float | Sequence[float],
    positions: str | int | Sequence[int],
    starts: int,
    steps: int,
    relative: bool,
    candidates: int = 4,
    directions: Directions | None = None,
    progress: progress_bar.Progress = False,
    name: str = "model",
    known: Iterable[str] = (),
) -> WorstCase:
    """What ``worst_case`` returns, without Python warnings.

    Arguments:
        request: what is asked; its plan is a ``Grid``, the random draws, and its perturbation is not used.
        known: warnings about the model that are known before the search; they come after the others.
        model, inputs, radius, positions, starts, steps, relative, candidates, directions, progress, name: as for
            ``worst_case``.
    """
    started = time.perf_counter()
    request = replace(request, perturbation=_MOVE)
    assert isinstance(request.plan, Grid)
    checks.whole("draws", request.plan.draws, most=_MOST_DRAWS)
    if directions is not None:
        checks.function("directions", directions)
    held, searched = _read_inputs(request, inputs, model), _positions(positions)
    settings = WorstSettings(
        tokens=request.tokens.describe(),
        response=request.response.describe(),
        radii=_radii(radius),
        relative=checks.truth("relative", relative) and request.tokens.describe() != SCALED,
        positions=searched,
        draws=request.plan.draws,
        starts=checks.whole("starts", starts, least=1, most=_MOST_STARTS),
        steps=checks.whole("steps", steps, least=1, most=_MOST_STEPS),
        candidates=checks.whole("candidates", candidates, least=1) if searched == _WORST else 0,
        level=request.level,
        seed=request.seed,
        num_inputs=len(held),
        num_tokens=held.num_tokens,
    )
    function = GradientFunction(model, held, name, request.device)
    most_tokens = TOKENS_ON_CPU if function.device.type == "cpu" else np.inf
    batching = Batching(held, request.batch_size, most_tokens)
    with closing(progress_bar.reporter(progress, name)) as report, function.evaluating(settings.seed):
        builder = _search_blocks(function, Objective(request.response), batching, settings, directions, report)
    return builder.result(function, time.perf_counter() - started, known)


def _read_inputs(request: Request, inputs: Any, model: Callable[..., Any]) -> Inputs:
    """The inputs as tokens of real numbers that can be moved one by one."""
    held = request.read_inputs(inputs, [model])
    view = request.tokens
    if held.moving is not None:
        raise UsageError(f"tokens={view.describe()} moves whole texts, and worst_case one token: leave out whole=true")
    if isinstance(view, TextView) and not isinstance(view, Embeddings):  # ids; embeddings are real numbers
        request.perturbation.check(held.sample_token())
    return held


def _search_blocks(
    function: GradientFunction,
    objective: Objective,
    batching: Batching,
    settings: WorstSettings,
    directions: Directions | None,
    report: progress_bar.Reporter,
) -> "WorstCaseBuilder":
    """Search block by block of inputs, and collect what is found."""
    held = function.inputs
    function.check_steady()
    directions = directions_of_model(function) if directions is None else directions
    if held.padding is not None:
        check_text([function], _MOVE, batching)
    builder = WorstCaseBuilder(held, settings, function.dim)
    noise, problem, is_first = Stream(settings.seed, "noise"), None, True
    for block, done, share in _blocks(held, batching, settings, function.dim):
        rows, columns = np.nonzero(_is_searched(held, block, settings.positions))
        if not len(rows):
            continue
        spots = Spots(function, objective, batching, block[rows], columns, noise, is_relative=settings.relative)
        if is_first:
            problem, is_first = gradient_problem(spots), False

        def tell(part: float, done: float = done, share: float = share) -> None:
            report(progress_bar.State(done + part * share, function.passes, ""))

        builder.add(spots, search(spots, settings, directions, tell, has_gradient=problem is None))
    if is_first:
        raise UsageError(f"positions={settings.positions} names no token of any input, which have {held.num_tokens}")
    if not builder.is_anything_known:
        raise FailureError(
            "nothing could be measured: no change has a finite response (NaN outputs, or an undefined change)"
        )
    builder.problem = problem
    return builder


def _blocks(
    held: Inputs, batching: Batching, settings: WorstSettings, dim: int
) -> Iterator[tuple[Integers, float, float]]:
    """Inputs in the order of their lengths, in blocks whose starts and draws fit in memory.

    Each block comes with the share of the inputs before it, and its own share.
    """
    order = batching.order(np.arange(len(held)))
    step = max(1, _NUMBERS_AT_ONCE // (held.num_tokens * max(settings.starts * dim, settings.draws)))
    for first in range(0, len(order), step):
        block = order[first : first + step]
        yield block, first / len(order), len(block) / len(order)


def _is_searched(held: Inputs, block: Integers, positions: str) -> NDArray[np.bool_]:
    """(len(block), T) true for the tokens that are searched."""
    shape = (len(block), held.num_tokens)
    may_move = np.ones(shape, dtype=bool) if held.mask is None else held.mask[block]
    if positions in (_EACH, _WORST):
        return may_move
    columns = np.tile(np.arange(held.num_tokens), len(block))
    numbers = held.profile_positions(np.repeat(block, held.num_tokens), columns).reshape(shape)
    is_named: NDArray[np.bool_] = np.isin(numbers, [int(word) for word in positions.split("/")])
    return may_move & is_named


def _radii(radius: Any) -> tuple[float, ...]:
    """The radii, each once, increasing."""
    given = list(radius) if isinstance(radius, Sequence | np.ndarray) and not isinstance(radius, str) else [radius]
    if not given:
        raise checks.wrong("radius", radius, "a finite number, at least 0, or several of them")
    return tuple(sorted({checks.number("radius", value, least=0) for value in given}))


def _positions(positions: Any) -> str:
    """The positions in the form of the settings: a word, or numbers with slashes between them."""
    if isinstance(positions, str) and positions in (_EACH, _WORST):
        return positions
    given = [positions] if isinstance(positions, int | np.integer) else positions
    is_listed = isinstance(given, Sequence | np.ndarray) and not isinstance(given, str) and len(given) > 0
    if not is_listed or not all(_is_position(one) for one in given):
        raise checks.wrong("positions", positions, f"{_EACH}, {_WORST}, or whole numbers from 0 on")
    return "/".join(str(int(one)) for one in sorted(set(given)))


def _is_position(value: Any) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool) and int(value) >= 0


class WorstCaseBuilder:
    """Collects the results of blocks in arrays by radius, input and position; NaN where nothing was searched.

    Attributes:
        problem: why there are no gradients; None if there are.

    Arguments:
        inputs: all inputs.
        settings: of the search.
        dim: the size of a token.
    """

    def __init__(self, inputs: Inputs, settings: WorstSettings, dim: int) -> None:
        self.inputs, self.settings = inputs, settings
        self.counts = draw_counts(settings.draws)
        shape = (len(settings.radii), len(inputs), inputs.num_tokens)
        self.values, self.margins, self.mean = (np.full(shape, np.nan) for _ in range(3))
        self.max_of: Floats = np.full((len(self.counts), *shape), np.nan)
        self.predictions = np.zeros(shape, dtype=np.int64)
        self.clean_predictions = np.zeros(len(inputs), dtype=np.int64)
        self.changes = np.zeros((*shape, dim), dtype=np.float32)
        self.problem: str | None = None
        self._lost = self._flat = self._failed = self._ascents = self._zero_tokens = self._tokens = 0

    @property
    def is_anything_known(self) -> bool:
        """Whether some response is finite."""
        return bool(np.isfinite(self.values).any())

    def add(self, spots: Spots, found: BlockResult) -> None:
        """Put what was found for these spots where it belongs."""
        at = (slice(None), spots.inputs, self.inputs.profile_positions(spots.inputs, spots.tokens))
        self.values[at], self.mean[at], self.changes[at] = found.values, found.mean, found.deltas.numpy()
        self.max_of[(slice(None), *at)] = found.max_of
        self.margins[at], self.predictions[at] = -found.heights, found.predictions
        if spots.objective.is_flip:
            self.clean_predictions[spots.inputs] = spots.references(np.arange(len(spots)))[:, 0].long().numpy()
        self._lost += found.lost
        self._flat += found.flat
        self._failed += found.failed
        self._ascents += found.ascents
        self._zero_tokens += int((spots.norms == 0).sum())
        self._tokens += len(spots)

    def result(self, function: GradientFunction, seconds: float, known: Iterable[str] = ()) -> WorstCase:
        """The result, after all blocks were added; ``known`` are further warnings."""
        is_flip = self.settings.is_flip
        return WorstCase(
            name=function.name,
            settings=self.settings,
            values=self.values,
            changes=self.changes,
            mean=self.mean,
            max_of=self.max_of,
            margins=self.margins if is_flip else None,
            predictions=self.predictions if is_flip else None,
            clean_predictions=self.clean_predictions if is_flip else None,
            draw_counts=self.counts,
            positions=self.inputs.positions,
            has_gradient=self.problem is None,
            passes=function.passes,
            warnings=[*function.warnings, *self._warnings(function.name), *known],
            notes=list(function.notes),
            seconds=seconds,
            provenance=provenance(),
        )

    def _warnings(self, name: str) -> list[str]:
        texts = []
        if self.problem is not None:
            texts.append(
                f"{name} gives no gradients: {self.problem}; only draws and deletion were tried, so the largest "
                "response may be far above what was found"
            )
        if self._zero_tokens:
            are_columns = self.settings.tokens == SCALED
            why = (
                "values are in columns that never change, and a radius in units of their standard deviation"
                if are_columns
                else "tokens are zero, and a radius in units of their norm"
            )
            other = "" if are_columns else "; give relative=False for radii in absolute length"
            texts.append(
                f"{self._zero_tokens:,} of {self._tokens:,} {why} leaves them there: their response is 0{other}"
            )
        if self._failed:
            texts.append(
                f"{self._failed:,} random changes have no finite response (an output is NaN or infinite, or the change "
                "is undefined); they are left out"
            )
        if self._lost:
            texts.append(f"{self._lost:,} of {self._ascents:,} ascents ended early at a gradient of NaN or infinity")
        if self._flat > self._ascents / 2:
            texts.append(
                f"{self._flat:,} of {self._ascents:,} ascents ended at a gradient of exactly 0 (does {name} round, or "
                "saturate?): there the largest draw is all that is known"
            )
        return texts
