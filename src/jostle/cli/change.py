"""``jostle change``: texts changed as people change texts."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from jostle.base.errors import UsageError
from jostle.cli.options import (
    CLUSTER_HELP,
    MODEL_HELP,
    OUTPUT,
    PRECISION,
    TEXTS,
    WEIGHTS_HELP,
    WHAT,
    SubjectOptions,
    model_specs,
    weight_files,
    whole,
)
from jostle.cli.output import check_files, say, show

if TYPE_CHECKING:
    from jostle.estimates import TextChanges
    from jostle.estimates.texts import ChangedWord
    from jostle.report.page import Page, Passage

CHANGE_HELP = (
    "typo (or typo:swap, typo:drop, typo:double, typo:neighbour), case (or case:lower, case:title, case:swap), ocr, "
    "alternatives:FILE (.json, .csv or .tsv: a word, then what can replace it), or slot:FIRST|SECOND|... for texts "
    "that contain {slot}."
)
DRAWS_HELP = "How often each word is changed; case is changed once."
WORDS_HELP = "At most this many random words of each text."
_REPORT_HELP = "Also write an HTML page with the texts, each word shaded by how often its change flips the prediction."
_SHOWN = 20  # texts of a page


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class ChangeOptions(SubjectOptions):
    """What ``jostle change`` takes beside the model."""

    change: Annotated[str, Parameter(group=WHAT, help=CHANGE_HELP)]
    tokens: Annotated[str | None, Parameter(show=False, parse=False)] = None
    special: Annotated[bool | None, Parameter(show=False, parse=False)] = None
    draws: Annotated[int, Parameter(converter=whole, group=PRECISION, help=DRAWS_HELP)] = 1
    words: Annotated[int | None, Parameter(converter=whole, group=PRECISION, help=WORDS_HELP)] = None
    cluster: Annotated[str | None, Parameter(group=TEXTS, help=CLUSTER_HELP)] = None
    report: Annotated[Path | None, Parameter(group=OUTPUT, help=_REPORT_HELP)] = None


def change(
    *,
    model: Annotated[str, Parameter(group=WHAT, help=MODEL_HELP)],
    weights: Annotated[str | None, Parameter(group=WHAT, help=WEIGHTS_HELP)] = None,
    options: ChangeOptions,
) -> None:
    """Change words of texts as people do, and count changed predictions.

    Each word that fits is changed alone: a typo, other case, a reading error of
    a scanner, an alternative from a file, or another wording of a prompt.

      jostle change --model hf:my-classifier --data csv:reviews.csv
        --text review --change typo --words 10 --report typos.html

      jostle change --model hf:my-classifier --data csv:prompts.csv
        --change "slot:Please answer|Answer|Tell me"
    """
    specs = model_specs([model])
    files = weight_files([] if weights is None else [weights], specs)
    check_files(options, list(files.values()), {"--report": options.report})
    from jostle.base import specs as read
    from jostle.cli.prompts import read_clusters
    from jostle.cli.subject import load_models, read_subject
    from jostle.estimates.texts import change_texts
    from jostle.text_changes import TEXT_CHANGES, TextChange

    made = read.build(
        TEXT_CHANGES, options.change, "change", TextChange
    )  # a wrong one raises before anything is loaded
    models, _ = load_models(specs, files, options.seed)
    subject = read_subject(options, models, labelled=False, tokens="whole")
    if subject.texts is None or subject.texts.dataset.width > 1:
        what = "pairs of texts" if subject.texts is not None else "no texts"
        raise UsageError(f"--data {options.data} holds {what}: give single texts, csv:FILE with one column of --text")
    ((name, network),) = models.items()
    result = change_texts(
        network, [texts[0] for texts in subject.texts.dataset.texts], change=made, response=options.response,
        draws=options.draws, words=options.words, tokenizer=options.tokenizer, level=options.level, seed=options.seed,
        batch_size=options.batch_size, device=options.device, progress=not options.quiet, name=name,
        cluster=None if options.cluster is None else read_clusters(options, options.cluster, subject.texts),
    )  # fmt: skip
    show(result, subject.texts.notes, options)
    if options.report is not None:
        from jostle.report import write

        write(changes_page(result, options.data), options.report)
        if not options.as_json:
            say(f"  report written to {options.report}")


def changes_page(result: "TextChanges", source: str) -> "Page":
    """The page of changed texts: the numbers, and the texts with shaded words."""
    from jostle.report.page import Entry, Page, Section, Table, Value
    from jostle.report.texts import legend

    rows: list[list[Value | Entry]] = [
        [word, Entry(f"{share:.2f}", share), count] for word, (share, count) in list(result.by_word().items())[:30]
    ]
    order = sorted(range(len(result.texts)), key=lambda row: -float(result.per_text[row] or 0))[:_SHOWN]
    draws = max((word.draws for words in result.words for word in words), default=1)
    numbers = Section("Which words", table=Table(["word", "mean change", "changes"], rows))
    shaded = Section(
        "The texts",
        "Texts with the most changes first. Point at or tap a word to see the number.",
        passages=[_passage(result.texts[row], result.words[row]) for row in order],
        legend=legend(draws),
    )
    lead = f"{result.name}, {source}: {result.sentence} ({result.change})."
    return Page(
        title="Change one word: does the prediction hold?",
        lead=lead,
        sections=[numbers, shaded],
        settings={"change": result.change, "response": result.response, "seed": str(result.seed)},
        footer=f"Made by jostle {result.provenance['jostle']}, {result.provenance['time']}.",
        data={"result": result.to_dict()},
    )


def _passage(text: str, words: "Sequence[ChangedWord]") -> "Passage":
    from jostle.report.page import Passage, Token

    tokens, end = [], 0
    for word in words:
        tokens.append(Token(text[end : word.start]))
        times = f"{word.change * word.draws:.0f} of {word.draws} changes flip the prediction"
        tokens.append(Token(word.text, word.change, times))
        end = word.stop
    return Passage([*tokens, Token(text[end:])])
