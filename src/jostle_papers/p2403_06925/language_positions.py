"""Section 6, by position: does an LSTM mind its last tokens most, and a transformer all alike?"""

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from jostle.base.store import Record
from jostle.data import Dataset
from jostle.estimates import measure
from jostle.figures import Series, curves, dots
from jostle.perturbations import GaussianNoise
from jostle.sampling import Grid
from jostle.studies.catalogue import register
from jostle.studies.evidence import paired
from jostle.studies.records import Records
from jostle.studies.study import Drawing
from jostle.studies.verdict import Expectation, beyond, is_above
from jostle.tokens import Embeddings
from jostle.tokens.text_views import SPECIAL_KEY
from jostle_papers.p2403_06925 import text
from jostle_papers.trained import Training, TrainingStudy, at_matched_accuracy, mean_and_range

_NAMES = ("encoder", "encoder-relu", "decoder", "lstm")
FIRST, SEPARATORS, WORDS = "first token", "separators", "words"
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
        noise = GaussianNoise(settings.std)
        profiles = {
            f"profile_{alignment}": measure(
                model, texts, tokens=Embeddings(alignment=alignment), perturbation=noise, plan=Grid(_DRAWS), seed=seed
            ).profile.to_dict()
            for alignment in ("right", "left")
        }
        kinds = {}
        for name, is_of_kind in _kinds(texts).items():
            # A view leaves out what is marked as special: here all that is not of this kind.
            marked = {"input_ids": texts, "attention_mask": (texts != 0).long(), SPECIAL_KEY: (~is_of_kind).long()}
            found = measure(
                model,
                {key: value[is_of_kind.any(dim=1)] for key, value in marked.items()},
                tokens=Embeddings(special=False),
                perturbation=noise,
                average="micro",
                plan=Grid(_DRAWS),
                seed=seed,
            )
            kinds[name] = {"value": found.value, "low": found.low, "high": found.high, "level": found.settings.level}
        return {**profiles, "kinds": kinds}

    def figures(self, records: Records[Training]) -> list[Drawing]:
        return [*(_by_position(records, alignment) for alignment in ("right", "left")), _by_kind(records)]

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
        bumps = [
            is_above(
                f"sensitivity of {name} to the first token - to words",
                paired(_kind(records, name, FIRST), _kind(records, name, WORDS)),
                0.0,
            )
            for name in ("encoder", "encoder-relu")
        ]
        return [*at_matched_accuracy(records, claimed, text.ACCURACY), *map(beyond, [ours, *bumps])]


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


def _kinds(texts: Tensor) -> dict[str, Tensor]:
    """Which tokens are the first of their text, separators, and words, each (texts, tokens)."""
    is_real, places = texts != 0, torch.arange(texts.shape[1])
    last = texts.gather(1, is_real.sum(dim=1, keepdim=True) - 1)  # every text ends with a separator
    is_first, is_separator = (places == 0).expand_as(texts), texts == last
    return {FIRST: is_first, SEPARATORS: is_separator, WORDS: is_real & ~is_first & ~is_separator}


def _kind(records: Records[Training], name: str, kind: str) -> dict[int, float]:
    """Sensitivity of a network to tokens of a kind, by seed."""
    return {seed: found[kind]["value"] for seed, found in records.where(network=name).by("seed", "kinds").items()}


def _by_kind(records: Records[Training]) -> Drawing:
    rows = {
        name: [
            mean_and_range(kind, [0.0], [list(_kind(records, name, kind).values())])
            for kind in (FIRST, SEPARATORS, WORDS)
        ]
        for name in records.settings.networks
    }
    return Drawing(
        "by-kind",
        dots(rows, x_label="sensitivity"),
        "Sensitivity to the first token, which encoders read their answer off, to separators and to words; the mean "
        "and the range over seeds.",
        "Sensitivity of each network to three kinds of token.",
    )


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
