"""Section 6, by position: is an LSTM most sensitive to its last tokens, and a transformer equally to all?"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from jostle import figures
from jostle.estimates import measure
from jostle.figures import Series
from jostle.perturbations import GaussianNoise
from jostle.sampling import Grid
from jostle.studies.catalogue import register
from jostle.studies.evidence import paired
from jostle.studies.records import Records
from jostle.studies.schema import IfGiven, Struct, from_plain
from jostle.studies.study import Context, Drawing
from jostle.studies.verdict import Expectation, beyond, is_above, is_smaller, is_within_factor
from jostle.tokens import Embeddings
from jostle.tokens.text_views import SPECIAL_KEY
from jostle_papers.p2403_06925 import text
from jostle_papers.trained import (
    BySeed,
    MeasuredValue,
    NetworkCell,
    NetworkStudy,
    TrainedRecord,
    TrainingCell,
    TrainingSettings,
    learnt,
    mean_and_range,
)

_NAMES = ("encoder", "encoder-relu", "decoder", "lstm")
FIRST, SEPARATORS, WORDS = "first token", "separators", "words"
_LATE = 5  # words at the end of a text, before the separator that ends it
_TEXTS, _DRAWS = 200, 2
_BIN = 4  # neighbouring positions that a point of a figure stands for
_LEAST = 50  # trials behind a position that is shown

Alignment = Literal["right", "left"]


@dataclass(frozen=True, kw_only=True)
class PositionProfile(Struct):
    """Sensitivity by position, as ``to_dict`` of a measurement's profile gives it; None where there was no trial."""

    values: tuple[float | None, ...]
    low: tuple[float | None, ...]
    high: tuple[float | None, ...]
    counts: tuple[int, ...]
    positions: tuple[int, ...]
    target: str
    method: str
    special: IfGiven[tuple[float | None, ...]] = ()


@dataclass(frozen=True, kw_only=True)
class PositionsRecord(TrainedRecord):
    """A trained network, and its sensitivity by position and by kind of token.

    Arguments:
        profile_right, profile_left: positions counted from the end and from the start of each text.
        kinds: sensitivity to each kind of token.
    """

    profile_right: PositionProfile
    profile_left: PositionProfile
    kinds: dict[str, MeasuredValue]

    def profile(self, alignment: Alignment) -> PositionProfile:
        """The profile counted from one side."""
        return self.profile_right if alignment == "right" else self.profile_left


PositionsRecords = Records[TrainingSettings, NetworkCell, PositionsRecord]


@register
class LanguagePositions(NetworkStudy[PositionsRecord]):
    """Sensitivity by position, counted from the end and from the start of each text."""

    name = "2403.06925/language-positions"
    title = "QQP: sensitivity by position"
    claim = (
        "On QQP, at noise of variance 15, an LSTM is more sensitive to the last words of a text than to those before, "
        f"and more so than transformers are ({text.AT_SMALL_SCALE})."
    )
    source = "Section 6, the figure by position"
    version = 1
    scales = text.scales("qqp", _NAMES, over_training=False)
    deviations = (
        text.MATCHED,
        text.SMALL_SCALE,
        text.ONE_SUBSET,
        text.FURTHER,
        *text.DIFFERENCES,
        f"The last words are the {_LATE} tokens before the separator that ends every text. At first they were the "
        f"last {_LATE} tokens, the separator among them; this was changed after the records had been seen.",
        f"Profiles are of {_TEXTS} training texts, {_DRAWS} draws for each token; the paper averages over reports "
        "during training. Positions that few texts have are recorded with their counts and not drawn.",
    )
    claimed_networks = text.CLAIMED

    def measure(self, cell: TrainingCell, settings: TrainingSettings, context: Context) -> PositionsRecord:
        trained = self.train(cell, settings, context)
        model, seed = trained.model, cell.seed
        texts = trained.seen.inputs[: min(len(trained.seen), _TEXTS)]
        noise = GaussianNoise(settings.std)

        def profile(alignment: Alignment) -> PositionProfile:
            tokens = Embeddings(alignment=alignment)
            found = measure(model, texts, tokens=tokens, perturbation=noise, plan=Grid(_DRAWS), seed=seed)
            return from_plain(PositionProfile, found.profile.to_dict(), "profile")

        right, left = profile("right"), profile("left")
        kinds = {}
        for name, is_of_kind in _kinds(texts).items():
            # A view leaves out tokens that are marked as special. Here these are all tokens of other kinds.
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
            level = found.settings.level
            kinds[name] = MeasuredValue(value=found.value, low=found.low, high=found.high, level=level)
        return PositionsRecord(**vars(trained.record), profile_right=right, profile_left=left, kinds=kinds)

    def figures(self, records: PositionsRecords) -> list[Drawing]:
        return [_by_position(records, "right"), _by_position(records, "left"), _by_kind(records)]

    def expectations(self, records: PositionsRecords) -> list[Expectation]:
        kept, counted = learnt(records, text.ACCURACY)
        late = f"the {_LATE} words before the last separator"
        leads = {name: _lead(kept, name) for name in records.settings.networks}
        claimed = [is_smaller(f"sensitivity of lstm to the tokens before / to {late}", *_early_and_late(kept, "lstm"))]
        claimed += [
            is_smaller(f"sensitivity to {late} / to those before: {name} / lstm", leads[name], leads["lstm"])
            for name in ("encoder", "encoder-relu")
        ]
        even = [
            is_within_factor(f"sensitivity of {name} to the tokens before / to {late}", *_early_and_late(kept, name))
            for name in ("encoder", "encoder-relu")
        ]
        ours = is_smaller(
            f"sensitivity to {late} / to those before: encoder / decoder", leads["encoder"], leads["decoder"]
        )
        bumps = [
            is_above(
                f"sensitivity of {name} to the first token - to words",
                paired(_kind(kept, name, FIRST), _kind(kept, name, WORDS)),
                0.0,
            )
            for name in ("encoder", "encoder-relu")
        ]
        return [*claimed, *counted, *map(beyond, [*even, ours, *bumps])]


def _early_and_late(records: PositionsRecords, name: str) -> tuple[BySeed, BySeed]:
    """Sensitivity to all tokens before the last words and the separator, and to the last words, by seed."""
    found = records.where(network=name).by("seed", lambda record: record.profile_right)
    early = {seed: _share(profile, slice(0, -_LATE - 1)) for seed, profile in found.items()}
    return early, {seed: _share(profile, slice(-_LATE - 1, -1)) for seed, profile in found.items()}


def _lead(records: PositionsRecords, name: str) -> BySeed:
    """Sensitivity to the last words / to all tokens before, by seed."""
    early, late = _early_and_late(records, name)
    return {seed: late[seed] / early[seed] for seed in late}


def _share(profile: PositionProfile, part: slice) -> float:
    """The share of flips among all trials at some positions: (flips + 1/2) / (trials + 1), never 0."""
    values = np.asarray([value or 0.0 for value in profile.values[part]])
    counts = np.asarray(profile.counts[part], dtype=np.float64)
    return float(((values * counts).sum() + 0.5) / (counts.sum() + 1))


def _kinds(texts: Tensor) -> dict[str, Tensor]:
    """Which tokens are the first of their text, separators, and words, each (texts, tokens)."""
    is_real, places = texts != 0, torch.arange(texts.shape[1])
    last = texts.gather(1, is_real.sum(dim=1, keepdim=True) - 1)  # every text ends with a separator
    is_first, is_separator = (places == 0).expand_as(texts), texts == last
    return {FIRST: is_first, SEPARATORS: is_separator, WORDS: is_real & ~is_first & ~is_separator}


def _kind(records: PositionsRecords, name: str, kind: str) -> BySeed:
    """Sensitivity of a network to tokens of a kind, by seed."""
    return records.where(network=name).by("seed", lambda record: record.kinds[kind].value)


def _by_kind(records: PositionsRecords) -> Drawing:
    rows = {
        name: [
            mean_and_range(kind, [0.0], [list(_kind(records, name, kind).values())])
            for kind in (FIRST, SEPARATORS, WORDS)
        ]
        for name in records.settings.networks
    }
    return Drawing(
        "by-kind",
        figures.dots(rows, x_label="sensitivity"),
        "Sensitivity to the first token, which encoders read their answer off, to separators and to words; the mean "
        "and the range over seeds.",
        "Sensitivity of each network to three kinds of token.",
    )


def _by_position(records: PositionsRecords, alignment: Alignment) -> Drawing:
    series = []
    for name in records.settings.networks:
        profiles = records.where(network=name).column(lambda record: record.profile(alignment))
        shortest = min(len(profile.values) for profile in profiles)
        part = slice(-shortest, None) if alignment == "right" else slice(0, shortest)
        values = np.asarray([[np.nan if v is None else v for v in profile.values[part]] for profile in profiles])
        counts = np.asarray([profile.counts[part] for profile in profiles])
        shown = (counts >= _LEAST).all(axis=0)
        x = np.arange(-shortest + 1, 1) if alignment == "right" else np.arange(shortest)
        binned = [
            (x[part].mean(), np.average(values[:, part], axis=1, weights=counts[:, part].mean(axis=0)))
            for part in _bins(np.flatnonzero(shown), alignment)
        ]
        if binned:
            places, shares = [place for place, _ in binned], np.asarray([share for _, share in binned])  # (bins, seeds)
            series.append(Series(name, places, shares.mean(axis=1), shares.min(axis=1), shares.max(axis=1)))
    end = {"right": "end", "left": "start"}[alignment]
    label = f"position, 0 is the {'last' if alignment == 'right' else 'first'} token"
    return Drawing(
        f"by-position-{alignment}",
        figures.curves(series, x_label=label, y_label="sensitivity"),
        f"Sensitivity by position, counted from the {end} of each text and averaged over {_BIN} neighbours, where at "
        f"least {_LEAST} trials are behind each; the mean and the range over seeds.",
        "Curves of sensitivity over positions, one for each network.",
    )


def _bins(shown: NDArray[np.int64], alignment: Alignment) -> list[NDArray[np.int64]]:
    """Neighbouring positions by ``_BIN``, counted from where the texts are aligned: one alone is mostly noise."""
    ordered = shown[::-1] if alignment == "right" else shown
    bins = [np.sort(ordered[start : start + _BIN]) for start in range(0, len(ordered), _BIN)]
    return bins[::-1] if alignment == "right" else bins
