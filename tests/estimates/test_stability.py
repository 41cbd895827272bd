"""Noise stability against closed forms, against the exact values on the cube, and what it leaves alone."""

import math

import numpy as np
import pytest
import torch
from torch import nn

import jostle
from jostle.base.errors import UsageError
from jostle.estimates.stability import read_rhos


def gaussian(count=4000, dim=6, seed=0):
    return torch.randn(count, dim, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def cube(n):
    return torch.cartesian_prod(*[torch.tensor([-1.0, 1.0], dtype=torch.float64)] * n)


OU = {"centre": 0.0, "std": 1.0}
WEIGHTS = torch.tensor([0.5, -1.0, 2.0, 0.1, 0.7, -0.3], dtype=torch.float64)
WEIGHTS = WEIGHTS / WEIGHTS.norm()


class Bag(nn.Module):
    """The sum of word vectors without padding, which is id 0."""

    pad = 0

    def __init__(self, words=12, dim=3, classes=4):
        super().__init__()
        generator = torch.Generator().manual_seed(5)
        self.words = nn.Embedding(words, dim, dtype=torch.float64)
        self.head = nn.Linear(dim, classes, bias=False, dtype=torch.float64)
        with torch.no_grad():
            self.words.weight.copy_(torch.randn(words, dim, generator=generator))
            self.head.weight.copy_(torch.randn(classes, dim, generator=generator))

    def get_input_embeddings(self):
        return self.words

    def forward(self, input_ids, attention_mask=None):
        real = input_ids != 0 if attention_mask is None else attention_mask.bool()
        return self.head((self.words(input_ids) * real[:, :, None]).sum(dim=1))


def texts(side="right"):
    rows = [[3, 4, 5], [7, 8, 9, 10, 11], [1, 2, 2, 1]] * 20
    width = 6
    filled = [
        [*row, *[0] * (width - len(row))] if side == "right" else [*[0] * (width - len(row)), *row] for row in rows
    ]
    ids = torch.tensor(filled)
    return {"input_ids": ids, "attention_mask": (ids != 0).long()}


class TestClosedForms:
    def test_a_linear_function_keeps_rho(self):
        """E[f(x) f(y) | x] = rho f(x)^2, on any inputs."""
        found = jostle.stability(
            lambda x: x @ WEIGHTS, gaussian(300), rho=[-0.5, 0.3, 0.9], response="correlation", plan="grid:40", **OU
        )
        for point in found.points:
            assert point.low <= point.rho <= point.high
            assert point.high - point.low < 0.1

    def test_a_halfspace_agrees_as_often_as_sheppard_says(self):
        found = jostle.stability(
            lambda x: x @ WEIGHTS, gaussian(), rho=[0.0, 0.5, 0.9], target="population", plan="grid:3", **OU
        )
        for point in found.points:
            exact = 1 - math.acos(point.rho) / math.pi
            assert point.low <= exact <= point.high
            assert point.high - point.low < 0.05

    def test_a_relu_unit(self):
        """E[relu(a) relu(b)] / E[relu(a)^2] for normal a, b of correlation rho: the arc-cosine kernel of degree 1."""
        found = jostle.stability(
            lambda x: torch.relu(x @ WEIGHTS), gaussian(), rho=[0.0, 0.5, 0.9], response="correlation",
            target="population", plan="grid:5", **OU,
        )  # fmt: skip
        for point in found.points:
            angle = math.acos(point.rho)
            exact = (math.sin(angle) + (math.pi - angle) * point.rho) / math.pi
            assert point.low <= exact <= point.high
            assert point.high - point.low < 0.12

    def test_a_centred_relu_unit_is_less_stable(self):
        model, rho = (lambda x: torch.relu(x @ WEIGHTS)), 0.5
        plain, centred = (
            jostle.stability(model, gaussian(), rho=rho, response="correlation", centred=each, plan="grid:5", **OU)
            for each in (False, True)
        )
        angle, mean = math.acos(rho), 1 / math.sqrt(2 * math.pi)
        exact = ((math.sin(angle) + (math.pi - angle) * rho) / (2 * math.pi) - mean**2) / (0.5 - mean**2)
        assert abs(centred.value - exact) < 0.04 < plain.value - centred.value

    def test_noise_keeps_mean_and_spread_where_it_should(self):
        x = 3 + 2 * gaussian(20000, 1)
        noise = jostle.Correlated(0.6, centre=3.0, std=2.0)
        uniforms = np.random.default_rng(0).uniform(size=(len(x), 1))
        y = noise.apply(x, uniforms)
        assert abs(float(y.mean()) - 3) < 0.06
        assert abs(float(y.std()) - 2) < 0.06
        assert abs(float(torch.corrcoef(torch.cat([x, y], dim=1).T)[0, 1]) - 0.6) < 0.02


class TestTheCube:
    @pytest.mark.parametrize("rho", [-0.7, 0.4, 0.9])
    def test_a_random_function_has_its_exact_stability(self, rho):
        n = 6
        table = np.random.default_rng(1).choice([-1.0, 1.0], size=2**n)
        powers = torch.tensor([2.0**k for k in range(n)], dtype=torch.float64)

        def model(bits):
            return torch.from_numpy(table)[((bits > 0).double() @ powers).long()]

        exact = jostle.boolean.analyse(lambda bits: model(torch.from_numpy(np.asarray(bits))).numpy(), n=n)
        expected = exact.noise_stability(rho)
        found = jostle.stability(model, cube(n), rho=rho, response="correlation", plan="grid:60")
        assert found.low <= expected <= found.high
        agree = jostle.stability(model, cube(n), rho=rho, plan="grid:60")
        assert agree.low <= (1 + expected) / 2 <= agree.high
        assert agree.high - agree.low < 0.06

    def test_majority_and_parity(self):
        rhos = [0.5, 0.9]
        for name, model in {"majority": lambda x: x.sum(dim=1), "parity": lambda x: x.prod(dim=1)}.items():
            function = getattr(jostle.boolean.functions, name)(5)
            exact = jostle.boolean.analyse(function, n=5).noise_stability(rhos)
            found = jostle.stability(lambda x, model=model: torch.sign(model(x)), cube(5), rho=rhos, plan="grid:100")
            for point, expected in zip(found.points, exact, strict=True):
                assert point.low <= (1 + expected) / 2 <= point.high

    @pytest.mark.parametrize("response", ["agreement", "correlation"])
    def test_intervals_cover(self, response):
        """About 95 of 100 intervals hold the exact value; 89 or fewer have a chance below 1 %."""
        exact = jostle.boolean.analyse(jostle.boolean.functions.majority(5), n=5).noise_stability(0.7)
        expected = exact if response == "correlation" else (1 + exact) / 2
        found = [
            jostle.stability(
                lambda x: torch.sign(x.sum(dim=1)), cube(5), rho=0.7, response=response, plan="grid:6", seed=seed
            )
            for seed in range(100)
        ]
        assert sum(one.low <= expected <= one.high for one in found) >= 90
        assert np.mean([one.value for one in found]) == pytest.approx(expected, abs=0.01)


class TestTexts:
    def test_padding_stays_and_its_side_does_not_matter(self):
        seen = []

        class Watched(Bag):
            def forward(self, input_ids, attention_mask=None):
                seen.append((input_ids, attention_mask))
                return super().forward(input_ids, attention_mask)

        found = [
            jostle.stability(Watched(), texts(side), tokens="words", rho=[0.3, 0.8], plan="grid:3", batch_size=size)
            for side, size in (("right", 64), ("left", 64), ("right", 7))
        ]
        assert [point.value for point in found[0].points] == [point.value for point in found[1].points]
        assert [point.value for point in found[0].points] == [point.value for point in found[2].points]
        assert 0 < found[0].at(0.3).value < found[0].at(0.8).value < 1
        assert all(((ids == 0) == (mask == 0)).all() for ids, mask in seen)

    def test_ids_are_kept_with_probability_rho(self):
        """Correlation of a linear bag of one-hot words has a closed form: each token is kept or uniform."""
        ids = torch.randint(1, 12, (400, 5), generator=torch.Generator().manual_seed(0))

        def model(ids):
            return torch.nn.functional.one_hot(ids, 12).double().flatten(1)

        found = jostle.stability(model, ids, rho=0.6, response="correlation", vocabulary=range(1, 12), plan="grid:5")
        assert found.low <= 0.6 + 0.4 / 11 <= found.high
        assert found.high - found.low < 0.03

    def test_embeddings_move_all_at_once(self):
        found = jostle.stability(
            Bag(),
            texts(),
            tokens="embeddings:before",
            rho=[0.5, 0.9],
            response="correlation",
            centre=0.0,
            plan="grid:50",
            level=0.99,
        )
        for point in found.points:
            assert point.low <= point.rho <= point.high
        assert "embedded tokens" in found.notes[0]

    def test_words_of_the_model_are_the_vocabulary(self):
        found = jostle.stability(Bag(), texts(), tokens="words", rho=0.5, plan="grid:1")
        assert found.notes[0] == "a token becomes any of the 11 words of the model, all equally likely"

    def test_a_whole_text_cannot_be_deleted(self):
        with pytest.raises(UsageError, match="leave out whole=true"):
            jostle.measure(Bag(), texts(), tokens="words:whole=true", perturbation="deletion", plan="grid:1")


class TestResults:
    def test_nothing_moves_at_rho_one_and_several_rho_share_the_noise(self):
        model = nn.Sequential(nn.Linear(6, 3), nn.Tanh()).double()
        found = jostle.stability(model, gaussian(50), rho=[1.0, 0.9, 0.5], plan="grid:4", response="correlation")
        assert found.rhos == [0.5, 0.9, 1.0]
        assert (found.at(1).value, found.at(1.0).low, found.at(1.0).high) == (1.0, 1.0, 1.0)
        alone = jostle.stability(model, gaussian(50), rho=0.9, plan="grid:4", response="correlation", batch_size=7)
        assert alone.value == pytest.approx(found.at(0.9).value, abs=1e-12)
        np.testing.assert_allclose(alone.points[0].per_input, found.at(0.9).per_input)

    def test_until_stops_at_the_half_width_of_the_correlation(self):
        found = jostle.stability(
            lambda x: 10 * (x @ WEIGHTS), gaussian(200), rho=0.7, response="correlation",
            plan=jostle.Until(half_width=0.05), **OU,
        )  # fmt: skip
        assert found.high - found.low <= 0.1 + 1e-9
        assert found.low <= 0.7 <= found.high
        assert found.settings.plan.startswith("until:half_width=0.05")
        assert not found.points[0].other.is_known

    def test_it_saves_loads_prints_and_plots(self, tmp_path):
        found = jostle.stability(lambda x: x.prod(dim=1), cube(4), rho=[0.2, 0.9], plan="grid:2", name="parity")
        found.save(tmp_path / "s.json")
        again = jostle.load(tmp_path / "s.json")
        assert again.to_dict() == found.to_dict()
        assert str(again) == str(found)
        assert str(found).splitlines()[0].startswith("parity: noise stability")
        assert "note: all numbers are -1 or 1" in str(found)
        assert found.plot().axes[0].get_xlabel().startswith("rho")

    def test_one_number_is_asked_for_by_its_rho_where_there_are_several(self):
        found = jostle.stability(lambda x: x.prod(dim=1), cube(3), rho=[0.2, 0.9], plan="grid:2")
        with pytest.raises(UsageError, match="there are 2 rho"):
            _ = found.value
        with pytest.raises(UsageError, match=r"rho=0.3 was not measured; there are 0.2, 0.9"):
            found.at(0.3)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"rho": 1.5}, "rho=1.5 must be"),
        ({"rho": []}, "rho is empty"),
        ({"response": "flip"}, "response='flip' must be agreement"),
        ({"response": "correlation", "target": "population", "plan": jostle.Until(half_width=0.1)}, "need plan=Grid"),
        ({"rho": -0.5, "vocabulary": 5}, "only bits can be anticorrelated"),
    ],
)
def test_wrong_use_is_one_line(given, message):
    with pytest.raises(UsageError, match=message):
        jostle.stability(lambda x: x.sum(dim=1), cube(3), **given)


def test_inputs_that_cannot_be_used_are_refused():
    with pytest.raises(UsageError, match="scale them"):
        jostle.stability(lambda x: x.float().sum(dim=1), torch.zeros(4, 3, dtype=torch.uint8), rho=0.5)
    with pytest.raises(UsageError, match="give vocabulary="):
        jostle.stability(lambda x: x.float().sum(dim=1), torch.zeros(4, 3, dtype=torch.int64), rho=0.5)
    with pytest.raises(UsageError, match="0 for all inputs"):
        jostle.stability(lambda x: 0 * x.sum(dim=1), cube(3), rho=0.5, response="correlation")


def test_rhos_are_sorted_and_each_once():
    assert read_rhos(torch.tensor([0.75, 0.5, 0.75])) == (0.5, 0.75)
    assert read_rhos(0.9) == (0.9,)


def test_a_response_that_is_no_text_is_one_line():
    with pytest.raises(UsageError, match=r"response=\[\] must be agreement"):
        jostle.stability(lambda x: x, torch.ones(3, 4), response=[])
