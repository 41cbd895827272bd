"""What was found for some tokens after the other, put where it belongs."""

import numpy as np

from jostle.estimates.estimate import Floats
from jostle.tokens import Inputs
from jostle.worst.asking import GradientFunction
from jostle.worst.cells import Cells
from jostle.worst.result import WorstCase
from jostle.worst.search import Found, draw_counts
from jostle.worst.settings import WorstSettings


class Gathered:
    """The arrays of a result while it is made, by radius, input and position, NaN where nothing was looked at.

    Attributes:
        problem: why there are no gradients; None if there are.
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
        self._lost = self._flat = self._failed = self._ascents = self._still = self._cells = 0

    @property
    def is_anything_known(self) -> bool:
        """Whether some response is finite."""
        return bool(np.isfinite(self.values).any())

    def add(self, cells: Cells, found: Found) -> None:
        """Put what was found for these cells in its place."""
        at = (slice(None), cells.inputs, self.inputs.profile_positions(cells.inputs, cells.tokens))
        self.values[at], self.mean[at], self.changes[at] = found.values, found.mean, found.deltas.numpy()
        self.max_of[(slice(None), *at)] = found.max_of
        self.margins[at], self.predictions[at] = -found.heights, found.predictions
        if cells.objective.is_flip:
            self.clean_predictions[cells.inputs] = cells.references(np.arange(len(cells)))[:, 0].long().numpy()
        self._lost, self._flat = self._lost + found.lost, self._flat + found.flat
        self._failed, self._ascents = self._failed + found.failed, self._ascents + found.ascents
        self._still += int((cells.norms == 0).sum())
        self._cells += len(cells)

    def result(
        self, function: GradientFunction, settings: WorstSettings, seconds: float, origin: dict[str, str]
    ) -> WorstCase:
        """The result, once everything was added."""
        is_flip = settings.is_flip
        return WorstCase(
            name=function.name,
            settings=settings,
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
            warnings=[*function.warnings, *self._warnings(function.name)],
            seconds=seconds,
            provenance=origin,
        )

    def _warnings(self, name: str) -> list[str]:
        found = []
        if self.problem is not None:
            found.append(
                f"{name} gives no gradients: {self.problem}; only draws and deletion were looked at, so the largest "
                "response may be far above what was found"
            )
        if self._still:
            found.append(
                f"{self._still:,} of {self._cells:,} tokens are zero, and a radius in units of their norm leaves them "
                "there: their response is 0; give relative=False for radii in absolute length"
            )
        if self._failed:
            found.append(
                f"{self._failed:,} random changes have no finite response (an output is NaN or infinite, or the change "
                "is undefined); they are left out"
            )
        if self._lost:
            found.append(f"{self._lost:,} of {self._ascents:,} ascents ended early at a gradient of NaN or infinity")
        if self._flat > self._ascents / 2:
            found.append(
                f"{self._flat:,} of {self._ascents:,} ascents ended at a gradient of exactly 0 (does {name} round, or "
                "saturate?): there the largest draw is all that is known"
            )
        return found
