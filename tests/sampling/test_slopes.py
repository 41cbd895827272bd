"""Slopes of clean margins, against closed forms and differences; where a model does not tell them, nothing breaks."""

import numpy as np
import pytest
import torch

import jostle
from jostle import Embeddings, GaussianNoise, Until
from jostle.estimates.request import Request
from jostle.responses import Flip
from jostle.sampling.adaptive import Cells
from jostle.sampling.plans import Batching
from jostle.sampling.slopes import can_have_slopes, slopes_of
from jostle.tokens import Coordinates, Inputs, Patches, TokenFunction, Words
from tests.tokens.made_up_texts import VOCABULARY, padded, sentences

GENERATOR = torch.Generator().manual_seed(0)
X = torch.randn(100, 6, dtype=torch.float64, generator=GENERATOR)
WEIGHTS = torch.tensor([3.0, 0.0, -1.0, 0.5, 2.0, 0.1], dtype=torch.float64)


def slopes(model, inputs, view):
    function = TokenFunction(model, Inputs(inputs, view))
    with function.evaluating():
        found = slopes_of(function, Flip(), Batching(function.inputs, None))
    return found, function


def test_of_a_linear_model_they_are_its_weights_and_all_passes_count():
    found, function = slopes(lambda x: x @ WEIGHTS, X, Coordinates())
    assert found == pytest.approx(np.tile(WEIGHTS.abs().numpy(), (100, 1)), rel=1e-6)
    assert function.passes == 3 * len(X)


def test_of_patches_they_are_norms_of_the_gradient_to_the_runner_up():
    model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(32, 3)).double()
    images = torch.randn(9, 2, 4, 4, dtype=torch.float64, generator=GENERATOR)
    found, _ = slopes(model, images, Patches(2))
    first, second = model(images).topk(2, dim=1).indices.T
    weights = (model[1].weight[first] - model[1].weight[second]).view(9, 2, 2, 2, 2, 2)
    assert found == pytest.approx(weights.square().sum((1, 3, 5)).sqrt().flatten(1).detach().numpy(), rel=1e-6)
    assert all(parameter.grad is None and parameter.requires_grad for parameter in model.parameters())


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("name", ["text-encoder", "text-decoder", "text-lstm"])
def test_of_embedded_texts_they_are_those_of_differences(name, side):
    sizes = {"heads": 2, "mlp_dim": 16} if name != "text-lstm" else {}
    model = jostle.models.create(name, vocabulary=VOCABULARY + 3, dim=8, depth=1, seed=0, **sizes).double().eval()
    texts = padded([text + 3 for text in sentences()], side, 14, pad=0)
    found, function = slopes(model, texts, Embeddings())
    mask = function.inputs.mask
    assert mask is not None
    assert (found[~mask] == 0).all()
    text, step = 2, 1e-5
    column = int(np.flatnonzero(mask[text])[1])
    whole = {key: tensor[text : text + 1] for key, tensor in texts.items() if key != "special_tokens_mask"}

    def margin(delta):
        def move(_module, _given, output):
            return output + delta

        handle = model.embeddings.register_forward_hook(move)
        logits = model(**whole)[0]
        handle.remove()
        return float((logits[0] - logits[1]).abs())

    zero = torch.zeros(1, 14, 8, dtype=torch.float64)
    gradient = []
    with torch.no_grad():
        for number in range(8):
            delta = zero.clone()
            delta[0, column, number] = step
            gradient.append((margin(delta) - margin(-delta)) / (2 * step))
    assert found[text, column] == pytest.approx(np.linalg.norm(gradient), rel=1e-4)


def test_models_that_cannot_be_differentiated_have_none():
    assert slopes(lambda x: torch.from_numpy(x.numpy() @ WEIGHTS.numpy()), X, Coordinates())[0] is None
    assert slopes(lambda x: (x @ WEIGHTS).detach(), X, Coordinates())[0] is None
    assert slopes(lambda x: (x @ WEIGHTS > 0).long(), X, Coordinates())[0] is None
    assert slopes(lambda x: (x - x).sqrt() @ WEIGHTS, X, Coordinates())[0] is None  # infinite
    texts = padded([text + 3 for text in sentences()], "right", 14, pad=0)
    model = jostle.models.create("text-bag", vocabulary=VOCABULARY + 3, dim=8, seed=0)
    assert not can_have_slopes(TokenFunction(model, Inputs(texts, Words())))


def test_cells_are_ranked_by_margin_over_slope():
    inputs, margins = Inputs(torch.zeros(4096, 2), Coordinates()), np.arange(1.0, 4097.0)
    steep = np.stack([np.full(4096, 1.0), np.full(4096, 1e-9)], axis=1).astype(np.float32)
    groups = Cells(inputs, margins, "macro", steep).by_slope
    assert np.bincount(groups.ravel()).tolist() == [2, 6, 24, 96, 384, 1536, 6144]
    assert groups[:2, 0].tolist() == [0, 0]
    assert (groups[:, 1] == 6).all()
    assert (np.diff(groups[:, 0].astype(int)) >= 0).all()


def measured(model, inputs, plan, std, seed=0):
    return jostle.measure(model, inputs, tokens="coordinates", perturbation=GaussianNoise(std), plan=plan, seed=seed)


def told(m):
    return any("along which it is steep" in note for note in m.notes)


def test_slopes_are_used_where_they_are_cheap_and_save_passes():
    plan, std, seeds = Until(relative=0.2), 0.02, range(6)
    found = [measured(lambda x: x @ WEIGHTS, X, plan, std, seed) for seed in seeds]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("jostle.sampling.slopes._MOST_CELLS", 0)
        without = [measured(lambda x: x @ WEIGHTS, X, plan, std, seed) for seed in seeds]
    assert all(told(m) for m in found)
    assert not any(told(m) for m in without)
    assert sum(m.passes for m in found) < sum(m.passes for m in without)
    truth = np.mean([m.value for m in without])
    assert sum(m.low <= truth <= m.high for m in (*found, *without)) >= 11


def test_slopes_are_asked_for_in_batches_of_at_most_the_size_given():
    seen = []

    def model(x):
        seen.append(len(x))
        return x @ WEIGHTS

    given = {"tokens": "coordinates", "perturbation": GaussianNoise(0.02), "plan": Until(relative=0.2)}
    assert told(jostle.measure(model, X, batch_size=10, **given))
    assert max(seen[4:]) == 10  # after the checks


def test_a_model_that_does_not_tell_is_sampled_by_margins():
    def opaque(x):
        return torch.from_numpy(x.numpy() @ WEIGHTS.numpy())

    found = measured(opaque, X, Until(relative=0.2), 0.02)
    assert not told(found)
    assert found.stopped == "precision"
    assert any(note.startswith("sampled adaptively") for note in found.notes)


def test_the_request_says_what_slopes_cost():
    request = Request.build(tokens="coordinates", perturbation="gaussian-noise:1", plan="until:relative=0.1")
    assert request.prepare({"model": lambda x: x @ WEIGHTS}, X).price_of_slopes == 300
