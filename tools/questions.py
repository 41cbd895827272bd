"""The questions that people ask, and how an answer is made of verdicts and numbers.

No number stands here: ``{name}`` in a sentence becomes the value and the interval of the finding whose statement is
given for that name. A question lists its sources by preference, and the first one with records answers it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from jostle.studies.folder import Summary
from jostle.studies.verdict import Finding, Verdict


@dataclass(frozen=True)
class Source:
    """A study that answers a question.

    Arguments:
        study: its name.
        yes, no, undecided: the sentence for each verdict.
        numbers: the statement of a finding for each name in braces, or its beginning.
        scale: that the records must have; any, if empty.
        others: further studies whose findings are named too.
    """

    study: str
    yes: str
    no: str
    undecided: str
    numbers: Mapping[str, str] = field(default_factory=dict)
    scale: str = ""
    others: tuple[str, ...] = ()

    def answer(self, summaries: Mapping[str, Summary]) -> str:
        """The sentence, from the records of the study and the others."""
        sentence = {
            Verdict.AGREES: self.yes, Verdict.DISAGREES: self.no, Verdict.UNDECIDED: self.undecided,
        }[summaries[self.study].verdict]  # fmt: skip
        findings = [finding for name in (self.study, *self.others) for finding in summaries[name].findings]
        return sentence.format(**{name: shown(_find(findings, said)) for name, said in self.numbers.items()})


@dataclass(frozen=True)
class Question:
    """A question in plain words, with its sources by preference and the page that says more."""

    text: str
    sources: tuple[Source, ...]
    page: str

    def source(self, summaries: Mapping[str, Summary]) -> Source:
        """The first source whose records are there."""
        return next(
            one
            for one in self.sources
            if all(name in summaries for name in (one.study, *one.others))
            and one.scale in ("", summaries[one.study].scale)
        )


def shown(finding: Finding) -> str:
    """A number and its interval with two digits.

    >>> shown(Finding("s", "< 1", Verdict.AGREES, 0.2186, 0.1707, 0.2801, 0.95))
    '0.22 [0.17, 0.28]'
    """
    if finding.value is None or finding.low is None or finding.high is None:
        return finding.measured
    return f"{_short(finding.value)} [{_short(finding.low)}, {_short(finding.high)}]"


def _short(number: float) -> str:
    return f"{number:,.0f}" if abs(number) >= 100 else f"{number:.2g}"


def _find(findings: list[Finding], statement: str) -> Finding:
    exact = [finding for finding in findings if finding.statement == statement]
    return (exact or [finding for finding in findings if finding.statement.startswith(statement)])[0]


_IMAGES = (
    "the transformer is {densenet} times as sensitive as a DenseNet of 12 layers, {convmixer} times as a ConvMixer and "
    "{resnet} times as a narrow ResNet-18"
)
_FASHION = "the transformer is {mlp} times as sensitive as an MLP and {cnn} times as a CNN"
_TEXTS = "an encoder is {strong} times as sensitive as an LSTM at noise of variance 15, and {weak} times at variance 4"
_MRPC = "an encoder is {encoder} times as sensitive as an LSTM, one with ReLU attention {relu} times"
_VARIANCES = (
    "the most sensitive transformer is {strong} times as sensitive as the least sensitive CNN at variance 15, and "
    "{weak} times at variance 0.25"
)
_PARITY = "the sharpness of networks that compute PARITY grows by {slope} a bit"
_PENALTY = "a penalty leaves {ratio} of the sensitivity and changes accuracy on unseen images by {accuracy}"
_FLAT = (
    "a penalty on sensitivity leaves {output} of the change of outputs under noise on the weights, and {prediction} of "
    "the changed predictions"
)
_WHY = (
    "with LayerNorm a network with softmax attention is {uniform} times as sensitive as one with a plain mean over "
    "tokens, and {norms} times as sensitive as without norms"
)

QUESTIONS = (
    Question(
        "Images: do vision transformers react less to one noisy patch than convolutional networks?",
        (
            Source(
                "2403.06925/figure-4",
                yes=f"Yes: {_IMAGES}.",
                no=f"No: {_IMAGES}.",
                undecided=f"Not decided against all three: {_IMAGES}.",
                numbers={
                    "densenet": "sensitivity of vit-small / of densenet",
                    "convmixer": "sensitivity of vit-small / of convmixer",
                    "resnet": "sensitivity of vit-small / of resnet-18",
                },
            ),
        ),
        "docs/vision.md",
    ),
    Question(
        "At every strength of the noise?",
        (
            Source(
                "2403.06925/figure-17",
                yes=f"Yes: {_VARIANCES}.",
                no=f"No: {_VARIANCES}.",
                undecided=f"Not decided at every strength: {_VARIANCES}.",
                numbers={
                    "strong": "most sensitive transformer / least sensitive CNN, variance 15",
                    "weak": "most sensitive transformer / least sensitive CNN, variance 0.25",
                },
            ),
        ),
        "docs/vision.md",
    ),
    Question(
        "Images at the paper's own size (Fashion-MNIST)?",
        (
            Source(
                "2403.06925/fashion-mnist",
                yes=f"Yes: {_FASHION}.",
                no=f"No: {_FASHION}.",
                undecided=f"Not decided: {_FASHION}.",
                numbers={
                    "mlp": "sensitivity of vit-small / of mlp-leaky-relu",
                    "cnn": "sensitivity of vit-small / of cnn",
                },
                scale="paper",
            ),
            Source(
                "2403.06925/figure-18",
                yes=f"Not run yet; at a smaller size yes: {_FASHION}.",
                no=f"Not run yet; at a smaller size no: {_FASHION}.",
                undecided=f"Not run yet; at a smaller size not decided against all: {_FASHION}.",
                numbers={
                    "mlp": "sensitivity of vit-small / of mlp-leaky-relu",
                    "cnn": "sensitivity of vit-small / of cnn",
                },
            ),
        ),
        "docs/vision.md",
    ),
    Question(
        "Texts: do transformers react less to one noisy word than LSTMs?",
        (
            Source(
                "2403.06925/language-sensitivity",
                yes=f"Yes: {_TEXTS}.",
                no=f"No, it depends on the noise: {_TEXTS}.",
                undecided=f"Not decided, and it depends on the noise: {_TEXTS}.",
                numbers={
                    "strong": "sensitivity of encoder / of lstm",
                    "weak": "sensitivity of encoder / of lstm, variance 4",
                },
                others=("2403.06925/language-variance",),
            ),
        ),
        "docs/language.md",
    ),
    Question(
        "Texts at the paper's own size (MRPC)?",
        (
            Source(
                "2403.06925/mrpc",
                yes=f"Yes: {_MRPC}.",
                no=f"No: {_MRPC}.",
                undecided=f"Not decided: {_MRPC}.",
                numbers={
                    "encoder": "sensitivity of encoder / of lstm, after all samples",
                    "relu": "sensitivity of encoder-relu / of lstm, after all samples",
                },
                scale="paper",
            ),
            Source(
                "2403.06925/language-sensitivity-mrpc",
                yes=f"Not run yet; at a smaller size yes: {_MRPC}.",
                no=f"Not run yet; at a smaller size no: {_MRPC}.",
                undecided=f"Not run yet; at a smaller size not decided: {_MRPC}.",
                numbers={
                    "encoder": "sensitivity of encoder / of lstm",
                    "relu": "sensitivity of encoder-relu / of lstm",
                },
            ),
        ),
        "docs/language.md",
    ),
    Question(
        "Is what is safest on average also safest at worst?",
        (
            Source(
                "jostle/average-to-worst-maps",
                yes="No: softmax attention moves {average} times as much as ReLU attention on average, and ReLU "
                "attention {worst} times as much as softmax attention at worst.",
                no="The order of random maps is not reversed: {average} on average, {worst} at worst.",
                undecided="Not decided: {average} times on average, {worst} times at worst.",
                numbers={
                    "average": "average relative change of features, r = 1: softmax attention / ReLU attention",
                    "worst": "worst relative change of features, r = 1: ReLU attention / softmax attention",
                },
            ),
        ),
        "docs/average-to-worst.md",
    ),
    Question(
        "Parity: are sensitive functions hard for transformers?",
        (
            Source(
                "2402.09963/figure-2",
                yes=f"Yes: {_PARITY}, and blow-up at equal weights by {{blowup}} (in logarithms).",
                no=f"Not by blow-up: {_PARITY}.",
                undecided=f"Not decided by blow-up: {_PARITY}.",
                numbers={
                    "slope": "parity: slope of sharpness over the number of bits",
                    "blowup": "parity: log blow-up per bit at equal norm",
                },
                others=("2402.09963/figure-1",),
            ),
        ),
        "docs/hardness.md",
    ),
    Question(
        "Grokking: does sensitivity tell that a network is about to understand?",
        (
            Source(
                "2403.06925/grokking-weight-norm",
                yes="Yes: it turns {lead} epochs before test accuracy rises, before weight norm does.",
                no="It turns {lead} epochs before test accuracy rises, but weight norm turns {later} epochs earlier.",
                undecided="It turns {lead} epochs before test accuracy rises; whether before weight norm is open.",
                numbers={
                    "lead": "epochs from the turn of joint sensitivity to the onset",
                    "later": "lead of weight norm - lead of joint sensitivity",
                },
            ),
        ),
        "docs/grokking.md",
    ),
    Question(
        "Robustness: are vision transformers better on corrupted images?",
        (
            Source(
                "2403.06925/figure-9",
                yes="Yes: their accuracy is higher by {gap}.",
                no="No: their accuracy differs by {gap}.",
                undecided="Not decided: their accuracy differs by {gap}.",
                numbers={"gap": "accuracy on corrupted images: mean of transformers - mean of CNNs"},
            ),
        ),
        "docs/robustness.md",
    ),
    Question(
        "Can training lower it?",
        (
            Source(
                "jostle/dose-response",
                yes=f"Yes: {_PENALTY}.",
                no=f"Not as claimed: {_PENALTY}.",
                undecided=f"It seems so: {_PENALTY}.",
                numbers={
                    "ratio": "sensitivity at strength 0.5 / without penalty",
                    "accuracy": "accuracy on unseen images at strength 0.5",
                },
            ),
        ),
        "docs/lowering.md",
    ),
    Question(
        "Sharpness: is a less sensitive network in a flatter minimum?",
        (
            Source(
                "2403.06925/table-2",
                yes=f"Yes: {_FLAT}.",
                no=f"No: {_FLAT}.",
                undecided=f"Not decided by both measures: {_FLAT}.",
                numbers={
                    "output": "change of the outputs (ShOp) of vit-small + penalty / of vit-small",
                    "prediction": "share of changed predictions (ShPred) of vit-small + penalty / of vit-small",
                },
            ),
        ),
        "docs/robustness.md",
    ),
    Question(
        "Why: is it attention?",
        (
            Source(
                "jostle/norms",
                yes=f"No, it is the norms: {_WHY}.",
                no=f"Not as simple as norms or attention: {_WHY}.",
                undecided=f"Not decided in all parts: {_WHY}.",
                numbers={
                    "uniform": "sensitivity of softmax attention, LayerNorm / of uniform attention, LayerNorm",
                    "norms": "sensitivity of softmax attention, LayerNorm / of softmax attention, no norms",
                },
                scale="small",
            ),
        ),
        "docs/norms.md",
    ),
)
