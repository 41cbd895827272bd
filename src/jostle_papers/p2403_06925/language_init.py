"""Section 6: at initialisation, before any training, on real texts."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from jostle import figures, models
from jostle.estimates import measure
from jostle.figures import Series
from jostle.perturbations import GaussianNoise
from jostle.sampling import Until
from jostle.studies.catalogue import register
from jostle.studies.evidence import unpaired
from jostle.studies.records import Records
from jostle.studies.schema import Struct
from jostle.studies.study import Context, Drawing, Study
from jostle.studies.verdict import Expectation, beyond, is_above
from jostle_papers.language import TextTrainingSettings
from jostle_papers.language.networks import NAMES
from jostle_papers.p2403_06925 import text
from jostle_papers.trained import TrainingCell


@dataclass(frozen=True, kw_only=True)
class InitRecord(Struct):
    """A network with random weights.

    Arguments:
        sensitivity, low, high: with the ends of its interval.
        larger_class: the share of texts that get the answer which most texts get.
    """

    sensitivity: float
    low: float
    high: float
    larger_class: float


InitRecords = Records[TextTrainingSettings, TrainingCell, InitRecord]


@register
class LanguageInit(Study[TextTrainingSettings, TrainingCell, InitRecord]):
    """Sensitivity of networks with random weights."""

    name = "2403.06925/language-init"
    title = "QQP: at initialisation"
    claim = (
        "On QQP, at noise of variance 15, an LSTM is more sensitive than a transformer even at initialisation (at our "
        "setting all LSTMs are constant there: they give all texts the same answer, whatever the noise)."
    )
    source = "Section 6"
    version = 1
    scales = {
        "smoke": replace(text.at_scale("smoke", "qqp", NAMES), seeds=3),
        "small": replace(text.at_scale("small", "qqp", NAMES), seeds=20, limit=300, passes=3_000),
        "paper": replace(text.at_scale("paper", "qqp", NAMES), seeds=20, limit=640, passes=20_000),
    }
    deviations = (
        *text.DIFFERENCES[1:],
        "Twenty networks of each kind with random weights, on 300 training texts at small scale; the paper shows the "
        "first point of a moving average over training. A network that answers all texts alike is not sensitive: the "
        "share of texts in its larger class is recorded beside it.",
    )

    def cells(self, settings: TextTrainingSettings, seeds: Sequence[int]) -> list[TrainingCell]:
        return [TrainingCell(name, seed) for seed in seeds for name in settings.networks]

    def measure(self, cell: TrainingCell, settings: TextTrainingSettings, context: Context) -> InitRecord:
        network, seed = settings.networks[cell.network], cell.seed
        texts = settings.load("train", context.data, seed)
        model = models.create(network.model, seed=seed, **network.sizes).eval()
        found = measure(
            model,
            texts.inputs,
            tokens=settings.tokens,
            perturbation=GaussianNoise(settings.std),
            average=settings.averaging,
            plan=Until(half_width=0.01, max_passes=settings.passes),
            seed=seed,
        )
        share = float(model(texts.inputs).argmax(dim=1).double().mean())
        return InitRecord(sensitivity=found.value, low=found.low, high=found.high, larger_class=max(share, 1 - share))

    def figures(self, records: InitRecords) -> list[Drawing]:
        rows = {}
        for name in records.settings.networks:
            values = sorted(records.where(network=name).column(lambda record: record.sensitivity))
            middle = values[len(values) // 2]
            rows[name] = [Series("median and range over seeds", [0.0], [middle], [values[0]], [values[-1]])]
        return [
            Drawing(
                "at-initialisation",
                figures.dots(rows, x_label="sensitivity"),
                "Sensitivity of networks with random weights; the median and the range over seeds.",
                "Sensitivity of networks with random weights.",
            )
        ]

    def expectations(self, records: InitRecords) -> list[Expectation]:
        values = {
            name: records.where(network=name).by("seed", lambda record: record.sensitivity)
            for name in records.settings.networks
        }

        def ahead(second: str) -> Expectation:
            statement = f"sensitivity at initialisation: lstm ({constant['lstm']}) - {second} ({constant[second]})"
            return is_above(statement, unpaired(values["lstm"], values[second]), 0.0)

        constant = {name: _constant(records, name) for name in values}
        others = [name for name in values if name not in ("lstm", "encoder", "encoder-relu")]
        return [ahead("encoder"), ahead("encoder-relu"), *(beyond(ahead(name)) for name in others)]


def _constant(records: InitRecords, name: str) -> str:
    """How many of the networks of a kind are constant: they give all texts the same answer."""
    shares = records.where(network=name).column(lambda record: record.larger_class)
    return f"{sum(share == 1 for share in shares)} of {len(shares)} constant"
