"""What the command line knows about texts beside the measurement: accuracy, and examples with shaded tokens."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from jostle.base.randomness import Stream
from jostle.cli.texts import Texts
from jostle.report import Section
from jostle.report.measurement import percent
from jostle.report.texts import clean_answers, flip_counts, legend, passage, rows_of

_LOOKED_AT = 500  # texts whose clean answers are looked at, at most
_TOKENS_LOOKED_AT = 20_000  # of long texts fewer
_LEAST_LOOKED_AT = 20
_SHORT = 64  # tokens of a text that is nice to read


@dataclass(frozen=True)
class Look:
    """Clean answers to the first texts.

    Arguments:
        outputs: for each model (texts, classes).
        labels: (texts,) the right classes; None if they are not known.
    """

    outputs: dict[str, Tensor]
    labels: Tensor | None

    def accuracies(self) -> dict[str, float]:
        """For each model the share of texts that it gets right; empty without labels."""
        if self.labels is None:
            return {}
        return {name: float((predicted(out) == self.labels).double().mean()) for name, out in self.outputs.items()}

    def margins(self) -> NDArray[np.float64]:
        """(texts,) how sure the least sure model is: by how much the first class is ahead of the second."""
        return torch.stack([_margin(out) for out in self.outputs.values()]).amin(dim=0).numpy()


def look_at(texts: Texts, models: Mapping[str, Any]) -> Look:
    """Ask the models about the first texts as they are."""
    tokens = texts.encoded["attention_mask"].sum(dim=1).cumsum(dim=0)
    affordable = max(int((tokens <= _TOKENS_LOOKED_AT).sum()), _LEAST_LOOKED_AT)
    rows = np.arange(min(_LOOKED_AT, affordable, len(texts.dataset)))
    outputs = clean_answers(models, rows_of(texts.encoded, rows), texts.way)
    fits = all(out.dim() == 2 and out.shape[1] > 1 for out in outputs.values())
    return Look(outputs, texts.dataset.labels[: len(rows)] if texts.has_labels and fits else None)


def accuracy_lines(look: Look) -> list[str]:
    """Accuracies in words."""
    count = 0 if look.labels is None else len(look.labels)
    return [
        f"{name} is right on {percent(share)} of the first {count:,} texts" for name, share in look.accuracies().items()
    ]


def example_sections(
    texts: Texts, models: Mapping[str, Any], look: Look, count: int, draws: int
) -> tuple[list[Section], list[dict[str, Any]]]:
    """Sections with shaded texts, and the numbers behind them."""
    if count < 1 or not texts.can_flip or any(out.dim() > 2 for out in look.outputs.values()):
        return [], []
    lengths = texts.encoded["attention_mask"].sum(dim=1).numpy()[: len(next(iter(look.outputs.values())))]
    close, random, limit = chosen(look.margins(), lengths, count, texts.way.seed)
    rows = np.concatenate([close, random])
    counts, made = flip_counts(models, rows_of(texts.encoded, rows), texts.way, draws)
    shown = [_shown(texts, look, counts, made, int(row), place) for place, row in enumerate(rows)]
    among = f"Chosen among the texts of at most {limit} tokens in the first {len(lengths):,}."
    close_text = (
        "The texts of whose class a model is least sure; most flips happen in such texts. Each token is shaded by how "
        f"often jostling it alone flips the prediction; point at a token to see the number. {among}"
    )
    random_text = f"Texts as they come. {among}"
    parts = [("Close calls", close_text, shown[: len(close)]), ("Picked at random", random_text, shown[len(close) :])]
    sections = [
        Section(title, text, passages=[one for group in groups for one in group], legend=legend(made))
        for title, text, groups in parts
        if groups
    ]
    numbers = [
        {
            "row": texts.rows[int(row)],
            "draws": made,
            "flips": {name: [None if np.isnan(one) else int(one) for one in counts[name][place]] for name in counts},
        }
        for place, row in enumerate(rows)
    ]
    return sections, numbers


def chosen(
    margins: NDArray[np.float64], lengths: NDArray[np.int64], count: int, seed: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], int]:
    """Texts to show: half of them with the smallest margins, half at random, and of how many tokens at most.

    Short texts, or the shortest quarter where there are too few of these.
    """
    limit = _SHORT
    if (lengths <= _SHORT).sum() < count:
        limit = int(np.sort(lengths)[: max(count, len(lengths) // 4)][-1])
    pool = np.flatnonzero(lengths <= limit)
    by_margin = pool[np.argsort(margins[pool], kind="stable")]
    close, rest = np.split(by_margin, [(count + 1) // 2])
    rest = np.sort(rest)
    picked = rest[Stream(seed, "examples").permutation(len(rest))[: count // 2]] if len(rest) else rest
    return close, picked, limit


def predicted(outputs: Tensor) -> Tensor:
    """The class of each row of outputs; of a single output whether it is above 0."""
    return (outputs.reshape(len(outputs)) > 0).long() if _is_single(outputs) else outputs.argmax(dim=1)


def _is_single(outputs: Tensor) -> bool:
    return outputs.dim() == 1 or outputs.shape[1] == 1


def _margin(outputs: Tensor) -> Tensor:
    if _is_single(outputs):
        return outputs.reshape(len(outputs)).abs()
    best = outputs.softmax(dim=1).topk(2, dim=1).values
    return best[:, 0] - best[:, 1]


def _shown(
    texts: Texts, look: Look, counts: Mapping[str, NDArray[np.float64]], draws: int, row: int, place: int
) -> list[Any]:
    """The passages of one text, one for each model."""
    pieces = texts.reader.pieces(texts.dataset.texts[row])
    found = []
    for name, table in counts.items():
        label = _label(texts, look, name, row)
        share = float(np.nanmean(table[place])) / draws
        said = f"{label}; flips {percent(share)} of the time" + (f"; {name}" if len(counts) > 1 else "")
        found.append(passage(pieces, table[place], draws, said))
    return found


def _label(texts: Texts, look: Look, name: str, row: int) -> str:
    outputs = look.outputs[name]
    number = int(predicted(outputs)[row])
    sure = "" if _is_single(outputs) else f" ({percent(float(outputs[row].softmax(dim=0)[number]))})"
    right = "" if look.labels is None else f", labelled {_class(texts, int(look.labels[row]))}"
    return f"text {texts.rows[row]}: predicted {_class(texts, number)}{sure}{right}"


def _class(texts: Texts, number: int) -> str:
    return texts.classes[number] if number < len(texts.classes) else f"class {number}"
