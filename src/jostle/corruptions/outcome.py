"""What a model got right under corruptions, and the means of it, each with an interval.

Every corruption and severity is applied to the same images, so that outcomes of one image belong together. A mean over
several corruptions is therefore a mean over images of what each image contributes, and its interval comes from the
spread between images (cluster = image): thirty corruptions of 100 images are not 3,000 trials.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jostle.corruptions.corruption import CORRUPTIONS, FAMILIES
from jostle.errors import UsageError
from jostle.intervals.fixed import bounded_mean, clopper_pearson, histogram, student
from jostle.registry import unknown_name


class Accuracy(NamedTuple):
    """A mean over images and its confidence interval for the population that the images came from."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.3f} [{self.low:.3f}, {self.high:.3f}]"


@dataclass(frozen=True, eq=False)
class CorruptionAccuracy:
    """Which images a model classified correctly, clean and under every corruption and severity.

    >>> right = np.zeros((1, 2, 4), dtype=bool)
    >>> right[0, 0] = True
    >>> result = CorruptionAccuracy(("fog",), (1, 2), right, np.ones(4, dtype=bool), level=0.95)
    >>> result.accuracy("fog", 1).value, result.mean.value, result.mean_corruption_error({"fog": 2.0}).value
    (1.0, 0.5, 0.5)

    Arguments:
        names: of the corruptions.
        severities: in the order asked for.
        correct: whether the prediction was right, # (corruptions, severities, images).
        clean_correct: the same without corruption, # (images,).
        level: coverage of every interval by itself.
    """

    names: tuple[str, ...]
    severities: tuple[int, ...]
    correct: NDArray[np.bool_]
    clean_correct: NDArray[np.bool_]
    level: float

    @property
    def clean(self) -> Accuracy:
        """Accuracy without corruption, with its Clopper-Pearson interval."""
        return self._share(self.clean_correct)

    @property
    def mean(self) -> Accuracy:
        """Mean accuracy over all corruptions and severities."""
        return self._mean(self.correct)

    def accuracy(self, name: str, severity: int) -> Accuracy:
        """Accuracy under one corruption at one severity, with its Clopper-Pearson interval."""
        if name not in self.names:
            raise unknown_name("corruption in this result", name, self.names)
        if severity not in self.severities:
            raise UsageError(f"severity={severity!r} was not measured; there are {list(self.severities)}")
        return self._share(self.correct[self.names.index(name), self.severities.index(severity)])

    def family(self, family: str) -> Accuracy:
        """Mean accuracy over the corruptions of a family, all severities."""
        families = self.families()
        if family not in families:
            raise unknown_name("family in this result", family, families)
        return families[family]

    def families(self) -> dict[str, Accuracy]:
        """Mean accuracy over the corruptions of each family that occurs."""
        homes = np.asarray([CORRUPTIONS.get(name).family for name in self.names])
        return {family: self._mean(self.correct[homes == family]) for family in FAMILIES if family in homes}

    @property
    def summed_errors(self) -> dict[str, float]:
        """For each corruption the error summed over severities: what ``mean_corruption_error`` takes as reference."""
        return dict(zip(self.names, self._errors().mean(axis=1).tolist(), strict=True))

    def mean_corruption_error(self, reference: "Mapping[str, float] | CorruptionAccuracy | None" = None) -> Accuracy:
        """The mean over corruptions of error / reference error, both summed over severities: the paper's mCE.

            mCE = 1/C sum over c of (sum over s of E[s, c]) / (sum over s of R[s, c])

        As a ratio: 1 is the reference, and the paper's percentages are 100 times as large. Without a reference it is
        the plain mean error, 1 - ``mean``. Reference numbers are taken as exact: the interval is Gaffke's for the mean
        over images. A reference measured on the same images is uncertain too: then mCE is linearised in both errors and
        the interval is Student's, asymptotic, for paired images.

        Arguments:
            reference: ``summed_errors`` of another result or published numbers, for every corruption here; or a result
                for the same images, corruptions and severities.
        """
        errors = self._errors()  # (corruptions, images)
        if reference is None:
            value, low, high = self.mean
            return Accuracy(1 - value, 1 - high, 1 - low)
        if isinstance(reference, CorruptionAccuracy):
            return self._paired(errors, reference)
        divisors = self._divisors(reference)
        shares = (errors / divisors[:, None]).mean(axis=0)  # (images,)
        largest = float((len(self.severities) / divisors).mean())
        low, high = bounded_mean(*histogram(shares), self.level, (0.0, largest))
        return Accuracy(float(shares.mean()), low, high)

    def _paired(self, errors: NDArray[np.float64], reference: "CorruptionAccuracy") -> Accuracy:
        ours, theirs = ((one.names, one.severities, one.correct.shape) for one in (self, reference))
        if ours != theirs:
            raise UsageError("reference must be a result for the same images, corruptions and severities")
        divisors = self._divisors(reference.summed_errors)
        others = reference._errors() - divisors[:, None]
        ratios = errors.mean(axis=1) / divisors
        shares = ((errors - ratios[:, None] * others) / divisors[:, None]).mean(axis=0)  # (images,)
        variance = shares.var(ddof=1) if len(shares) > 1 else 0.0
        low, high = student(ratios.mean(), variance, len(shares), self.level)
        return Accuracy(float(ratios.mean()), max(0.0, float(low)), float(high))

    def _divisors(self, reference: Mapping[str, float]) -> NDArray[np.float64]:
        missing = [name for name in self.names if name not in reference]
        if missing:
            raise UsageError(f"reference has no error for {', '.join(missing)}; give one for every corruption")
        divisors = np.asarray([float(reference[name]) for name in self.names])
        for name, divisor in zip(self.names, divisors.tolist(), strict=True):
            if not 0 < divisor <= len(self.severities):
                raise UsageError(
                    f"reference error {divisor:g} of {name} must be above 0 and, summed over {len(self.severities)} "
                    f"severities, at most {len(self.severities)}: errors are shares, not percentages"
                )
        return divisors

    def _errors(self) -> NDArray[np.float64]:
        """(corruptions, images): at how many severities each image is misclassified."""
        errors: NDArray[np.float64] = (~self.correct).sum(axis=1).astype(np.float64)
        return errors

    def _share(self, correct: NDArray[np.bool_]) -> Accuracy:
        low, high = clopper_pearson(correct.sum(), len(correct), self.level)
        return Accuracy(float(correct.mean()), float(low), float(high))

    def _mean(self, correct: NDArray[np.bool_]) -> Accuracy:
        """Over corruptions and severities first, then over images, which are the independent ones."""
        cells = correct.shape[0] * correct.shape[1]
        hits = correct.sum(axis=(0, 1))  # (images,)
        values, counts = histogram(hits / cells)
        return Accuracy(float(hits.mean() / cells), *bounded_mean(values, counts, self.level))

    def to_dict(self) -> dict[str, Any]:
        """Everything but the outcomes of single images, as JSON values."""
        cells = [
            {"corruption": name, "severity": severity, **self.accuracy(name, severity)._asdict()}
            for name in self.names
            for severity in self.severities
        ]
        return {
            "images": len(self.clean_correct),
            "level": self.level,
            "clean": self.clean._asdict(),
            "cells": cells,
            "families": {family: one._asdict() for family, one in self.families().items()},
            "mean": self.mean._asdict(),
        }

    def __str__(self) -> str:
        width = max(len(name) for name in (*self.names, "corruption"))
        rows = [" ".join(["corruption".ljust(width), *(f"{f'severity {one}':^20}" for one in self.severities)])]
        for name in self.names:
            cells = (f"{self.accuracy(name, severity)!s:^20}" for severity in self.severities)
            rows.append(" ".join([name.ljust(width), *cells]))
        means = {"clean": self.clean, **self.families(), "mean": self.mean}
        rows.extend(f"{label.ljust(width)} {one}" for label, one in means.items())
        return "\n".join(row.rstrip() for row in rows)
