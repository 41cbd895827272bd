"""Typed cells and records: what a file holds of them, what is read again, and what is refused."""

import dataclasses
import json
from dataclasses import dataclass

import pytest
from matplotlib.figure import Figure

from jostle.base.errors import UsageError
from jostle.studies import (
    STUDIES,
    Cell,
    CellsFailedError,
    Drawing,
    IfGiven,
    Records,
    Settings,
    Struct,
    Study,
    from_plain,
    holds_for_all,
    register,
    run,
    to_plain,
)
from jostle.studies.settings import override_settings, plain_settings


@dataclass(frozen=True, kw_only=True)
class Recipe(Struct):
    """A part of the settings."""

    sizes: tuple[int, ...] = (2, 3)
    limit: int | None = None
    label: IfGiven[str] = ""


@dataclass(frozen=True, kw_only=True)
class TypedSettings(Settings):
    recipes: dict[str, Recipe] = dataclasses.field(default_factory=lambda: {"a": Recipe(), "b": Recipe(label="b")})
    steps: int | None = None


@dataclass(frozen=True)
class RecipeCell(Cell):
    recipe: str
    seed: int


@dataclass(frozen=True)
class WholeCell(Cell):
    kind: str


@dataclass(frozen=True, kw_only=True)
class RecipeRecord(Struct):
    score: float
    by_size: dict[int, float]
    curve: tuple[tuple[float, float], ...] = ()
    note: IfGiven[str | None] = None


@dataclass(frozen=True, kw_only=True)
class WholeRecord(Struct):
    count: int


class Typed(Study[TypedSettings, RecipeCell | WholeCell, RecipeRecord | WholeRecord]):
    """Two kinds of cell, each with a record of its own."""

    name = "toy/typed"
    title = "A typed toy"
    claim = "Scores are not negative."
    source = "nowhere"
    version = 1
    scales = {"smoke": TypedSettings(seeds=1), "small": TypedSettings(seeds=2), "paper": TypedSettings()}  # noqa: RUF012

    def cells(self, settings: TypedSettings, seeds):
        return [WholeCell("whole"), *(RecipeCell(name, seed) for name in settings.recipes for seed in seeds)]

    def measure(self, cell: RecipeCell | WholeCell, settings: TypedSettings, context) -> RecipeRecord | WholeRecord:
        if isinstance(cell, WholeCell):
            return WholeRecord(count=len(settings.recipes))
        sizes = settings.recipes[cell.recipe].sizes
        return RecipeRecord(score=sum(sizes) + cell.seed, by_size=dict.fromkeys(sizes, 0.5), curve=((0, 1), (1, 2)))

    def figures(self, records: Records[TypedSettings, RecipeCell | WholeCell, RecipeRecord | WholeRecord]):
        return [Drawing("one", Figure(figsize=(1, 1)), "A figure.", "Nothing.")]

    def expectations(self, records: Records[TypedSettings, RecipeCell | WholeCell, RecipeRecord | WholeRecord]):
        scores = [record.score for _, record in records.of(RecipeCell, RecipeRecord)]
        return [holds_for_all("no score is negative", sum(score < 0 for score in scores), len(scores))]


@pytest.fixture(autouse=True)
def _known(monkeypatch):
    monkeypatch.setitem(vars(STUDIES), "_published", {})
    monkeypatch.setattr(STUDIES, "_things", {})
    register(Typed)


def typed(out, **options):
    return run(Typed.name, "small", out, progress=False, **options)


def test_cells_have_keys_and_values_made_of_their_fields():
    cell = RecipeCell("a", seed=3)
    assert (cell.key, cell.values) == ("a/seed=3", {"recipe": "a", "seed": 3})
    assert cell == RecipeCell("a", 3)


def test_records_are_written_as_plain_json_and_read_as_what_they_were(tmp_path):
    result = typed(tmp_path)
    lines = [json.loads(line) for line in (result.folder / "records.jsonl").read_text().splitlines()]
    written = {line["key"]: line["record"]["record"] for line in lines if line["key"].startswith("cell/")}
    assert written["cell/whole"] == {"count": 2}
    assert written["cell/b/seed=1"] == {
        "score": 6.0,
        "by_size": {"2": 0.5, "3": 0.5},
        "curve": [[0.0, 1.0], [1.0, 2.0]],
    }
    assert list(written["cell/b/seed=1"]) == ["score", "by_size", "curve"]
    assert result.records["b/seed=1"] == RecipeRecord(
        score=6.0, by_size={2: 0.5, 3: 0.5}, curve=((0.0, 1.0), (1.0, 2.0))
    )
    assert typed(tmp_path).records["whole"] == WholeRecord(count=2)
    assert result.records[RecipeCell("a", 0)].score == 5.0


def test_records_of_one_kind_are_picked_with_their_type(tmp_path):
    records = typed(tmp_path).records
    ours = records.of(RecipeCell, RecipeRecord)
    assert ours.where(recipe="a").by("seed", lambda record: record.score) == {0: 5.0, 1: 6.0}
    assert ours.column(lambda record: record.by_size[2]) == [0.5] * 4
    assert [cell.recipe for cell, _ in ours.keep(lambda cell, record: cell.seed == 1 and record.score > 0)] == [
        "a",
        "b",
    ]
    assert len(records.of(WholeCell, WholeRecord)) == 1


def damage(folder, change):
    """Change the record of one cell where it is written."""
    path = folder / "records.jsonl"
    lines = path.read_text().splitlines()
    [place] = [number for number, line in enumerate(lines) if json.loads(line)["key"] == "cell/a/seed=0"]
    entry = json.loads(lines[place])
    change(entry["record"])
    del entry["crc32"]  # as in records from before there were checksums
    path.write_text("\n".join([*lines[:place], json.dumps(entry), *lines[place + 1 :]]) + "\n")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda line: line["record"].pop("score"),
            r"record 'a/seed=0' of .*records\.jsonl is damaged: .*field required",
        ),
        (lambda line: line["record"].update(score="much"), "should be a valid number"),
        (lambda line: line["record"].update(speed=3), "unexpected keyword argument"),
        (lambda line: line.update(record=3), r"line 'cell/a/seed=0' of .*records\.jsonl is damaged: record: "),
        (lambda line: line.pop("seconds"), r"is damaged: seconds: field required"),
    ],
)
def test_a_damaged_or_foreign_record_is_one_clear_line(tmp_path, change, message):
    folder = typed(tmp_path).folder
    damage(folder, change)
    with pytest.raises(UsageError, match=message) as refused:
        typed(tmp_path)
    assert "\n" not in str(refused.value)


def test_a_damaged_summary_is_one_clear_line_and_made_anew(tmp_path):
    from jostle.studies.folder import read_summary

    folder = typed(tmp_path).folder
    for text in ("{", "[]", "{}"):
        (folder / "summary.json").write_text(text)
        with pytest.raises(UsageError, match=r"summary\.json is damaged.*; start the study again to write it anew"):
            read_summary(folder)
    assert typed(tmp_path).summary == read_summary(folder)


def test_a_field_with_a_default_can_be_added_later(tmp_path, monkeypatch):
    before = (typed(tmp_path).folder / "records.jsonl").read_bytes()

    @dataclass(frozen=True, kw_only=True)
    class MoreRecord(RecipeRecord):
        also: float = 7.0

    monkeypatch.setattr(Typed, "measure", lambda *_: pytest.fail("work was done twice"))
    monkeypatch.setattr(Typed, "record_type", MoreRecord | WholeRecord)
    result = typed(tmp_path)
    assert result.records["a/seed=1"].also == 7.0
    assert (result.folder / "records.jsonl").read_bytes() == before


@dataclass(frozen=True, kw_only=True)
class WrongRecord(Struct):
    score: float
    many: tuple[int, ...] = ()


@pytest.mark.parametrize(
    ("record", "message"),
    [
        (WrongRecord(score="high"), "WrongRecord cannot become JSON: .*Expected `float`.*field_name='score'"),
        (WrongRecord(score=1.0, many={1, 2}), "WrongRecord cannot become JSON: .*field_name='many'"),
        ({"score": 1.0}, "measure returned dict; expected a Struct"),
    ],
)
def test_a_record_of_wrong_types_is_a_failure_of_its_cell(tmp_path, monkeypatch, record, message):
    monkeypatch.setattr(Typed, "measure", lambda *_: record)
    with pytest.raises(CellsFailedError, match=message):
        typed(tmp_path)


def test_settings_hold_structs_and_leave_out_what_is_not_given():
    assert plain_settings(TypedSettings()) == {
        "recipes": {"a": {"sizes": [2, 3], "limit": None}, "b": {"sizes": [2, 3], "limit": None, "label": "b"}},
        "steps": None,
    }
    other = override_settings(TypedSettings(), {"recipes": {"c": {"sizes": [4]}}, "steps": "5"})
    assert other == TypedSettings(recipes={"c": Recipe(sizes=(4,))}, steps=5)
    assert override_settings(other, {"recipes": {"d": Recipe()}, "steps": None}).recipes == {"d": Recipe()}
    with pytest.raises(UsageError, match=r"setting steps='few' must be int \| None, as in the study's own steps=None"):
        override_settings(TypedSettings(), {"steps": "few"})


def test_plain_values_are_read_again():
    recipe = Recipe(sizes=(1,), limit=3)
    assert from_plain(Recipe, to_plain(recipe), "recipe") == recipe
    assert from_plain(dict[int, float], {"3": 1}, "numbers") == {3: 1.0}
