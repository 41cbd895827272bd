"""A page for each paper: what it asks, what jostle takes from it, and what holds, from the records of its studies."""

import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from jostle.studies.scoreboard import Row
from jostle.studies.verdict import Verdict

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "docs" / "papers"


@dataclass(frozen=True)
class Paper:
    """A paper, or our own studies.

    Arguments:
        name: its arXiv number, and the folder of its studies.
        title: of the page.
        source: authors and version.
        text: what it asks and what jostle takes from it, in Markdown.
    """

    name: str
    title: str
    source: str
    text: str


PAPERS = (
    Paper(
        "2403.06925",
        "Transformers Learn Low Sensitivity Functions",
        "Vasudeva, Fu, Zhou, Kau, Huang and Sharan, arXiv 2403.06925v2.",
        """It asks why transformers generalise as they do, and answers: they learn functions that change little when one
token of the input changes.

    S(f) = mean over inputs x, tokens τ, noise
           of 1[ f(x) ≠ f(x with token τ changed) ]        (Def. 4.1, Eq. 2)

jostle takes from it the quantity, the Gaussian noise on one token, the grid of 5 draws, the noise on the whole input
(Table 4), the networks of the zoo, the penalty and the augmentation ([lowering](../lowering.md)), sharpness of outputs
and predictions ([flat minima](../landscape.md)), and Propositions 3.1 and 3.2 ([kernels](../boolean.md)).

Where to read on: [images](../vision.md), [texts](../language.md), [robustness](../robustness.md),
[sparse and frequent tokens](../synthetic.md), [grokking](../grokking.md), [sparse parity](../parity.md).""",
    ),
    Paper(
        "2402.09963",
        "Why are Sensitive Functions Hard for Transformers?",
        "Hahn and Rofin, arXiv 2402.09963.",
        """It asks why transformers find PARITY hard, and answers: a network that computes a function that many bits
change sits in a sharp minimum, the sharper the longer the input.

    s(x, f) = 1/4 · sum over bits i of  | f(x) − f(x with bit i flipped) |²,    as_n(f) = mean over all x of s(x, f)

jostle takes from it average sensitivity, PARITY, MAJORITY, FIRST and MEAN, the encoder with its read-out, average
direction sharpness and layer-norm blow-up ([flat minima](../landscape.md)).

Where to read on: [hard functions](../hardness.md), [functions of bits](../boolean.md).""",
    ),
    Paper(
        "2402.02969",
        "Towards Understanding the Word Sensitivity of Attention Layers",
        "Bombari and Mondelli, arXiv 2402.02969.",
        """It asks how far one word can move the features of a random layer, and answers: attention keeps a high word
sensitivity for long texts, random features do not.

    WS(X) = largest, over words i and |Δ| ≤ |x_i|, of  | φ(X with x_i + Δ) − φ(X) | / | φ(X) |        (Eq. 3.4)

jostle takes from it the relative change of features, steps in units of a token's norm, random feature maps, and
generalisation under a change of one word. The [worst case](../worst-case.md) of your own network is the same question.

Where to read on: [random features](../features.md), [from the average to the worst](../average-to-worst.md).""",
    ),
    Paper(
        "2602.08287",
        "Noise Stability of Transformer Models",
        "arXiv 2602.08287.",
        """It asks how much of the answer is left when all tokens are partly redrawn, and uses that as a
regulariser that shortens grokking.

    Stab_ρ(f) = mean of  f(x) · f(y),  where each token of y is that of x with correlation ρ

jostle takes from it [noise stability](../stability.md) and its penalty, in a form of ours: its code is not
released.""",
    ),
    Paper(
        "jostle",
        "Our own studies",
        "Claims that no paper makes, judged by the same rule.",
        """They ask what the papers leave open: whether the order on average is the order at worst, whether it is
attention or the norms, whether a penalty lowers sensitivity and what else it changes.

Where to read on: [from the average to the worst](../average-to-worst.md), [norms](../norms.md),
[robustness](../robustness.md), [hard functions](../hardness.md), [certainty](../certainty.md).""",
    ),
)

ORDER = (
    (Verdict.AGREES, "What holds"),
    (Verdict.DISAGREES, "What does not hold"),
    (Verdict.ALIKE, "What makes no difference"),
    (Verdict.UNDECIDED, "What is not decided"),
)


def pages(rows: Sequence[Row], said: Callable[[Row], str], escape: Callable[[str], str]) -> dict[Path, str]:
    """The page of each paper by its path; ``said`` is the verdict with what would decide it."""
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    studies = list(declared["project"]["entry-points"]["jostle.studies"])
    return {FOLDER / f"{paper.name}.md": page(paper, rows, studies, said, escape) for paper in PAPERS}


def page(
    paper: Paper,
    rows: Sequence[Row],
    studies: Sequence[str],
    said: Callable[[Row], str],
    escape: Callable[[str], str],
) -> str:
    """One page."""
    own = [row for row in rows if row.name.startswith(f"{paper.name}/")]
    lines = [f"# {paper.title}", "", f"*{paper.source}*", "", paper.text, ""]
    lines += ["The tables are written by `make scoreboard` from the records of studies ([how](../verdicts.md)).", ""]
    for status, heading in ORDER:
        chosen = [row for row in own if row.status == status]
        if chosen:
            lines += [f"## {heading}", "", "| study | claim | verdict | scale |", "|---|---|---|---|"]
            for row in chosen:
                link = f"[{row.name.partition('/')[2]}](../studies/{row.name}.md)"
                lines.append(f"| {link} | {escape(row.claim)} | {said(row)} | {row.scale.split(',')[0]} |")
            lines.append("")
    missing = sorted({name for name in studies if name.startswith(f"{paper.name}/")} - {row.name for row in own})
    if missing:
        lines += ["## What has no records yet", ""]
        lines += [*(f"* `jostle run {name} --scale small`" for name in missing), ""]
    return "\n".join(lines)
