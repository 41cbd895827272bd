"""Juntas: on how few tokens of its context does the next token of a language model depend?"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

import jostle
from jostle import figures
from jostle.base import checks
from jostle.figures import Series
from jostle.perturbations import UniformToken
from jostle.studies.catalogue import register
from jostle.studies.evidence import over_seeds
from jostle.studies.records import Records
from jostle.studies.schema import Struct
from jostle.studies.settings import Settings
from jostle.studies.study import Cell, Context, Drawing, Study
from jostle.studies.verdict import Expectation, beyond, is_below
from jostle_papers.p2602_08287.stories import NETWORKS, tell

MOST = 10  # tokens that a prediction depends on, as the paper says: 5 to 10 of 256
MATTERS = 0.05  # a token matters if moving it moves so much probability of the next token, on average
_READ = 16  # last predictions whose influences are averaged
_FIRST_SEED = 2000
_DIGITS = 4


@dataclass(frozen=True, kw_only=True)
class JuntaSettings(Settings):
    """Which networks tell how long stories.

    Arguments:
        seeds: stories of each network.
        networks: names of ``stories.NETWORKS``.
        tokens: of a story.
        passes: the most that one story takes.
    """

    seeds: int = 8
    networks: tuple[str, ...] = ("stories260K", "babyllama105", "tinystories-gru")
    tokens: int = 128
    passes: int = 20_000

    def __post_init__(self) -> None:
        checks.whole("tokens", self.tokens, least=_READ + 4)


@dataclass(frozen=True)
class JuntaCell(Cell):
    """A story that a network told."""

    network: str
    seed: int


@dataclass(frozen=True, kw_only=True)
class JuntaRecord(Struct):
    """The influence of the tokens of a story on its last predictions; all numbers are means over these predictions.

    Arguments:
        mattering: tokens whose replacement moves at least 5 % of the probability of the next token.
        half, most: tokens that carry 50 % and 90 % of all influence.
        by_distance: the influence of a token by its distance to the prediction, from the last token on.
        draws: of each token.
        passes: of the network.
    """

    mattering: float
    half: float
    most: float
    by_distance: tuple[float, ...]
    draws: int
    passes: int


JuntaRecords = Records[JuntaSettings, JuntaCell, JuntaRecord]


@register
class Juntas(Study[JuntaSettings, JuntaCell, JuntaRecord]):
    """The tokens that the next token depends on, in stories that networks tell themselves."""

    name = "2602.08287/juntas"
    title = "Language models: how few tokens the next one depends on"
    claim = (
        "In three small language models of stories, the next token depends on at most 10 of 128 tokens: so few move "
        "5 % or more of its probability when they are replaced (at our setting: 0.2 to 0.9 million weights, uniform "
        "tokens in their place)."
    )
    source = "Section 1: outputs of GPT-2, Gemma and RoBERTa depend on 5 to 10 of 256 tokens"
    version = 1
    scales = {
        "smoke": JuntaSettings(seeds=1, networks=("untrained",), tokens=24, passes=2_000),
        "small": JuntaSettings(),
        "paper": JuntaSettings(tokens=256, passes=60_000),
    }
    deviations = (
        "Networks of 0.2 to 0.9 million weights, two Llamas and a recurrent network, which others trained on stories; "
        "two of them read characters. The paper has GPT-2, Gemma and RoBERTa.",
        "Texts are stories of 128 tokens that each network told itself, sampled at temperature 0.8, not a corpus.",
        "How the paper decides that a token matters is not known to us. Here a token is replaced by a uniform token of "
        "the vocabulary, 16 times; its influence is the mean total variation of the next token's probabilities, and it "
        f"matters from {MATTERS:g} on. Influences are averaged over the last {_READ} predictions.",
        "Tokens that carry 90 % of the influence are judged beyond the claim.",
        "A pilot with another seed was seen before the run (58, 34 and 12 tokens); nothing was changed after it.",
    )

    def cells(self, settings: JuntaSettings, seeds: Sequence[int]) -> list[JuntaCell]:
        return [JuntaCell(network, seed) for seed in seeds for network in settings.networks]

    def measure(self, cell: JuntaCell, settings: JuntaSettings, context: Context) -> JuntaRecord:
        make, begin, first = NETWORKS[cell.network]
        network = make()
        story = tell(network, begin, first, settings.tokens, _FIRST_SEED + cell.seed)
        words = network.get_input_embeddings().num_embeddings  # type: ignore[operator]
        found = jostle.influence(
            network, story.tolist(), perturbation=UniformToken(torch.arange(first, words)),
            response="total-variation", half_width=1.0,  # met after the first 16 draws of each token
            max_passes=settings.passes, mask=story >= first, seed=cell.seed, progress=context.report,
        )  # fmt: skip
        return _summary(found[0].values, found[0].draws, found.passes)

    def figures(self, records: JuntaRecords) -> list[Drawing]:
        series = []
        for network in records.settings.networks:
            curves = np.asarray(records.where(network=network).column(lambda record: record.by_distance))
            distance = np.arange(1, curves.shape[1] + 1)
            series.append(Series(network, distance.tolist(), curves.mean(axis=0).tolist()))
        return [
            Drawing(
                "distance",
                figures.curves(
                    series, x_label="distance to the prediction, tokens", y_label="influence, total variation",
                    log_x=True,
                ),
                "The influence of a token on the next token by its distance, 1 for the last one; the mean over stories "
                f"and over the last {_READ} predictions of each.",
                "Influence of a token against its distance to the prediction, a curve for each network.",
            )
        ]  # fmt: skip

    def expectations(self, records: JuntaRecords) -> list[Expectation]:
        asked = []
        for network in records.settings.networks:
            of = records.where(network=network)
            asked.append(
                is_below(
                    f"tokens that move 5 % of the next token's probability, {network}",
                    over_seeds(of.by("seed", lambda record: record.mattering)),
                    MOST + 0.5,
                )
            )
        for network in records.settings.networks:
            carried = over_seeds(records.where(network=network).by("seed", lambda record: record.most))
            asked.append(beyond(is_below(f"tokens that carry 90 % of the influence, {network}", carried, MOST + 0.5)))
        return asked


def _summary(values: np.ndarray, draws: Sequence[int], passes: int) -> JuntaRecord:
    """A record from influences (tokens, predictions)."""
    count = values.shape[1]
    places = range(count - _READ, count)
    shortest = count - _READ  # distances that all of these predictions have, without the first token
    columns = [np.nan_to_num(values[: place + 1, place]) for place in places]
    distances = np.mean([column[::-1][:shortest] for column in columns], axis=0)
    return JuntaRecord(
        mattering=float(np.mean([(column >= MATTERS).sum() for column in columns])),
        half=float(np.mean([_carrying(column, 0.5) for column in columns])),
        most=float(np.mean([_carrying(column, 0.9) for column in columns])),
        by_distance=tuple(float(f"{value:.{_DIGITS}g}") for value in distances),
        draws=int(max(draws)),
        passes=passes,
    )


def _carrying(influences: np.ndarray, share: float) -> int:
    """The fewest tokens that have this share of all influence; 0 if there is none."""
    total = influences.sum()
    if total <= 0:
        return 0
    return int(np.searchsorted(np.cumsum(np.sort(influences)[::-1]), share * total - 1e-12) + 1)
