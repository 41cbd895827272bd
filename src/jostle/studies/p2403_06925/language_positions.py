"""Section 6, by position: does an LSTM mind its last tokens most, and a transformer all alike?"""

from typing import Any

import numpy as np
from torch import nn

from jostle.data import Dataset
from jostle.estimates import measure
from jostle.figures import Series, curves
from jostle.perturbations import GaussianNoise
from jostle.results import Record
from jostle.sampling import Grid
from jostle.studies.catalogue import register
from jostle.studies.evidence import paired
from jostle.studies.p2403_06925 import text
from jostle.studies.records import Records
from jostle.studies.study import Drawing
from jostle.studies.verdict import Expectation, beyond, is_above
from jostle.studies.vision import Training, TrainingStudy, at_matched_accuracy
from jostle.tokens import Embeddings

_NAMES = ("encoder", "encoder-relu", "decoder", "lstm")
_LATE = 5  # tokens at the end of a text
_TEXTS, _DRAWS, _LEAST = 200, 2, 50  # a position is drawn if at least so many trials are behind it


@register
class LanguagePositions(TrainingStudy):
    """Sensitivity by position, counted from the end and from the start of each text."""

    name = "2403.06925/language-positions"
    title = "QQP: sensitivity by position"
    claim = "An LSTM is more sensitive to its last tokens; transformers are about as sensitive to all."
    source = "Section 6, the figure by position"
    version = 1
    scales = text.scales("qqp", _NAMES, over_training=False)
    deviations = (
        text.MATCHED,
        text.SMALL_SCALE,
        *text.DIFFERENCES,
        f"Profiles are of {_TEXTS} training texts, {_DRAWS} draws for each token; the paper averages over reports "
        "during training. Positions that few texts have are recorded with their counts and not drawn.",
    )

    def further(self, model: nn.Module, seen: Dataset, unseen: Dataset, settings: Training, seed: int) -> Record:
        texts = seen.inputs[: min(len(seen), _TEXTS)]
        return {
            f"profile_{alignment}": measure(
                model,
                texts,
                tokens=Embeddings(alignment=alignment),
                perturbation=GaussianNoise(settings.std),
                plan=Grid(draws=_DRAWS),
                seed=seed,
            ).profile.to_dict()
            for alignment in ("right", "left")
        }

    def figures(self, records: Records[Training]) -> list[Drawing]:
        return [_by_position(records, alignment) for alignment in ("right", "left")]

    def expectations(self, records: Records[Training]) -> list[Expectation]:
        leads = {name: _lead(records, name) for name in records.settings.networks}
        zeros = dict.fromkeys(leads["lstm"], 0.0)
        late = f"sensitivity to the last {_LATE} tokens - to those before"
        claimed = [is_above(f"{late}, lstm", paired(leads["lstm"], zeros), 0.0)]
        claimed += [
            is_above(f"{late}: lstm - {name}", paired(leads["lstm"], leads[name]), 0.0)
            for name in ("encoder", "encoder-relu")
        ]
        ours = is_above(f"{late}: decoder - encoder", paired(leads["decoder"], leads["encoder"]), 0.0)
        return [*at_matched_accuracy(records, claimed), beyond(ours)]


def _lead(records: Records[Training], name: str) -> dict[int, float]:
    """Mean sensitivity to the last tokens less that to all before, by seed."""
    found = records.where(network=name).by("seed", "profile_right")
    return {
        seed: _mean(profile, slice(-_LATE, None)) - _mean(profile, slice(0, -_LATE)) for seed, profile in found.items()
    }


def _mean(profile: Record, part: slice) -> float:
    """The mean over all trials at some positions."""
    values = np.asarray([value or 0.0 for value in profile["values"][part]])
    counts = np.asarray(profile["counts"][part], dtype=np.float64)
    return float((values * counts).sum() / max(counts.sum(), 1.0))


def _by_position(records: Records[Training], alignment: str) -> Drawing:
    series = []
    for name in records.settings.networks:
        profiles: list[dict[str, Any]] = records.where(network=name).column(f"profile_{alignment}")
        shortest = min(len(profile["values"]) for profile in profiles)
        part = slice(-shortest, None) if alignment == "right" else slice(0, shortest)
        values = np.asarray([[np.nan if v is None else v for v in profile["values"][part]] for profile in profiles])
        counts = np.asarray([profile["counts"][part] for profile in profiles])
        shown = (counts >= _LEAST).all(axis=0)
        x = np.arange(-shortest + 1, 1) if alignment == "right" else np.arange(shortest)
        shares = values[:, shown]
        if shown.any():
            series.append(Series(name, x[shown], shares.mean(axis=0), shares.min(axis=0), shares.max(axis=0)))
    end = {"right": "end", "left": "start"}[alignment]
    label = f"position, 0 is the {'last' if alignment == 'right' else 'first'} token"
    return Drawing(
        f"by-position-{alignment}",
        curves(series, x_label=label, y_label="sensitivity"),
        f"Sensitivity by position, counted from the {end} of each text, where at least {_LEAST} trials are behind it; "
        "the mean and the range over seeds.",
        "Curves of sensitivity over positions, one for each network.",
    )
