"""Estimators and pipelines of scikit-learn: scores, classes, frames and texts."""

import numpy as np
import pytest
import torch

import jostle
from jostle.base.errors import UsageError
from jostle.integrations.estimator import Estimator

pytest.importorskip("sklearn", reason="scikit-learn is not installed")
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_iris
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.multioutput import MultiOutputClassifier
from sklearn.naive_bayes import MultinomialNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC

NOISE = {"tokens": "columns", "perturbation": "gaussian-noise:std=1", "plan": jostle.Grid(5)}
TEXTS = ["a good film", "a good good time", "a bad film", "bad bad acting", "really good fun", "a bad, bad idea"]
WORDS = {"tokens": "words", "perturbation": "deletion"}


@pytest.fixture(scope="module")
def iris():
    return load_iris(return_X_y=True)


def test_a_pipeline_is_its_network_of_torch(iris):
    x, y = iris
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(x, y)
    scaler, last = model
    weights, bias = torch.from_numpy(last.coef_), torch.from_numpy(last.intercept_)
    mean, size = torch.from_numpy(scaler.mean_), torch.from_numpy(scaler.scale_)
    twin = jostle.measure(lambda rows: (rows - mean) / size @ weights.T + bias, torch.from_numpy(x), **NOISE)
    for form in (model, model.predict, model.predict_proba):
        m = jostle.measure(form, x, **NOISE)
        assert m.value == twin.value
        assert not m.warnings


@pytest.mark.parametrize("make", [lambda: RandomForestClassifier(5, random_state=0), SVC])
def test_flips_are_flips_of_what_is_predicted(iris, make):
    x, y = iris
    model = make().fit(x, np.array(["setosa", "versicolor", "virginica"])[y])
    m = jostle.measure(model, x, **NOISE)
    assert m.value == jostle.measure(model.predict, x, **NOISE).value
    assert Estimator(model).classes == ("setosa", "versicolor", "virginica")


def test_a_search_and_two_classes(iris):
    x, y = iris
    search = GridSearchCV(make_pipeline(StandardScaler(), LogisticRegression()), {"logisticregression__C": [1.0]})
    search.fit(x, y == 1)
    assert jostle.measure(search, x, **NOISE).value == jostle.measure(search.predict, x, **NOISE).value


def test_a_regression_says_that_it_has_no_classes(iris):
    x, _ = iris
    model = LinearRegression().fit(x[:, :3], x[:, 3])
    with pytest.warns(jostle.JostleWarning, match="predicts a number and no class"):
        jostle.measure(model, x[:, :3], **NOISE)
    m = jostle.measure(model, x[:, :3], response="absolute-change", **NOISE)
    expected = np.sqrt(2 / np.pi) * (np.abs(model.coef_) * x[:, :3].std(axis=0)).mean()
    assert abs(m.value / expected - 1) < 0.1


def test_frames_reach_a_pipeline_of_named_columns_as_frames():
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    frame = pandas.DataFrame({"age": [20, 30, 40, 50] * 5, "city": ["Rome", "Bern"] * 10, "x": np.arange(20.0)})
    make = make_column_transformer((OneHotEncoder(), ["city"]), (StandardScaler(), ["age", "x"]))
    model = make_pipeline(make, LogisticRegression()).fit(frame, frame["city"] == "Rome")
    m = jostle.measure(model, frame, tokens="columns", perturbation="other-input", plan=jostle.Grid(20))
    assert m.profile.names == ("age", "city", "x")
    assert m.profile.values[1] > 0.3 > m.profile.values[[0, 2]].max()
    assert jostle.measure(model.predict, frame, **NOISE).profile.counts.tolist() == [100, 0, 100]


def test_polars_frames_too(iris):
    polars = pytest.importorskip("polars", reason="polars is not installed")
    x, y = iris
    frame = polars.DataFrame({name: x[:, at] for at, name in enumerate("abcd")})
    model = RandomForestClassifier(3, random_state=0).fit(frame, y)
    m = jostle.measure(model, frame, **NOISE)
    assert m.profile.names == tuple("abcd")
    assert m.value == jostle.measure(RandomForestClassifier(3, random_state=0).fit(x, y), x, **NOISE).value


def test_a_pipeline_of_texts_by_words():
    model = make_pipeline(TfidfVectorizer(), MultinomialNB()).fit(TEXTS, ["pos", "pos", "neg", "neg", "pos", "neg"])
    assert Estimator(model).reads_texts
    m = jostle.measure(model, TEXTS, **WORDS)
    flips = []
    for text in TEXTS:
        words = text.split(" ")
        clean = model.predict([text])[0]
        left = [" ".join(words[:at] + words[at + 1 :]) for at in range(len(words))]
        flips.append(np.mean(model.predict(left) != clean))
    assert m.value == pytest.approx(np.mean(flips), abs=1e-12)
    assert m.value > 0
    for form in (model.predict, model.predict_proba, lambda texts: model.predict(texts)):
        assert jostle.measure(form, np.array(TEXTS), **WORDS).value == m.value


def test_words_are_replaced_by_words_of_the_texts():
    model = make_pipeline(TfidfVectorizer(), MultinomialNB()).fit(TEXTS, [1, 1, 0, 0, 1, 0])
    prompts = jostle.Prompts.of_words(TEXTS)
    asked = []

    def watched(texts):
        asked.extend(texts)
        return model.predict(texts)

    m = jostle.measure(watched, prompts, tokens="words", perturbation=jostle.UniformToken(prompts.vocabulary))
    assert 0 < m.value < 1
    assert set(TEXTS) <= set(asked)
    assert {word.strip(",") for text in asked for word in text.split()} == {
        word.strip(",") for text in TEXTS for word in text.split()
    }


def test_a_module_without_a_tokenizer_still_says_so():
    with pytest.raises(UsageError, match="the model has no tokenizer"):
        jostle.measure(torch.nn.Linear(2, 2), TEXTS, **WORDS)


def test_an_estimator_that_is_not_fitted_or_has_several_answers_is_one_line(iris):
    x, y = iris
    with pytest.raises(jostle.FailureError, match="NotFittedError"):
        jostle.measure(LogisticRegression(), x, **NOISE)
    several = MultiOutputClassifier(RandomForestClassifier(2)).fit(x, np.stack([y, y], axis=1))
    with pytest.raises(UsageError, match="gives 2 answers to each input"):
        jostle.measure(several, x, **NOISE)
