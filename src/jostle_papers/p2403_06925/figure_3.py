"""Figures 3 and 12: which tokens a layer of self-attention learns to use, and where its attention goes."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from jostle import figures
from jostle.base import checks
from jostle.base.errors import UsageError
from jostle.data import Dataset
from jostle.figures import Series
from jostle.studies.catalogue import register
from jostle.studies.evidence import (
    Measured,
    mean_by_seed,
    over_seeds,
    proportion,
)
from jostle.studies.records import Records
from jostle.studies.schema import Struct
from jostle.studies.settings import Settings
from jostle.studies.study import Cell, Context, Drawing, Study
from jostle.studies.verdict import Expectation, beyond, holds_for_all, is_above, within
from jostle.training import Epoch, evaluate, fit
from jostle_papers.p2403_06925.synthetic import (
    GROUPS,
    SelfAttention,
    SparseFrequent,
    alignments,
    attention_shares,
    counting_sensitivity,
    exact_sensitivity,
    expected_alignments,
    swap_sparse,
)
from jostle_papers.trained import mean_and_range

# Figure 12 from left to right, Figure 3's two among them: (n_s, n_f, n_d, m), and the M of Table 3 or, in the last one,
# the least there can be. The last case is our own: there the frequent tokens are the less sensitive ones to use, as in
# case 2, and the weaker direction of the gradient, as in case 1.
CASES = {
    "3, 3, 1, 6": SparseFrequent(sparse=3, frequent=3, difference=1, kinds=6, vocabulary=59),
    "3, 5, 1, 16": SparseFrequent(sparse=3, frequent=5, difference=1, kinds=16, vocabulary=59),
    "3, 7, 1, 28": SparseFrequent(sparse=3, frequent=7, difference=1, kinds=28, vocabulary=59),
    "1, 7, 7, 10": SparseFrequent(sparse=1, frequent=7, difference=7, kinds=10, vocabulary=69),
    "1, 17, 7, 20": SparseFrequent(sparse=1, frequent=17, difference=7, kinds=20, vocabulary=69),
    "1, 32, 7, 36": SparseFrequent(sparse=1, frequent=32, difference=7, kinds=36, vocabulary=75),
    "1, 17, 3, 20": SparseFrequent(sparse=1, frequent=17, difference=3, kinds=20, vocabulary=69),
}
FIGURE_3 = ("3, 5, 1, 16", "1, 17, 7, 20")  # cases 1 and 2 of the paper's main text
OURS = "1, 17, 3, 20"
_NEAR = 0.1  # how near a cosine must be to 1, and an accuracy to 0 or 1; the paper gives no numbers
_SMALL = 0.1  # the largest initial scale that is still small


def used(case: str) -> str:
    """The tokens that low sensitivity lets one expect a network to use.

    >>> [used(case) for case in FIGURE_3]
    ['sparse', 'frequent']
    """
    return min(GROUPS[:2], key=lambda group: counting_sensitivity(CASES[case], group))


@dataclass(frozen=True, kw_only=True)
class TokenSettings(Settings):
    """How networks are trained.

    Arguments:
        cases: names of ``CASES``.
        rates: learning rates of SGD.
        initial_scales: standard deviations of initial weights; those above 0.1 are beyond the paper.
        epochs: of training.
        evaluate_every: epochs from one look to the next.
        examples, test_examples, batch_size: of the data; the paper's by default.
        enumerated: training sequences of which all replacements are tried.
    """

    cases: tuple[str, ...] = tuple(CASES)
    rates: tuple[float, ...] = (1.0,)
    initial_scales: tuple[float, ...] = (0.1,)
    epochs: int = 400
    evaluate_every: int = 10
    examples: int = 1000
    test_examples: int = 500
    batch_size: int = 100
    enumerated: int = 100


@dataclass(frozen=True)
class TokenCell(Cell):
    """One network: a case of tokens, a learning rate, an initial scale and a seed."""

    case: str
    rate: float
    scale: float
    seed: int


@dataclass(frozen=True, kw_only=True)
class EpochLook(Struct):
    """What the figures show of a network after some epochs.

    Arguments:
        epoch: their number.
        loss, accuracy: on training sequences.
        test_accuracy, ood_accuracy: on unseen sequences, and on the same with the sparse tokens exchanged.
        alignment: cosine of the read-out with the direction of each group of tokens.
        attention: softmax scores, summed over each group of tokens.
    """

    epoch: int
    loss: float
    accuracy: float
    test_accuracy: float
    ood_accuracy: float
    alignment: dict[str, float]
    attention: dict[str, float]


@dataclass(frozen=True, kw_only=True)
class TokenRecord(Struct):
    """One network along its training.

    Arguments:
        epochs: all looks.
        epoch, loss, accuracy, test_accuracy, ood_accuracy, alignment, attention: those of the last look.
        uniform_attention: summed softmax scores if all positions had the same.
        sensitivity: to replacing one token, exactly.
        of_predictors: the same of predictors that use one group of tokens only.
        expected_alignment: that of the first gradient.
    """

    epochs: tuple[EpochLook, ...]
    epoch: int
    loss: float
    accuracy: float
    test_accuracy: float
    ood_accuracy: float
    alignment: dict[str, float]
    attention: dict[str, float]
    uniform_attention: dict[str, float]
    sensitivity: float
    of_predictors: dict[str, float]
    expected_alignment: dict[str, float]


TokenRecords = Records[TokenSettings, TokenCell, TokenRecord]


@register
class Figure3(Study[TokenSettings, TokenCell, TokenRecord]):
    """Eq. 3 trained on the six cases of Figure 12, two of which are those of Figure 3, and on one more."""

    name = "2403.06925/figure-3"
    title = "Synthetic tokens: which ones a layer of self-attention uses"
    claim = (
        "Trained from small weights (std 0.1), a layer of self-attention uses the tokens that give the less sensitive "
        "function: the sparse ones in case 1 of Figure 3, so that its accuracy out of distribution falls to 0, and the "
        "frequent ones in case 2, so that it stays high; its read-out aligns with them, and at our setting its "
        "attention to a token, over its share of the positions, is largest on them."
    )
    source = "Section 4.1, Figure 3, and appendix A.1, Figure 12"
    version = 2
    scales = {
        "smoke": TokenSettings(
            seeds=1, epochs=4, evaluate_every=2, examples=100, test_examples=20, batch_size=20, enumerated=2,
            cases=(*FIGURE_3, OURS),
        ),
        "small": TokenSettings(seeds=8),
        "paper": TokenSettings(seeds=10, rates=(0.1, 0.3, 1.0), initial_scales=(0.01, 0.03, 0.1, 0.3), epochs=2000,
                               evaluate_every=20),
    }  # fmt: skip
    deviations = (
        "The paper gives neither learning rate, initial scale, epochs, loss, width nor M: here the logistic loss, "
        "weights of std 0.1, width M, and the M of Table 3, in its last column the least there can be.",
        "Learning rate and epochs were chosen by the training loss of a pilot from seed 100, which is not among the "
        "seeds: the largest of 0.1, 0.3, 1, 3 and 10 at which the loss never rises in any of the six cases, and the "
        "first multiple of 100 epochs after which it is below 0.0001 in all of them. At 3 it diverges.",
        "The paper prints U of Eq. 3 as a square matrix; the inner product needs a row for each position, as here.",
        "What the figure shows is read as: accuracy out of distribution below 0.1 and above 0.9; a larger cosine of "
        "the read-out with the used direction than with the other; softmax scores of a group of tokens, divided by "
        "its share of the positions, largest for the used tokens. Each is a yes or no of a seed, and the claim is that "
        "more than half of all seeds say yes.",
        "Version 1 trained for 200 epochs from smaller weights, where attention had hardly moved, pooled the answers "
        "of few networks, and compared scores summed over groups of unequal size. It was replaced after its records "
        "had been seen; all records are new.",
        "Beyond the claim: the four other cases of Figure 12; at paper scale other initial weights, up to std 0.3; and "
        f"our own case (n_s, n_f, n_d, m) = ({OURS}), in which using the frequent tokens is less sensitive although "
        "the sparse ones are the stronger direction of the first gradient.",
    )

    def cells(self, settings: TokenSettings, seeds: Sequence[int]) -> list[TokenCell]:
        for case in settings.cases:
            checks.choice("case", case, CASES)
        if min(settings.initial_scales) > _SMALL:
            raise UsageError(f"initial_scales={settings.initial_scales} must have one of at most {_SMALL}")
        return [
            TokenCell(case, rate, scale, seed)
            for case in settings.cases
            for rate in settings.rates
            for scale in settings.initial_scales
            for seed in seeds
        ]

    def measure(self, cell: TokenCell, settings: TokenSettings, context: Context) -> TokenRecord:
        task, seed = CASES[cell.case], cell.seed
        train = task.sample(settings.examples, seed=seed)
        # A test of its own for every network, so that all answers are independent given the networks.
        split = f"test of rate {cell.rate:g}, scale {cell.scale:g}"
        test = task.sample(settings.test_examples, seed=seed, split=split)
        network = SelfAttention(vocabulary=task.vocabulary, num_tokens=task.num_tokens, scale=cell.scale, seed=seed)
        epochs: list[EpochLook] = []

        def look(epoch: Epoch) -> None:
            epochs.append(_look(epoch, network, task, test))

        fit(
            network, train, optimizer="sgd", lr=cell.rate, batch_size=settings.batch_size,
            max_epochs=settings.epochs, evaluate_every=settings.evaluate_every, seed=seed, on_epoch=look,
            progress=context.report,
        )  # fmt: skip
        counts = zip(GROUPS, (task.sparse, task.frequent, task.num_irrelevant), strict=True)
        return TokenRecord(
            epochs=tuple(epochs),
            **vars(epochs[-1]),
            uniform_attention={name: count / task.num_tokens for name, count in counts},
            sensitivity=exact_sensitivity(network, train.inputs[: settings.enumerated]),
            of_predictors={group: float(counting_sensitivity(task, group)) for group in GROUPS[:2]},
            expected_alignment=expected_alignments(task),
        )

    def figures(self, records: TokenRecords) -> list[Drawing]:
        small = _small(records)
        return [
            _accuracies(small),
            *(_alignment(small, case) for case in records.settings.cases),
            _attention(small),
            *([_against_scale(records)] if len(records.settings.initial_scales) > 1 else []),
        ]

    def expectations(self, records: TokenRecords) -> list[Expectation]:
        small = _small(records)
        claimed = _asked(small.keep(lambda cell, _: cell.case in FIGURE_3), "both cases of Figure 3")
        found = []
        for case in records.settings.cases:
            part = small.where(case=case)
            found += [*_asked(part, f"({case})"), *_further(part, case)]
        return [*claimed, *map(beyond, [*found, *_at_larger_scales(records)])]


def _look(epoch: Epoch, network: SelfAttention, task: SparseFrequent, test: Dataset) -> EpochLook:
    """What the figures show of a network."""
    return EpochLook(
        epoch=epoch.number,
        loss=epoch.loss,
        accuracy=epoch.accuracy,
        test_accuracy=evaluate(network, test).accuracy,
        ood_accuracy=evaluate(network, swap_sparse(test)).accuracy,
        alignment=alignments(network, task),
        attention=attention_shares(network, task, test.inputs),
    )


def _small(records: TokenRecords) -> TokenRecords:
    """The records of networks that start from small weights."""
    return records.keep(lambda cell, _: cell.scale <= _SMALL)


def _other(group: str) -> str:
    return "frequent" if group == "sparse" else "sparse"


def _over(part: TokenRecords, of: Callable[[TokenRecord], float]) -> Measured:
    """The mean over learning rates and scales of a number of each network, seed by seed."""
    return over_seeds(mean_by_seed((cell.seed, of(record)) for cell, record in part))


def _mostly(statement: str, part: TokenRecords, holds: Callable[[str, TokenRecord], bool]) -> Expectation:
    """That all networks of a seed do something, from more than half of all seeds.

    The seed is the unit: networks of one seed share their sequences.
    """
    answers = [all(holds(cell.case, record) for cell, record in part.where(seed=s)) for s in part.distinct("seed")]
    return is_above(f"{statement}: share of seeds", proportion(sum(answers), len(answers)), 0.5)


def _is_right_out_of_distribution(case: str, record: TokenRecord) -> bool:
    """Whether exchanging the sparse tokens changes the answers of a network that should use them, or of no other."""
    return record.ood_accuracy < _NEAR if used(case) == "sparse" else record.ood_accuracy > 1 - _NEAR


def _out_of_distribution(part: TokenRecords) -> str:
    """What ``_is_right_out_of_distribution`` asks of these cases, in words."""
    asked = {
        used(case): f"below {_NEAR:g}" if used(case) == "sparse" else f"above {1 - _NEAR:g}" for case in _cases(part)
    }
    if len(asked) == 1:
        return f"accuracy out of distribution is {next(iter(asked.values()))}"
    return f"accuracy out of distribution is {asked['sparse']} in case 1 and {asked['frequent']} in case 2"


def _cases(part: TokenRecords) -> list[str]:
    return list(part.distinct("case"))


def _is_aligned(case: str, record: TokenRecord) -> bool:
    """Whether the read-out is closer to the direction of the used tokens than to the other one."""
    return record.alignment[used(case)] > record.alignment[_other(used(case))]


def _is_attended(case: str, record: TokenRecord) -> bool:
    """Whether a used token gets more attention, over its share of the positions, than any other token."""
    lifts = _lifts(record)
    return lifts[used(case)] == max(lifts.values())


def _lifts(record: TokenRecord) -> dict[str, float]:
    """Softmax scores of a token of each group, over those of uniform attention."""
    return {name: record.attention[name] / record.uniform_attention[name] for name in GROUPS}


def _asked(part: TokenRecords, label: str) -> list[Expectation]:
    """The claims of the paper about some cases."""
    return [
        _mostly(f"{label}: {_out_of_distribution(part)}", part, _is_right_out_of_distribution),
        _mostly(f"{label}: the read-out is closest to the used direction", part, _is_aligned),
        _mostly(f"{label}: attention to a token is largest on used ones", part, _is_attended),
    ]


def _further(part: TokenRecords, case: str) -> list[Expectation]:
    """Our questions about a case, beyond the paper."""
    chosen, records = used(case), [record for _, record in part]
    other = _other(chosen)
    unfinished = sum(record.accuracy < 1 for record in records)
    sensitive = sum(record.sensitivity >= record.of_predictors[other] for record in records)
    cosine = _over(part, lambda record: record.alignment[chosen])
    from_gradient = _over(part, lambda record: record.alignment[chosen] - record.expected_alignment[chosen])
    lift = _over(part, lambda record: _lifts(record)[chosen])
    return [
        is_above(f"({case}): attention to a {chosen} token / that of uniform attention", lift, 1),
        within(f"({case}): cosine of the read-out with the {chosen} direction", cosine, 1, _NEAR),
        within(f"({case}): cosine with the {chosen} direction - that of the first gradient", from_gradient, 0, 0.05),
        holds_for_all(f"({case}): every network has all training sequences right", unfinished, len(records)),
        holds_for_all(
            f"({case}): every network is less sensitive than what uses {other} tokens only", sensitive, len(records)
        ),
    ]


def _at_larger_scales(records: TokenRecords) -> list[Expectation]:
    larger = [scale for scale in records.settings.initial_scales if scale > _SMALL]
    return [
        _mostly(
            f"({case}), initial scale {scale:g}: {_out_of_distribution(records.where(case=case))}",
            records.where(case=case, scale=scale),
            _is_right_out_of_distribution,
        )
        for scale in larger
        for case in records.settings.cases
    ]


def _course(name: str, part: TokenRecords, of: Callable[[EpochLook], float]) -> Series:
    """A number over training: the mean and the range over rates, scales and seeds."""
    looks = list(zip(*part.column(lambda record: record.epochs), strict=True))
    return mean_and_range(name, [look[0].epoch for look in looks], [[of(each) for each in look] for look in looks])


def _accuracies(small: TokenRecords) -> Drawing:
    series = [
        _course(f"({case})", small.where(case=case), lambda look: look.ood_accuracy) for case in small.settings.cases
    ]
    series.append(_course("test, all cases", small, lambda look: look.test_accuracy))
    return Drawing(
        "accuracy",
        figures.curves(series, x_label="epochs of training", y_label="accuracy", log_x=True),
        "Accuracy on unseen sequences, and by case (n_s, n_f, n_d, m) on the same sequences with the two sparse tokens "
        "exchanged, where a network that uses them is wrong: the mean and the range over seeds.",
        "Curves of accuracy over epochs, one for each case and one for the usual test.",
    )


def _alignment(small: TokenRecords, case: str) -> Drawing:
    part = small.where(case=case)
    series = [
        _course(f"{name} tokens", part, lambda look, name=name: look.alignment[name])  # type: ignore[misc]
        for name in GROUPS
    ]
    sparse, frequent, _ = (part.column(lambda record: record.expected_alignment)[0][name] for name in GROUPS)
    return Drawing(
        f"alignment-{case.replace(', ', '-')}",
        figures.curves(series, x_label="epochs of training", y_label="cosine with the read-out", log_x=True),
        f"({case}): the cosine of the rows of U W_V^T with the direction of each group of tokens; the mean "
        f"and the range over seeds, small initial scales. The first gradient has "
        f"{sparse:.2f} with the sparse and {frequent:.2f} with the frequent tokens.",
        "Curves of the cosine over epochs, one for each group of tokens.",
    )


def _attention(small: TokenRecords) -> Drawing:
    rows = {
        f"({case}){', our own' if case == OURS else ''}": [
            mean_and_range(f"{name} tokens", [0.0], [[lifts[name] for lifts in small.where(case=case).column(_lifts)]])
            for name in GROUPS
        ]
        for case in small.settings.cases
    }
    return Drawing(
        "attention",
        figures.dots(rows, x_label="attention to a token / that of uniform attention", log_x=True),
        "Where attention goes after training: softmax scores of a token of each group, divided by what uniform "
        "attention gives it, by case (n_s, n_f, n_d, m); the mean and the range over seeds. In the first three cases "
        "the sparse tokens are those of the less sensitive function, in the others the frequent ones.",
        "For each case the attention to sparse, frequent and irrelevant tokens, over that of uniform attention.",
    )


def _against_scale(records: TokenRecords) -> Drawing:
    scales = records.settings.initial_scales
    series = [
        mean_and_range(
            f"({case})",
            scales,
            [records.where(case=case, scale=scale).column(lambda record: record.ood_accuracy) for scale in scales],
        )
        for case in records.settings.cases
    ]
    return Drawing(
        "against-scale",
        figures.curves(
            series,
            x_label="standard deviation of the initial weights",
            y_label="accuracy out of distribution",
            log_x=True,
        ),
        "Accuracy out of distribution after training against the scale of the initial weights; the mean and the range "
        "over seeds and learning rates.",
        "Curves of accuracy out of distribution over the initial scale, one for each case.",
    )
