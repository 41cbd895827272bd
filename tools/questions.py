"""The questions that people ask, and how an answer is made of verdicts and numbers.

No number stands here: ``{name}`` in a sentence becomes the value and the interval of the finding whose statement is
given for that name. A question lists its sources by preference, and the first one with records answers it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from jostle.studies.folder import Summary
from jostle.studies.verdict import Finding, Verdict


@dataclass(frozen=True)
class Source:
    """A study that answers a question.

    Arguments:
        study: its name.
        yes, no, undecided, alike: the sentence for each verdict; ``{said}`` in it is what was found. Without ``alike``
            the sentence for no.
        said, brief: what was found, in full and in half a line.
        numbers: the statement of a finding for each name in braces, or its beginning; after "STUDY: " that of one of
            the others.
        scale: that the records must have; any, if empty.
        others: further studies whose findings are named too.
    """

    study: str
    yes: str
    no: str
    undecided: str
    said: str = ""
    brief: str = ""
    numbers: Mapping[str, str] = field(default_factory=dict)
    scale: str = ""
    others: tuple[str, ...] = ()
    alike: str = ""

    def answer(self, summaries: Mapping[str, Summary], *, brief: bool = False) -> str:
        """The sentence, from the records of the study and the others."""
        sentence = {
            Verdict.AGREES: self.yes, Verdict.DISAGREES: self.no, Verdict.ALIKE: self.alike or self.no,
            Verdict.UNDECIDED: self.undecided,
        }[summaries[self.study].verdict]  # fmt: skip
        sentence = sentence.replace("{said}", self.brief if brief else self.said)
        return sentence.format(**{name: shown(self._find(summaries, said)) for name, said in self.numbers.items()})

    def has_intervals(self, summaries: Mapping[str, Summary]) -> bool:
        """Whether there were seeds enough for an interval of every number."""
        return all(self._find(summaries, said).high is not None for said in self.numbers.values())

    def _find(self, summaries: Mapping[str, Summary], said: str) -> Finding:
        """The finding of this study that says so, or of one of the others; of one alone, if its name comes first."""
        studies = (self.study, *self.others)
        named = [name for name in studies if said.startswith(f"{name}: ")]
        findings = [finding for name in named or studies for finding in summaries[name].findings]
        return find(findings, said.removeprefix(f"{named[0]}: ") if named else said)


@dataclass(frozen=True)
class Question:
    """A question in plain words, also in short ones, with its sources by preference and the page that says more."""

    text: str
    short: str
    sources: tuple[Source, ...]
    page: str

    def source(self, summaries: Mapping[str, Summary]) -> Source:
        """The first source whose records are there and are enough for intervals."""
        return next(
            one
            for one in self.sources
            if all(name in summaries for name in (one.study, *one.others))
            and one.scale in ("", summaries[one.study].scale)
            and one.has_intervals(summaries)
        )


def shown(finding: Finding) -> str:
    """A number and its interval, with two digits after the point, or two in all if it is small, or none.

    >>> shown(Finding("s", "< 1", Verdict.AGREES, 0.2186, 0.1707, 0.2801, 0.95))
    '0.22 [0.17, 0.28]'
    >>> shown(Finding("s", "< 1", Verdict.AGREES, 0.1662, 0.1662, 0.1662))
    '0.17'
    """
    if finding.value is None or finding.low is None or finding.high is None:
        return finding.measured
    if finding.level is None:
        return _short(finding.value, abs(finding.value))  # computed, not sampled
    value, low, high = (_short(number, abs(finding.value)) for number in (finding.value, finding.low, finding.high))
    return f"{value} [{low}, {high}]"


def _short(number: float, size: float) -> str:
    if size >= 10:
        return f"{number:,.0f}"
    return f"{number:.2f}" if size >= 0.1 else f"{number:.2g}"


def find(findings: Sequence[Finding], statement: str) -> Finding:
    """The finding with this statement, or the first that begins with it; an error if there is none."""
    exact = [finding for finding in findings if finding.statement == statement]
    found = exact or [finding for finding in findings if finding.statement.startswith(statement)]
    if not found:
        raise SystemExit(f"no finding says {statement!r}")
    return found[0]


_IMAGES = (
    "ViT-small is {densenet} times as sensitive as a DenseNet of 12 layers, {convmixer} times as a ConvMixer and "
    "{resnet} times as a narrow ResNet-18, and a simpler ViT is {simple} times as that ResNet"
)
_FASHION = "the transformer is {mlp} times as sensitive as an MLP and {cnn} times as a CNN"
_MNIST = "a transformer is {mlp} times as sensitive as an MLP to another patch of the data in place of one"
_TEXTS = (
    "at noise of variance 15 an encoder is {strong} times as sensitive as an LSTM that learns at six times its rate, "
    "and {equal} times as one that learns at the same rate; at variance 4 {weak} and {equal_weak} times"
)
_MRPC = "an encoder is {encoder} times as sensitive as an LSTM, one with ReLU attention {relu} times"
_MRPC_IN_FULL = (
    "an encoder is {middle} times as sensitive as an LSTM after 10 epochs, when each has 97 % and more of the pairs "
    "right, and {encoder} times after 25; in the released code, where a second LayerNorm follows the noise, {twice} "
    "times"
)
_VARIANCES = (
    "the most sensitive transformer is {strong} times as sensitive as the least sensitive CNN at variance 15, and "
    "{weak} times at variance 0.25"
)
_RANDOM = (
    "softmax attention moves {average} times as much as ReLU attention on average, and ReLU attention {worst} times as "
    "much as softmax attention at worst"
)
_PARITY = "the sharpness of networks that compute PARITY grows by {slope} a bit"
_SURE = (
    "It tends to be: a wrong prediction flips more often than a right one with probability {least} (ConvMixer) to "
    "{most} (MLP)"
)
_JUNTA = (
    "of 128 tokens {pieces} and {letters} move 5 % or more of the next one's probability in two small Llamas, and "
    "{gru} in a recurrent network"
)
_PENALTY = "a penalty leaves {ratio} of the sensitivity and changes accuracy on unseen images by {accuracy}"
_FLAT = (
    "a penalty on sensitivity leaves {output} of the change of outputs under noise on the weights, and {prediction} of "
    "the changed predictions"
)
_WHY = (
    "on Fashion-MNIST, with LayerNorm, a network with softmax attention is {uniform} times as sensitive as one with a "
    "plain mean over tokens, and {norms} times as sensitive as without norms"
)

QUESTIONS = (
    Question(
        "Images: do vision transformers react less to one noisy patch than convolutional networks?",
        "Do vision transformers react less to one noisy patch than CNNs?",
        (
            Source(
                "2403.06925/figure-4",
                yes="Yes: {said}.",
                no="No: {said}.",
                undecided="Not decided for every pair: {said}.",
                alike="Not for every pair: {said}.",
                said=_IMAGES,
                brief="one is {densenet} times as sensitive as a DenseNet and {resnet} times as a ResNet, another "
                "{simple} times",
                numbers={
                    "densenet": "sensitivity of vit-small / of densenet",
                    "convmixer": "sensitivity of vit-small / of convmixer",
                    "resnet": "sensitivity of vit-small / of resnet-18",
                    "simple": "sensitivity of vit-simple / of resnet-18",
                },
            ),
        ),
        "docs/vision.md",
    ),
    Question(
        "At every strength of the noise?",
        "At every strength of the noise?",
        (
            Source(
                "2403.06925/figure-17",
                yes="Yes: {said}.",
                no="No: {said}.",
                undecided="Not decided at every strength: {said}.",
                said=_VARIANCES,
                brief="{strong} times as sensitive as a CNN at variance 15, {weak} times at 0.25",
                numbers={
                    "strong": "most sensitive transformer / least sensitive CNN, variance 15",
                    "weak": "most sensitive transformer / least sensitive CNN, variance 0.25",
                },
            ),
        ),
        "docs/vision.md",
    ),
    Question(
        "Images at the paper's own size?",
        "At the paper's own size?",
        (
            Source(
                "2403.06925/fashion-mnist",
                yes="On Fashion-MNIST yes: {said}.",
                no="On Fashion-MNIST no: {said}.",
                undecided="On Fashion-MNIST not decided: {said}.",
                said=_FASHION,
                brief="{cnn} times as sensitive as a CNN",
                numbers={
                    "mlp": "sensitivity of vit-small / of mlp-leaky-relu",
                    "cnn": "sensitivity of vit-small / of cnn",
                },
                scale="paper",
            ),
            Source(
                "2403.06925/figure-13",
                yes="On MNIST yes: {said}.",
                no="On MNIST no: {said}.",
                alike="On MNIST about the same, within a factor of 1.25: {said}.",
                undecided="On MNIST not decided: {said}.",
                said=_MNIST + "; {normal} times to normal pixels in its place, and {added} times to added noise of "
                "variance 1",
                brief=_MNIST,
                numbers={
                    "mlp": "sensitivity of vit-small / of mlp, a patch of the data in place of another",
                    "normal": "sensitivity of vit-small / of mlp, replaced by standard normal tokens",
                    "added": "sensitivity of vit-small / of mlp, noise of variance 1 added",
                },
                scale="paper",
            ),
            Source(
                "2403.06925/figure-18",
                yes="Not run yet; on Fashion-MNIST, smaller, yes: {said}.",
                no="Not run yet; on Fashion-MNIST, smaller, no: {said}.",
                undecided="Not run yet; on Fashion-MNIST, smaller, not decided against all: {said}.",
                said=_FASHION,
                brief="{cnn} times as sensitive as a CNN",
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
        "Do transformers react less to one noisy word than LSTMs?",
        (
            Source(
                "2403.06925/language-sensitivity",
                yes="Yes: {said}.",
                no="It depends on the noise and on learning rates: {said}.",
                undecided="Not decided, and it depends on the noise and on learning rates: {said}.",
                said=_TEXTS,
                brief="{strong} times as sensitive where LSTMs learn faster, {equal} times at one rate",
                numbers={
                    "strong": "2403.06925/language-sensitivity: sensitivity of encoder / of lstm",
                    "weak": "2403.06925/language-variance: sensitivity of encoder / of lstm, variance 4",
                    "equal": "2403.06925/language-equal-rates: sensitivity of encoder / of lstm",
                    "equal_weak": "2403.06925/language-equal-rates: sensitivity of encoder / of lstm, variance 4",
                },
                others=("2403.06925/language-variance", "2403.06925/language-equal-rates"),
            ),
        ),
        "docs/language.md",
    ),
    Question(
        "Texts at the paper's own size (MRPC)?",
        "At the paper's own size (MRPC)?",
        (
            Source(
                "2403.06925/mrpc",
                yes="Yes: {said}.",
                no="No: {said}.",
                undecided="Not decided at the end: {said}.",
                said=_MRPC_IN_FULL,
                brief="{middle} times as sensitive as an LSTM on the way, {encoder} times at the end",
                numbers={
                    "encoder": "sensitivity of encoder / of lstm, after all samples",
                    "middle": "sensitivity of encoder / of lstm, after 10 epochs",
                    "twice": "sensitivity of encoder / of lstm, as in the released code",
                },
                scale="paper",
            ),
            Source(
                "2403.06925/language-sensitivity-mrpc",
                yes="Not run to its end yet; at a smaller size yes: {said}.",
                no="Not run to its end yet; at a smaller size no: {said}.",
                undecided="Not run to its end yet; at a smaller size not decided: {said}.",
                said=_MRPC,
                brief="{encoder} times as sensitive as an LSTM",
                numbers={
                    "encoder": "sensitivity of encoder / of lstm",
                    "relu": "sensitivity of encoder-relu / of lstm",
                },
            ),
        ),
        "docs/language.md",
    ),
    Question(
        "Why: is it attention?",
        "Is it attention that makes transformers insensitive?",
        (
            Source(
                "jostle/norms",
                yes="On images no, it is the norms: {said}.",
                no="On images not as simple as norms or attention: {said}.",
                undecided="On images not decided in all parts: {said}.",
                said=_WHY,
                brief="{uniform} times as sensitive as a plain mean over tokens, {norms} times as without norms",
                numbers={
                    "uniform": "sensitivity of softmax attention, LayerNorm / of uniform attention, LayerNorm",
                    "norms": "sensitivity of softmax attention, LayerNorm / of softmax attention, no norms",
                },
                scale="small",
            ),
        ),
        "docs/norms.md",
    ),
    Question(
        "Is what is safest on average also safest at worst?",
        "Is what is safest on average also safest at worst?",
        (
            Source(
                "jostle/average-to-worst-maps",
                yes="With random weights no: {said}.",
                no="With random weights the order is not reversed: {said}.",
                undecided="With random weights not decided: {said}.",
                said=f"{_RANDOM}; trained, a vision transformer flips {{vit}} times as often as a CNN on average, and "
                "the CNN {cnn} times as often as it at worst",
                brief="softmax moves {average} times as much as ReLU attention on average, and that {worst} times as "
                "much as softmax at worst",
                numbers={
                    "average": "average relative change of features, r = 1: softmax attention / ReLU attention",
                    "worst": "worst relative change of features, r = 1: ReLU attention / softmax attention",
                    "vit": "share of image tokens that flip on average, r = 1: vit-small / cnn",
                    "cnn": "share of image tokens that flip at worst, r = 1: cnn / vit-small",
                },
                others=("jostle/average-to-worst",),
            ),
        ),
        "docs/average-to-worst.md",
    ),
    Question(
        "Parity: are sensitive functions hard for transformers?",
        "Are sensitive functions hard for transformers?",
        (
            Source(
                "2402.09963/figure-2",
                yes="Yes: {said}, and blow-up at equal weights by {blowup} (in logarithms).",
                no="Not by blow-up: {said}.",
                undecided="Not decided by blow-up: {said}.",
                said=_PARITY,
                brief="sharpness grows by {slope} a bit",
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
        "Does sensitivity tell that a network is about to understand?",
        (
            Source(
                "2403.06925/grokking-weight-norm",
                yes="It turns {lead} epochs before test accuracy rises, before weight norm does{said}.",
                no="It turns {lead} epochs before test accuracy rises, but weight norm turns {later} epochs earlier"
                "{said}.",
                undecided="It turns {lead} epochs before test accuracy rises; whether before weight norm is open"
                "{said}.",
                said=". Over networks the epochs of the two have a rank correlation of {rank}",
                numbers={
                    "lead": "epochs from the turn of joint sensitivity to the onset",
                    "rank": "rank correlation of the turn of joint sensitivity with the onset",
                    "later": "lead of weight norm - lead of joint sensitivity",
                },
            ),
        ),
        "docs/grokking.md",
    ),
    Question(
        "Robustness: are vision transformers better on corrupted images?",
        "Are vision transformers better on corrupted images?",
        (
            Source(
                "2403.06925/figure-9",
                yes="Yes: their accuracy is higher by {gap}.",
                no="No, worse: their accuracy differs by {gap}.",
                alike="No, about the same: their accuracy differs by {gap}.",
                undecided="Not decided: their accuracy differs by {gap}.",
                numbers={"gap": "accuracy on corrupted images: mean of transformers - mean of CNNs"},
            ),
        ),
        "docs/robustness.md",
    ),
    Question(
        "Language models: does the next word hang on a few tokens?",
        "Does the next word of a language model hang on a few tokens?",
        (
            Source(
                "2602.08287/juntas",
                yes="Yes: {said}.",
                no="Not in small Llamas: {said}.",
                undecided="Not decided: {said}.",
                said=_JUNTA,
                brief="{pieces} of 128 tokens move 5 % of its probability in one, {gru} in a GRU",
                numbers={
                    "pieces": "tokens that move 5 % of the next token's probability, stories260K",
                    "letters": "tokens that move 5 % of the next token's probability, babyllama105",
                    "gru": "tokens that move 5 % of the next token's probability, tinystories-gru",
                },
            ),
        ),
        "docs/stability.md",
    ),
    Question(
        "Can training lower it?",
        "Can training lower it?",
        (
            Source(
                "jostle/dose-response",
                yes="Yes: {said}.",
                no="Not as claimed: {said}.",
                undecided="It seems so: {said}.",
                said=_PENALTY,
                brief="a penalty leaves {ratio} of it, and accuracy on unseen images changes by {accuracy}",
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
        "Is a less sensitive network in a flatter minimum?",
        (
            Source(
                "2403.06925/table-2",
                yes="Yes: {said}.",
                no="No: {said}.",
                undecided="Not decided by both measures: {said}.",
                alike="By one measure of two: {said}.",
                said=_FLAT,
                brief="a penalty leaves {output} of how outputs change under noise on weights, {prediction} of how "
                "predictions do",
                numbers={
                    "output": "change of the outputs (ShOp) of vit-small + penalty / of vit-small",
                    "prediction": "share of changed predictions (ShPred) of vit-small + penalty / of vit-small",
                },
            ),
        ),
        "docs/robustness.md",
    ),
    Question(
        "Is a sensitive prediction a wrong one?",
        "Is a sensitive prediction a wrong one?",
        (
            Source(
                "jostle/certainty",
                yes="Yes, and flips find errors better than the network's own confidence: AUROC {gain} higher.",
                no="{said}, but the network's own confidence finds errors better: AUROCs differ by {gain}.",
                undecided="{said}; against the network's own confidence it is not decided: {gain}.",
                said=_SURE,
                brief="It tends to be",
                numbers={
                    "gain": "AUROC of flip rates - of confidence, mean over networks",
                    "least": "AUROC of flip rates, ConvMixer",
                    "most": "AUROC of flip rates, MLP",
                },
            ),
        ),
        "docs/certainty.md",
    ),
)
