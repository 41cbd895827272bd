"""Whether flips mean errors, clusters of inputs, and certified radii, each against known answers."""

import numpy as np
import pytest
import torch
from scipy import special

import jostle
from jostle.base.errors import UsageError
from jostle.estimates.certainty import find_certainty


def inputs(count=300, dim=5, seed=0):
    return torch.randn(count, dim, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


WEIGHTS = torch.tensor([1.0, -0.5, 0.3, 0.2, 0.1], dtype=torch.float64)


def halfspace(x):
    return x @ WEIGHTS


def noisy_labels(x, size=0.5):
    """Right where the margin is large, and often wrong where it is small."""
    noise = torch.randn(len(x), generator=torch.Generator().manual_seed(7), dtype=torch.float64)
    return ((x @ WEIGHTS + size * noise) > 0).long()


def measure(labels, **more):
    options = {"tokens": "coordinates", "perturbation": "gaussian-noise:1", "plan": "grid:5"} | more
    return jostle.measure(halfspace, inputs(), labels=labels, **options)


class TestCertainty:
    def test_predictions_near_the_boundary_flip_and_are_wrong(self):
        found = measure(noisy_labels(inputs()))
        certainty = found.certainty
        assert certainty.verdict == "a sensitive prediction tends to be a wrong one"
        assert certainty.auroc.low > 0.6
        assert certainty.inputs == 300
        assert certainty.wrong == int(((halfspace(inputs()) > 0).long() != noisy_labels(inputs())).sum())
        assert sum(each.inputs for each in certainty.bins) == 300
        assert sum(each.wrong for each in certainty.bins) == certainty.wrong
        assert certainty.bins[0].share < certainty.bins[-1].share
        assert certainty.draws == 25
        assert found.passes > measure(None).passes
        assert certainty.gain.value == pytest.approx(certainty.auroc.value - certainty.confidence.value)

    def test_labels_without_a_relation_say_so(self):
        random = torch.randint(2, (300,), generator=torch.Generator().manual_seed(3))
        assert measure(random).certainty.verdict == "flips do not tell wrong predictions from right ones here"

    def test_right_everywhere_leaves_nothing_to_tell(self):
        certainty = measure((halfspace(inputs()) > 0).long()).certainty
        assert certainty.verdict == "all 300 predictions are right: nothing to tell apart"
        assert len(certainty.lines()) == 1
        assert (certainty.auroc.low, certainty.auroc.high) == (0.0, 1.0)

    def test_labels_of_minus_one_and_one_are_the_same(self):
        labels = noisy_labels(inputs())
        assert measure(2 * labels - 1).certainty.to_dict() == measure(labels).certainty.to_dict()

    def test_several_models_and_until(self):
        found = jostle.compare(
            {"a": halfspace, "b": lambda x: torch.stack([x[:, 0], x[:, 1]], dim=1)}, inputs(), tokens="coordinates",
            perturbation="gaussian-noise:1", plan=jostle.Until(half_width=0.05), labels=noisy_labels(inputs()),
        )  # fmt: skip
        assert found["a"].certainty.inputs <= 300
        wrong = found["a"].certainty.wrong
        assert f"a: {wrong} of {found['a'].certainty.inputs} predictions are wrong; " in str(found)
        assert found["a"].certainty.inputs == np.isfinite(found["a"].per_input).sum()

    def test_it_is_saved_and_loaded_and_shown(self, tmp_path):
        from jostle.report.measurement import measurement_page

        found = measure(noisy_labels(inputs()))
        found.save(tmp_path / "m.json")
        again = jostle.load(tmp_path / "m.json")
        assert again.certainty.to_dict() == found.certainty.to_dict()
        assert "AUROC of the flip rate" in str(again)
        titles = [section.title for section in measurement_page(again, inputs="x").sections]
        assert "Is the model sure?" in titles
        assert "certainty" not in measure(None).to_dict()

    @pytest.mark.parametrize(
        ("labels", "more", "message"),
        [
            (torch.zeros(3), {}, "there are 3 labels for 300 inputs"),
            (torch.full((300,), 0.5), {}, "labels must be whole numbers"),
            (torch.full((300,), 4), {}, "labels go from 4 to 4, and the model knows classes 0 to 1"),
            (torch.zeros(300), {"response": "margin"}, "use flip"),
        ],
    )
    def test_wrong_labels_are_refused(self, labels, more, message):
        with pytest.raises(UsageError, match=message):
            measure(labels, **more)

    def test_the_interval_of_the_auroc_covers(self):
        """Flip rates of 12 draws at random margins, errors more likely at small margins; 300 datasets of 150 inputs."""
        generator = np.random.default_rng(0)

        def dataset(count):
            chance = generator.beta(0.5, 4, size=count)
            flips = generator.binomial(12, chance) / 12
            return flips, generator.random(count) < 0.05 + 0.8 * chance

        flips, wrong = dataset(200_000)
        truth = find_certainty(flips, wrong, flips, 0.95).auroc.value
        held = 0
        for _ in range(300):
            found = find_certainty(*dataset(150), np.zeros(150), 0.95).auroc
            held += found.low <= truth <= found.high
        assert held / 300 >= 0.93


class TestClusters:
    def data(self, clusters=40, seed=0):
        """Clusters of 1 to 9 inputs that are all alike: inputs of one cluster are one observation."""
        generator = np.random.default_rng(seed)
        sizes = generator.integers(1, 10, size=clusters)
        names = np.repeat([f"document {number}" for number in range(clusters)], sizes)
        x = torch.from_numpy(np.repeat(generator.standard_normal((clusters, 3)), sizes, axis=0))
        return x, names, sizes

    def test_the_population_interval_widens_and_the_value_stays(self):
        x, names, sizes = self.data()
        options = {"tokens": "coordinates", "perturbation": "sign-flip", "target": "population"}
        plain = jostle.measure(lambda x: x.sum(dim=1), x, **options)
        found = jostle.measure(lambda x: x.sum(dim=1), x, cluster=names, **options)
        assert found.value == plain.value
        assert found.high - found.low > 1.5 * (plain.high - plain.low)
        assert found.dataset.to_dict() == plain.dataset.to_dict()
        assert found.interval.method.startswith(f"40 clusters of 1 to {sizes.max()} inputs")

    def test_clusters_of_one_input_change_next_to_nothing(self):
        x = inputs(60, 3)
        options = {"tokens": "coordinates", "perturbation": "sign-flip", "target": "population"}
        plain = jostle.measure(lambda x: x.sum(dim=1), x, **options)
        found = jostle.measure(lambda x: x.sum(dim=1), x, cluster=np.arange(60), **options)
        assert (found.low, found.high) == pytest.approx((plain.low, plain.high), abs=0.01)

    def test_intervals_cover_where_those_of_inputs_do_not(self):
        """Population: clusters of 1 to 9 like inputs, one token, a flip where the first number is positive."""
        held = {"cluster": 0, "input": 0}
        for seed in range(150):
            x, names, _ = self.data(30, seed)
            flips = (x[:, :1] > 0.3).double()
            for kind in held:
                found = jostle.measure(
                    lambda x: torch.where(x[:, 0] > 5, 1 - x[:, 1], x[:, 1]), torch.cat([x[:, :1] * 0, flips], dim=1),
                    tokens=jostle.Coordinates(), perturbation=jostle.ReplaceBy(0.0), target="population",
                    cluster=names if kind == "cluster" else None, plan="grid:1",
                )  # fmt: skip
                held[kind] += found.low <= special.ndtr(-0.3) / 2 <= found.high
        assert held["cluster"] >= 138  # 92 %
        assert held["input"] < 135

    def test_differences_have_clusters_too(self):
        x, names, _ = self.data()
        models = {"sum": lambda x: x.sum(dim=1), "first": lambda x: x[:, 0]}
        options = {"tokens": "coordinates", "perturbation": "sign-flip", "target": "population"}
        found = jostle.compare(models, x, cluster=names, **options)
        plain = jostle.compare(models, x, **options)
        one, other = (each.difference("sum", "first") for each in (found, plain))
        assert one.value == other.value
        assert one.high - one.low > other.high - other.low

    @pytest.mark.parametrize(
        ("more", "message"),
        [
            ({"cluster": [1, 2]}, r"cluster has shape \(2,\), expected \(20,\)"),
            ({"cluster": [1] * 20}, "all inputs are of one cluster"),
            ({"cluster": range(20), "average": "micro"}, "use average='macro'"),
            ({"cluster": range(20), "plan": jostle.Until(half_width=0.1)}, "needs plan=Grid"),
        ],
    )
    def test_wrong_clusters_are_refused(self, more, message):
        with pytest.raises(UsageError, match=message):
            jostle.measure(halfspace, inputs(20), tokens="coordinates", perturbation="sign-flip", **more)


class TestCertify:
    def test_a_halfspace_has_its_distance_as_radius(self):
        x = inputs(60)
        found = jostle.certify(halfspace, x, std=0.7, draws=4000, alpha=0.001)
        exact = (halfspace(x).abs() / WEIGHTS.norm()).numpy()
        sure = found.classes >= 0
        assert (found.radii <= exact + 1e-9).mean() == 1.0
        assert (found.classes[sure] == (halfspace(x) > 0).long().numpy()[sure]).all()
        reachable = exact < 0.9 * found.largest
        assert np.abs(found.radii - exact)[reachable & sure].max() < 0.25
        assert np.abs(found.radii - exact)[reachable & sure].mean() < 0.07
        assert found.radii.max() == pytest.approx(found.largest) if (exact > found.largest + 1).any() else True

    def test_statements_are_wrong_at_most_as_often_as_stated(self):
        """The radius of one input exceeds the exact one with probability at most alpha: 20 % here, 300 seeds."""
        x, exact = torch.tensor([[0.5]], dtype=torch.float64).repeat(300, 1), 0.5
        found = jostle.certify(lambda x: x[:, 0], x, std=1.0, draws=200, alpha=0.2)
        wrong = float((found.radii > exact).mean())
        assert 0.05 < wrong < 0.2 + 3 * (0.2 * 0.8 / 300) ** 0.5

    def test_it_abstains_at_the_boundary_and_shares_count_labels(self):
        x = torch.tensor([[0.0], [3.0], [-3.0]], dtype=torch.float64)
        found = jostle.certify(lambda x: x[:, 0], x, std=1.0, draws=500)
        assert found.classes.tolist() == [-1, 1, 0]
        assert found.abstained == 1
        assert found.share(0.5).value == pytest.approx(2 / 3)
        assert found.share(0.5, [0, 1, 1]).value == pytest.approx(1 / 3)
        assert "1 abstain" in str(found)

    def test_the_same_draws_say_how_often_predictions_flip_and_whether_these_are_wrong(self):
        """Under noise of std s on all of x, a halfspace flips with probability Phi(-distance / s)."""
        x, std, draws = inputs(200), 0.7, 900
        found = jostle.certify(halfspace, x, std=std, draws=draws, selection=100)
        distance = (halfspace(x).abs() / WEIGHTS.norm()).numpy()
        exact = special.ndtr(-distance / std)
        error = np.sqrt(exact * (1 - exact) / (draws + 100)) + 1e-9
        assert np.abs((found.flips - exact) / error)[exact > 0.01].max() < 5
        assert found.predictions.tolist() == (halfspace(x) > 0).long().tolist()
        noisy = halfspace(x) + torch.randn(200, generator=torch.Generator().manual_seed(1), dtype=x.dtype)
        labels = (noisy > 0).long()
        certain = found.certainty(labels)
        assert certain.wrong == int((labels != (halfspace(x) > 0)).sum()) > 10
        assert certain.auroc.low > 0.5  # errors are near the boundary, and so are flips
        by_measure = jostle.measure(
            halfspace, x, tokens="whole", perturbation=jostle.GaussianNoise(std), plan=jostle.Grid(1000), labels=labels
        )
        assert certain.confidence.value == by_measure.certainty.confidence.value
        assert certain.auroc.value == pytest.approx(by_measure.certainty.auroc.value, abs=0.01)

    def test_batches_do_not_matter_and_files_come_back(self, tmp_path):
        x = inputs(12)
        first, second = (jostle.certify(halfspace, x, std=0.5, draws=50, batch_size=size) for size in (128, 7))
        assert (first.radii == second.radii).all()
        first.save(tmp_path / "c.json")
        assert jostle.load(tmp_path / "c.json").to_dict() == first.to_dict()

    @pytest.mark.parametrize(
        ("more", "message"),
        [
            ({"std": 0}, "std=0 must be"),
            ({"std": 1.0, "draws": 0}, "draws=0 must be"),
            ({"std": 1.0, "alpha": 0.7}, "alpha=0.7 must be"),
            ({"std": 1.0, "tokens": "rows"}, "use Whole"),
        ],
    )
    def test_wrong_use_is_one_line(self, more, message):
        with pytest.raises(UsageError, match=message):
            jostle.certify(halfspace, inputs(4), **more)
