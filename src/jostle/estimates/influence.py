"""``influence``: which token matters for which prediction, as a matrix with intervals that hold together.

First the call, then ``InfluenceRun``, which draws where intervals are wide. What it returns is in ``influence_result``.
"""

import time
import warnings
from contextlib import closing
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from jostle.base import checks, specs
from jostle.base import progress as progress_bar
from jostle.base.errors import FailureError, UsageError
from jostle.base.estimate import provenance
from jostle.base.progress import Reporter, State
from jostle.estimates.influence_result import Influence, InfluenceSettings, PromptInfluence
from jostle.estimates.measure import Interrupted, JostleWarning
from jostle.estimates.request import Model, Request
from jostle.integrations.prompts import Prompts, network_of, read_prompts
from jostle.intervals import fixed, simultaneous
from jostle.perturbations import Perturbation, UniformToken
from jostle.responses import RESPONSES, Response, TokenResponse
from jostle.sampling import Grid, TrialEvaluation, Trials
from jostle.sampling.by_token import ByToken
from jostle.sampling.text_checks import agree
from jostle.tokens import VIEWS, TextView, TokenView, Words
from jostle.tokens.readout import gives_labels
from jostle.tokens.sites import word_embedding

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

_HALF_WIDTH = 0.1  # of responses between 0 and 1; of others, this share of the largest entry
_FIRST, _FIRST_REAL = 16, 64  # draws of each token before a look; more of them where intervals are asymptotic
_STEP = 8  # a token is drawn in multiples of this
_HORIZON = 512.0  # draws at which the intervals of unbounded responses are narrowest
_AT_ONCE = 4096  # draws that are evaluated together


def influence(
    model: Model,
    prompts: Any,
    *,
    tokens: TokenView | str = "words",
    perturbation: Perturbation | str | None = None,
    response: Response | str | None = None,
    half_width: float | None = None,
    max_passes: int = 100_000,
    mask: Any = None,
    level: float = 0.95,
    seed: int = 0,
    batch_size: int | None = None,
    device: str | None = None,
    progress: progress_bar.Progress = False,
    name: str = "model",
) -> Influence:
    """How much the prediction at token j changes when token i moves, for all i and j.

        influence[i, j] = mean over the noise of  R(prediction at j, prediction at j with token i jostled)

    For a model that reads in order only j >= i can change, and one pass with token i jostled gives the whole row. The
    intervals of all entries hold together, at the stated level and at any time. So tokens whose intervals are wide are
    drawn more often, until all intervals are at most ``half_width`` wide to each side.

    >>> import torch, jostle
    >>> copies = lambda ids: torch.nn.functional.one_hot(ids, 5).double()  # the next token is the last one
    >>> i = jostle.influence(copies, [[1, 2, 3]], perturbation=jostle.ReplaceBy(4))
    >>> i.matrix.tolist()
    [[1.0, 0.0, 0.0], [nan, 1.0, 0.0], [nan, nan, 1.0]]

    Arguments:
        model: a language model, a token classifier or an encoder-decoder of transformers, a ``transformers.pipeline``,
            or any module from ids (batch, tokens) to (batch, tokens, vocabulary).
        prompts: texts, if the model has a tokenizer; lists of token ids; ``Prompts``; or what ``measure`` takes.
        tokens: what moves: ``Words()``, or ``Embeddings()`` for noise in the embedded text.
        perturbation: what a token becomes; by default any word of the vocabulary, all equally likely.
        response: what counts as a change: ``"next-token-flip"``, ``"kl"``, ``"total-variation"``, ``"surprisal"``, or
            ``"label-flip"`` of token classifiers. By default a flip of the next token or of the label.
        half_width: how precise every entry shall be: by default 0.1 for responses between 0 and 1, otherwise a tenth
            of the largest entry.
        max_passes: the most inputs that the model answers; the result says if this ended it.
        mask: (N, T), true for tokens that may be jostled.
        level: coverage of all intervals together.
        seed, batch_size, device, progress, name: as for ``measure``.
    """
    checks.text("name", name)
    read = read_prompts(prompts, [model])
    view = specs.build(VIEWS, tokens, "tokens", TokenView)
    request = Request.build(
        tokens=view,
        perturbation=_perturbation(perturbation, view, read, model),
        response=default_response(response, model),
        plan=Grid(1),
        mask=mask,
        level=level,
        seed=seed,
        batch_size=batch_size,
        device=device,
    )
    found = run_influence(request, name, model, read, half_width, max_passes, progress)
    for warning in found.warnings:
        warnings.warn(warning, JostleWarning, stacklevel=2)
    if found.stopped == "interrupted":
        raise Interrupted(found)
    return found


def run_influence(
    request: Request,
    name: str,
    model: Model,
    prompts: Any,
    half_width: float | None = None,
    max_passes: int = 100_000,
    progress: progress_bar.Progress = False,
) -> Influence:
    """What ``influence`` returns, without Python warnings, and also after Ctrl-C: ``stopped`` is then ``interrupted``.

    Arguments:
        request: what is asked; its plan is not used.
        name, model, prompts: whom, and about which texts.
        half_width, max_passes, progress: as for ``influence``.
    """
    started = time.perf_counter()
    max_passes = checks.whole("max_passes", max_passes, least=1)
    if half_width is not None:
        half_width = checks.number("half_width", half_width, above=0)
    if not isinstance(request.tokens, TextView):
        raise UsageError(f"tokens={request.tokens.describe()}: influence is for texts, use words or embeddings")
    if half_width is None and request.response.bounds is not None:
        half_width = _HALF_WIDTH
    evaluation = request.prepare({name: model}, prompts)
    with closing(progress_bar.reporter(progress, name)) as report:
        run = InfluenceRun(request, evaluation, half_width, max_passes, report)
        run.go()
    function = evaluation.functions[0]
    settings = InfluenceSettings(
        tokens=request.tokens.describe(),
        perturbation=request.perturbation.describe(),
        response=request.response.describe().removesuffix(":later"),
        half_width=half_width,
        max_passes=max_passes,
        level=request.level,
        seed=request.seed,
    )
    return Influence(
        name=name,
        prompts=run.results(prompts if isinstance(prompts, Prompts) else None, model),
        settings=settings,
        passes=function.passes,
        stopped=run.stopped,
        nonfinite=run.nonfinite,
        warnings=[*function.warnings, *run.warnings()],
        notes=list(function.notes),
        caveat=run.caveat(),
        seconds=time.perf_counter() - started,
        provenance=provenance(),
    )


class InfluenceRun:
    """Draws each token of each prompt until the intervals of all its entries are narrow enough.

    A row is a token of a prompt; its draws are independent, and each gives a change at every place that is read. The
    intervals are confidence sequences at level 1 - (1 - level) / entries, which hold together at all times. Which rows
    are drawn next may therefore depend on what was seen.

    Attributes:
        stopped: why it ended.
        nonfinite: draws that were left out.

    Arguments:
        request, evaluation: what is asked of whom.
        half_width: the precision; None for a tenth of the largest entry.
        max_passes: the most inputs that the model answers.
        report: told about progress.
    """

    def __init__(
        self,
        request: Request,
        evaluation: TrialEvaluation,
        half_width: float | None,
        max_passes: int,
        report: Reporter,
    ) -> None:
        if evaluation.by_token is None:
            raise UsageError(
                f"response={request.response.describe()} says nothing about single tokens: use next-token-flip, kl, "
                "total-variation, surprisal or label-flip"
            )
        self.request, self.evaluation, self.report = request, evaluation, report
        self.half_width, self.max_passes = half_width, max_passes
        self.by_token: ByToken = evaluation.by_token
        self.inputs = evaluation.inputs
        self.rows = next(iter(Grid(1).blocks(self.inputs, np.arange(len(self.inputs)), 2**62)))
        self.is_read = self.by_token.is_read(self.rows)  # (rows, places)
        self.sums, self.squares = np.zeros(self.is_read.shape), np.zeros(self.is_read.shape)
        self.counts = np.zeros(len(self.rows), dtype=np.int64)  # finite draws
        self.drawn = np.zeros(len(self.rows), dtype=np.int64)  # all draws
        self.alpha = (1 - request.level) / max(int(self.is_read.sum()), 1)
        self.stopped, self.nonfinite = "", 0
        self._clean: list[NDArray[np.int64]] = []

    def go(self) -> None:
        """Run to the end, or to Ctrl-C if every token was drawn by then."""
        function = self.evaluation.functions[0]
        with function.evaluating():
            function.check_steady(self.request.response)
            self.evaluation.choose_batches()
            self.evaluation.check()
            if self.by_token.readout.at == "later" and not self.inputs.has_decoder:
                self._check_order()
            self._clean = self._predictions()
            try:
                self.stopped = self._loop()
            except KeyboardInterrupt:
                if not self.counts.all():
                    raise KeyboardInterrupt("before every token was drawn: nothing is known yet") from None
                self.stopped = "interrupted"
        if not self.counts.all():
            raise FailureError("nothing could be measured for some tokens: their draws have no finite response")

    def _loop(self) -> str:
        if self.request.perturbation.is_deterministic:
            self._draw(np.ones(len(self.rows), dtype=np.int64))
            return "complete"
        first = _FIRST if self.request.response.bounds is not None else _FIRST_REAL
        wanted = np.full(len(self.rows), first)
        while True:
            room = self.max_passes - self.evaluation.passes
            is_over = wanted.sum() > room
            if is_over and not self.drawn.any():
                raise UsageError(f"max_passes={self.max_passes} is not enough for {first} draws of each token")
            self._draw(_shortened(wanted, room) if is_over else wanted)
            wanted = self._wanted()
            if not wanted.any():
                return "precision"
            if is_over:
                return "max_passes"

    def _draw(self, numbers: Integers) -> None:
        """Jostle each row this many more times."""
        row = np.repeat(np.arange(len(self.rows)), numbers)
        within = np.arange(len(row)) - np.repeat(np.cumsum(numbers) - numbers, numbers)
        trials = Trials(self.rows.inputs[row], self.rows.tokens[row], self.drawn[row] + within)
        for start in range(0, len(row), _AT_ONCE):
            part = slice(start, start + _AT_ONCE)
            changes = self.evaluation.changes_by_token(trials[part])[0]
            is_finite = np.isfinite(changes).all(axis=1)
            self.nonfinite += int((~is_finite).sum())
            kept = row[part][is_finite]
            np.add.at(self.sums, kept, changes[is_finite])
            np.add.at(self.squares, kept, changes[is_finite] ** 2)
            np.add.at(self.counts, kept, 1)
        self.drawn += numbers

    def _wanted(self) -> Integers:
        """How many more draws each row gets: none if it is precise enough, at most as many as it had."""
        low, high = self.ends()
        widths = np.where(self.is_read, (high - low) / 2, 0.0).max(axis=1)
        aim = self.half_width
        if aim is None:
            aim = _HALF_WIDTH * float((self.sums / self.counts[:, None]).max())
        self.report(
            State(
                float(np.clip(aim / max(widths.max(), 1e-12), 0, 1) ** 2),
                self.evaluation.passes,
                f"widest interval ±{widths.max():.3f}, {int((widths > aim).sum())} of {len(widths)} tokens to do",
            )
        )
        if not aim or not widths.max() > aim:
            return np.zeros(len(self.rows), dtype=np.int64)
        missing = self.counts * ((widths / aim) ** 2 - 1)
        steps = np.ceil(np.clip(missing, 1, self.drawn) / _STEP).astype(np.int64) * _STEP
        return np.where(widths > aim, steps, 0)

    def ends(self) -> tuple[Floats, Floats]:
        """(rows, places) the intervals of all entries now."""
        counts = self.counts[:, None]
        if self.request.perturbation.is_deterministic:
            return self.sums / counts, self.sums / counts
        if self.request.response.bounds is not None:
            return simultaneous.bounded_means(self.sums, counts, self.alpha)
        low, high = simultaneous.means(self.sums, self.squares, counts, self.alpha, _HORIZON)
        return np.maximum(low, 0.0), high

    def caveat(self) -> str:
        """Why the intervals do not promise their coverage: changes without bounds, whose intervals are asymptotic."""
        if self.request.perturbation.is_deterministic or self.request.response.bounds is not None:
            return ""
        return fixed.asymptotic(int(self.counts.min()), share=0.0)

    def warnings(self) -> list[str]:
        """What is suspicious about the numbers."""
        if not self.nonfinite:
            return []
        return [f"{self.nonfinite:,} draws have no finite response (NaN or infinity in the outputs); they are left out"]

    def results(self, prompts: Prompts | None, model: Model) -> list[PromptInfluence]:
        """The matrices, prompt by prompt."""
        assert self.inputs.padding is not None
        low, high = self.ends()
        means = self.sums / self.counts[:, None]
        names = _names(network_of(model))
        found = []
        for text, length in enumerate(self.inputs.padding.lengths.tolist()):
            mine = np.flatnonzero(self.rows.inputs == text)
            numbers = self.inputs.addresses(self.rows.inputs[mine], self.rows.tokens[mine])
            places = self.by_token.width if self.inputs.has_decoder else length
            values, lower, upper = (self._table(part, mine, numbers, (length, places)) for part in (means, low, high))
            draws = np.zeros(length, dtype=np.int64)
            draws[numbers] = self.counts[mine]
            tokens, special = self._shown(prompts, text, length)
            predictions = [
                names.get(one) or (str(one) if prompts is None else prompts.shown(one))
                for one in self._clean[text][-places:].tolist()
            ]
            level = self.request.level
            found.append(PromptInfluence(tokens, special, predictions, values, lower, upper, draws.tolist(), level))
        return found

    def _table(self, part: Floats, rows: Integers, numbers: Integers, shape: tuple[int, int]) -> Floats:
        """(tokens, places): these rows of ``part`` by the number of their token, NaN where nothing was read."""
        table = np.full(shape, np.nan)
        table[numbers] = np.where(self.is_read[rows], part[rows], np.nan)[:, -shape[1] :]
        return table

    def _shown(self, prompts: Prompts | None, text: int, length: int) -> tuple[list[str], list[bool]]:
        """The tokens of a text as they stand in it, and which are special."""
        if prompts is None:
            ids = self.inputs.batch(np.asarray([text]))[self.inputs.key][0, :length].tolist()
            return [f"{one} " for one in ids], [False] * length
        tokens, special = [""] * length, [False] * length
        for piece in prompts.pieces[text]:
            for place in piece.tokens[:1]:
                tokens[place] = piece.text
            for place in piece.tokens:
                special[place] = piece.is_special
        return tokens, special

    def _predictions(self) -> list[NDArray[np.int64]]:
        """For each text, what the clean model predicts at each place."""
        function, batching, found = self.evaluation.functions[0], self.evaluation.batching, dict[int, Any]()
        order = batching.order(np.arange(len(self.inputs)))
        for cut in batching.cuts(order):
            best = function(batching.batch(order[cut])[0]).argmax(dim=-1).numpy()
            found |= dict(zip(order[cut].tolist(), best, strict=True))
        return [found[number] for number in range(len(self.inputs))]

    def _check_order(self) -> None:
        """Raise unless the model reads in order: without the end of a text, it must answer the same before it."""
        assert self.inputs.padding is not None
        function, lengths = self.evaluation.functions[0], self.inputs.padding.lengths
        text = int(lengths.argmax())
        length, kept = int(lengths[text]), (int(lengths[text]) + 1) // 2
        if length < 2 or not function.is_steady:
            return
        whole, begin = (self.inputs.batch(np.asarray([text]), (0, stop)) for stop in (length, kept))
        expected = function(whole)[:, -length : kept - length]
        if not agree(function, expected, function(begin)[:, -kept:]):
            raise UsageError(
                f"{function.name} does not read in order: its answers change when the end of a text is cut off; read "
                f"all of them: response={self.request.response.name}:every"
            )


def _shortened(wanted: Integers, room: int) -> Integers:
    """``wanted`` cut to ``room`` draws in all, in the same proportions."""
    return (wanted * (max(room, 0) / max(int(wanted.sum()), 1))).astype(np.int64)


def _names(network: Any) -> dict[int, str]:
    """Names of the labels of a token classifier; none for other models."""
    named = getattr(getattr(network, "config", None), "id2label", None) or {}
    return {int(number): str(name) for number, name in named.items()} if gives_labels(network) else {}


def default_response(response: Response | str | None, model: Model) -> Response:
    """The response, read at all tokens that can change; a flip is one of labels or of next tokens, as the model has."""
    if response is None or response == "flip":
        response = "label-flip" if gives_labels(network_of(model)) else "next-token-flip"
    made = specs.build(RESPONSES, response, "response", Response)
    return replace(made, at="later") if isinstance(made, TokenResponse) and made.at == "last" else made


def _perturbation(given: Perturbation | str | None, view: TokenView, prompts: Any, model: Model) -> Perturbation | str:
    """What a token becomes: by default any word, of the tokenizer or of the model."""
    if given is not None:
        return given
    if not isinstance(view, Words):
        raise UsageError(f"tokens={view.describe()} needs perturbation=, for example gaussian-noise:std=1")
    if isinstance(prompts, Prompts) and prompts.vocabulary is not None:
        return UniformToken(prompts.vocabulary)
    words = word_embedding(network_of(model))
    if not isinstance(words, nn.Embedding):
        raise UsageError("perturbation= is missing: the model does not say how many words it has, give uniform-token:V")
    return UniformToken(torch.arange(words.num_embeddings))
