"""Every result becomes rows, data frames, comma-separated values, HTML for notebooks and numbers for trackers."""

import csv
import functools
import html
import importlib.util
import io
import math
import re

import numpy as np
import pandas
import pytest
import torch
from torch import nn

import jostle
from jostle.base.errors import UsageError
from jostle.base.table import Tabular, csv_text
from jostle.results import KINDS

BAD = "<script>alert(1)</script>"  # a name that must never become HTML


def points(count=40, seed=0):
    return torch.randn(count, 6, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def first_and_second(x):
    return x[:, :2]


def network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3)).double()


CHOICES = {"tokens": "coordinates", "perturbation": "gaussian-noise:std=1", "plan": jostle.Grid(2)}


def language_model():
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    sizes = {"n_layer": 1, "n_head": 2, "n_embd": 8, "vocab_size": 11, "n_positions": 16}
    return transformers.GPT2LMHeadModel(transformers.GPT2Config(**sizes)).eval()


def texts_changed():
    model = lambda texts: torch.tensor([[float("good" in text), 0.5] for text in texts])  # noqa: E731
    return jostle.change_texts(model, ["a good <b>film</b>", "a bad film"], change="typo", draws=2, name=BAD)


def deep():
    model = jostle.models.create("vit-simple", image_size=8, channels=1, patch_size=4, depth=2, seed=0).double()
    return jostle.depth(model, torch.randn(4, 1, 8, 8), site="*.mlp", plan=jostle.Grid(1), name=BAD)


def influence():
    ids = [[1, 2, 3, 4]]
    return jostle.influence(language_model(), ids, tokens="words", perturbation="uniform-token:0/1/2/3", name=BAD)


def swept():
    models = {BAD: first_and_second, "first": lambda x: x[:, 0]}
    options = {key: CHOICES[key] for key in ("tokens", "plan")}
    return jostle.sweep(models, points(), stds=[0.5, 2.0], **options)


def worst():
    return jostle.worst_case(network(), points(5), tokens="coordinates", radius=1.0, draws=4, name=BAD)


def corrupted():
    images = torch.rand(4, 3, 32, 32)
    model = lambda x: x.flatten(1)[:, :2]  # noqa: E731
    return jostle.corruptions.accuracy_under(
        model, images, torch.zeros(4, dtype=torch.long), corruptions=["contrast"], severities=[1]
    )


MADE = {
    "jostle/measurement": lambda: jostle.measure(first_and_second, points(), **CHOICES, name=BAD),
    "jostle/comparison": lambda: jostle.compare(
        {BAD: first_and_second, "first": lambda x: x[:, 0]}, points(), **CHOICES
    ),
    "jostle/sweep": swept,
    "jostle/stability": lambda: jostle.stability(
        first_and_second, points(), tokens="whole", rho=[0.5, 0.9], plan=jostle.Grid(2), name=BAD
    ),
    "jostle/certificates": lambda: jostle.certify(
        first_and_second, points(5), std=0.5, draws=20, selection=5, name=BAD
    ),
    "jostle/worst-case": worst,
    "jostle/influence": influence,
    "jostle/depth": deep,
    "jostle/text-changes": texts_changed,
    "difference": lambda: made("jostle/comparison").differences[0],
    "certainty": lambda: jostle.measure(first_and_second, points(), **CHOICES, labels=torch.arange(40) % 2).certainty,
    "boolean": lambda: jostle.boolean.analyse(jostle.boolean.functions.majority(5)),
    "boolean sampled": lambda: jostle.boolean.analyse(lambda x: np.sign(x.sum(axis=1)), n=31, samples=50),
    "sharpness": lambda: jostle.landscape.sharpness(network(), points(10), std=0.01, draws=3),
    "directions": lambda: jostle.landscape.average_direction_sharpness(network(), points(10), rho=0.1, directions=3),
    "corruptions": corrupted,
}


@functools.cache
def made(kind):
    return MADE[kind]()


def test_every_kind_of_saved_result_is_here():
    assert set(KINDS) <= set(MADE)


@pytest.mark.parametrize("kind", MADE)
def test_rows_frames_and_files_say_the_same(kind, tmp_path):
    result = made(kind)
    assert isinstance(result, Tabular)
    for of in result.tables:
        if of == "tokens" and kind in ("jostle/measurement", "jostle/comparison"):
            continue  # only with samples=True: tests/estimates/test_samples.py
        rows = result.rows(of)
        assert rows, of
        assert all(list(row) == list(rows[0]) for row in rows)
        frame = result.to_frame(of)
        assert isinstance(frame, pandas.DataFrame)
        assert list(frame.columns) == list(rows[0])
        assert len(frame) == len(rows)
        result.to_csv(tmp_path / "table.csv", of)
        read = list(csv.DictReader(io.StringIO((tmp_path / "table.csv").read_text())))
        assert len(read) == len(rows)
        for written, row in zip(read, rows, strict=True):
            for key in ("value", "low", "high"):
                number = row.get(key)
                if number is None or math.isnan(number):
                    assert not written.get(key)
                else:
                    assert float(written[key]) == number
                    if row.get("low") is not None and math.isfinite(row["low"]):
                        assert row["low"] <= row["value"] <= row["high"]


@pytest.mark.parametrize("kind", MADE)
def test_the_first_table_has_low_and_high(kind):
    result = made(kind)
    assert {"value", "low", "high"} <= set(result.rows(result.tables[0])[0])


@pytest.mark.parametrize("kind", MADE)
def test_html_is_whole_escaped_and_shows_the_numbers(kind):
    shown = made(kind)._repr_html_()
    assert "<script" not in shown
    assert "<b>film" not in shown
    if BAD in str(made(kind)):
        assert html.escape(BAD) in shown
    bare = re.sub(r"<svg.*?</svg>", "", shown, flags=re.DOTALL)
    opened = re.findall(r"<([a-z]+)[ >]", bare)
    for name in set(opened) - {"br", "meta", "image", "rect"}:
        assert shown.count(f"<{name} ") + shown.count(f"<{name}>") == shown.count(f"</{name}>"), name


@pytest.mark.parametrize("kind", MADE)
def test_numbers_for_trackers_are_finite_floats_by_name(kind):
    numbers = made(kind).numbers()
    assert numbers
    assert all(isinstance(number, float) for number in numbers.values())


def test_a_measurement_has_its_numbers_positions_and_inputs():
    m = made("jostle/measurement")
    (row,) = m.rows()
    assert (row["value"], row["low"], row["high"], row["trials"]) == (m.value, m.low, m.high, m.trials)
    assert (row["dataset_low"], row["population_high"]) == (m.dataset.low, m.population.high)
    frame = m.to_frame("positions")
    np.testing.assert_array_equal(frame["value"], m.profile.values)
    np.testing.assert_array_equal(frame["low"], m.profile.low)
    np.testing.assert_array_equal(m.to_frame("inputs")["value"], m.per_input)
    assert m.numbers() == {f"{BAD}/flip/{key}": getattr(m, key) for key in ("value", "low", "high")}
    with pytest.raises(UsageError, match="unknown of 'position'; did you mean positions"):
        m.to_frame("position")


def test_a_comparison_has_models_and_differences():
    c = made("jostle/comparison")
    frame = c.to_frame()
    assert frame["against"].isna().tolist() == [True, True, False]
    (d,) = c.differences
    assert frame.loc[2, ["value", "low", "high"]].tolist() == [d.value, d.low, d.high]
    assert frame.loc[2, "verdict"] == d.verdict
    assert f"{BAD}/against_first/flip/low" in c.numbers()


def test_a_sweep_has_a_column_of_its_strength():
    s = made("jostle/sweep")
    frame = s.to_frame()
    assert frame["std"].tolist() == [0.5] * 3 + [2.0] * 3
    assert frame.loc[4, "value"] == s["first"][2.0].value
    assert "first/std_2/flip/value" in s.numbers()


def test_a_sweep_as_labelled_arrays():
    xarray = pytest.importorskip("xarray", reason="an optional package, 12 MB")
    s = made("jostle/sweep")
    data = s.to_xarray()
    assert isinstance(data, xarray.Dataset)
    assert dict(data.sizes) == {"model": 2, "std": 2, "position": 6, "pair": 1}
    one = s["first"][2.0]
    at = data.sel(model="first", std=2.0)
    assert (float(at["value"]), float(at["low"]), float(at["high"])) == (one.value, one.low, one.high)
    np.testing.assert_array_equal(at["position_high"], one.profile.high)
    assert float(data["difference_low"].sel(std=0.5)[0]) == s.differences()[0.5].low


def test_polars_through_narwhals():
    polars = pytest.importorskip("polars", reason="an optional package, 170 MB")
    for of in ("result", "positions", "inputs"):
        frame = made("jostle/comparison").to_frame(of, backend="polars")
        assert isinstance(frame, polars.DataFrame)
        assert frame["value"].to_list() == made("jostle/comparison").to_frame(of)["value"].tolist()


def test_a_backend_that_is_not_there_is_one_line(monkeypatch):
    with pytest.raises(UsageError, match="backend='excel'"):
        made("jostle/measurement").to_frame(backend="excel")
    monkeypatch.setitem(__import__("sys").modules, "pandas", None)
    with pytest.raises(UsageError, match=r'needs pandas: pip install "jostle\[tables\]"'):
        made("jostle/measurement").to_frame()


def test_commas_quotes_and_lines_survive(tmp_path):
    rows = [{"word": 'a, "b"\nc', "value": 0.1}, {"word": None, "value": float("nan")}]
    read = list(csv.reader(io.StringIO(csv_text(rows))))
    assert read == [["word", "value"], ['a, "b"\nc', "0.1"], ["", ""]]


@pytest.mark.skipif(importlib.util.find_spec("transformers") is None, reason="carries the network")
def test_an_influence_keeps_its_columns():
    frame = made("jostle/influence").to_frame()
    assert {"prompt", "token", "text", "place", "prediction", "value", "low", "high", "draws"} <= set(frame.columns)
