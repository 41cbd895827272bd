"""Learning one more input: against pseudo-inverses and gradient descent, and the bounds that hold for every map."""

import pytest
import torch

from jostle.base.errors import UsageError
from jostle_papers.p2402_02969.features import (
    TRAININGS,
    DrawnFeatures,
    Interpolator,
    RandomAttention,
    create,
    linear_labels,
    modify_word,
    names,
    shared_mean_words,
)
from jostle_papers.p2402_02969.features.word_sensitivity import on_ball, random_changes

MAPS = names()


def made(name="raf", count=12, n=6, dim=8, seed=0):
    words = shared_mean_words(count + 1, num_tokens=n, dim=dim, seed=seed)
    labels = linear_labels(words, seed)
    phi = create(name, num_tokens=n, dim=dim, seed=seed)
    features = phi(words)
    return phi, words[-1], features[-1], float(labels[-1]), Interpolator(features[:-1], labels[:-1])


def test_weights_are_the_pseudo_inverse_and_interpolate():
    *_, model = made()
    assert torch.allclose(model.weights, torch.linalg.pinv(model.features) @ model.labels, atol=1e-11)
    assert torch.allclose(model.predict(model.features), model.labels, atol=1e-10)
    assert model.smallest_eigenvalue == pytest.approx(
        float(torch.linalg.eigvalsh(model.features @ model.features.T)[0])
    )


@pytest.mark.parametrize("name", MAPS)
def test_greville_to_1e_12(name):
    _, _, features, label, model = made(name)
    learnt = model.learn(features, label, "re-trained")
    both = torch.cat([model.features, features[None]])
    targets = torch.cat([model.labels, torch.tensor([label])])
    again = Interpolator(both, targets).weights
    assert float((learnt.weights - again).norm() / again.norm()) < 1e-12
    assert float((both @ learnt.weights - targets).abs().max()) < 1e-12
    assert torch.allclose(learnt.weights, torch.linalg.pinv(both) @ targets, atol=1e-9)
    projector = torch.eye(len(features)) - torch.linalg.pinv(model.features) @ model.features
    residual = model.residual(features)
    assert float((residual - projector @ features).norm() / residual.norm()) < 1e-10
    # ||P phi||^2 is the inverse of the last entry of the inverse kernel
    last = float(torch.linalg.inv(both @ both.T)[-1, -1])
    assert float(residual.square().sum()) == pytest.approx(1 / last, rel=1e-8)


def test_fine_tuning_is_gradient_descent_on_the_new_input():
    _, _, features, label, model = made()
    weights = model.weights.clone()
    rate = 0.5 / float(features @ features)
    for _ in range(80):
        weights -= rate * 2 * 0.7 * (features @ weights - label) * features
    assert torch.allclose(weights, model.learn(features, label, "fine-tuned").weights, atol=1e-12)


@pytest.mark.parametrize("training", TRAININGS)
@pytest.mark.parametrize("name", MAPS)
def test_prediction_is_a_sum_of_two_and_all_bounds_hold(name, training):
    phi, words, features, label, model = made(name)
    learnt = model.learn(features, label, training)
    moves = on_ball(random_changes(40, 8, 1, "moves"), 8**0.5) * torch.linspace(0, 1, 40)[:, None]
    modified = phi.one_word(words, 2).features(moves)
    found = learnt.judge(modified)
    assert torch.allclose(found.prediction, modified @ learnt.weights, atol=1e-11)
    assert torch.allclose(found.error, (modified @ learnt.weights + label) ** 2, atol=1e-10)
    assert (found.error >= found.bound - 1e-10).all()
    assert ((found.alignment - 1).abs() <= found.alignment_bound + 1e-10).all()
    assert float(found.error[0]) == pytest.approx(4, abs=1e-9)  # nothing changed: f = y, and -y was asked for
    assert learnt.stretch >= 1 - 1e-12
    assert float(features @ learnt.step) == pytest.approx(1, abs=1e-10)


def test_the_separating_alignment_leaves_gamma_squared():
    _, _, features, label, model = made()
    learnt = model.learn(features, label, "fine-tuned")
    # Any vector with this product with u and a known gamma will do.
    basis = torch.stack([learnt.old_weights, learnt.step])
    wanted = torch.tensor([learnt.before + 0.3, learnt.separating_alignment])
    vector = torch.linalg.lstsq(basis, wanted).solution
    found = learnt.judge(vector[None]).at(0)
    assert found["gamma"] == pytest.approx(0.3, abs=1e-9)
    assert found["error"] == pytest.approx(0.09, abs=1e-8)


def test_what_cannot_be_learnt_is_said():
    *_, model = made()
    with pytest.raises(UsageError, match="re-trained: the new input's features are a combination of the 12 training"):
        model.learn(model.features[:3].sum(0), 1.0, "re-trained")
    with pytest.raises(UsageError, match="unknown training 'retrained'; did you mean re-trained"):
        model.learn(model.features[0], 1.0, "retrained")
    with pytest.raises(UsageError, match=r"an interpolator needs features \(N, p\) and labels \(N,\)"):
        Interpolator(torch.ones(3, 2), torch.ones(2))


@pytest.mark.parametrize("goal", ["error", "alignment"])
def test_the_search_lowers_its_goal_and_keeps_gamma_small(goal):
    phi, words, features, label, model = made(count=20, n=10, dim=32)
    learnt = model.learn(features, label, "re-trained")
    one_word = phi.one_word(words, 0)
    found = modify_word(one_word, learnt, goal=goal, starts=6, steps=60)
    judged = learnt.judge(phi(torch.cat([(words[:1] + found.change), words[1:]])[None])).at(0)
    assert found.error == pytest.approx(judged["error"], abs=1e-9)
    assert found.feature_change == pytest.approx(judged["change"], rel=1e-7)
    assert found.error < 3
    assert found.error >= found.bound - 1e-10
    free = modify_word(one_word, learnt, goal=goal, penalty=0.0, starts=6, steps=60)
    assert found.gamma < free.gamma
    assert found.free_bound == pytest.approx((2 - found.gamma) ** 2)


def test_attention_tells_apart_what_random_features_cannot():
    """Re-trained, gamma held small: RF stays near (2 - gamma)^2, softmax attention gets well below."""
    n, dim, count = 20, 64, 60
    words = shared_mean_words(count + 1, num_tokens=n, dim=dim, seed=0)
    labels = linear_labels(words, 0)
    drawn, phi = DrawnFeatures(words, 0, seed=0), RandomAttention(dim=dim, seed=0)
    found = {}
    for name, features, one_word in (
        ("rf", drawn.features, drawn.one_word(count)),
        ("raf", phi(words), phi.one_word(words[-1], 0)),
    ):
        learnt = Interpolator(features[:-1], labels[:-1]).learn(features[-1], float(labels[-1]), "re-trained")
        found[name] = modify_word(one_word, learnt, starts=6, steps=60)
    assert found["rf"].error > 2.2
    assert found["raf"].error < found["rf"].error - 0.5
    assert abs(found["rf"].alignment - 1) < abs(found["raf"].alignment - 1)


def test_wrong_goals_and_penalties():
    phi, words, features, label, model = made()
    learnt = model.learn(features, label, "fine-tuned")
    with pytest.raises(UsageError, match="unknown goal 'loss'"):
        modify_word(phi.one_word(words, 0), learnt, goal="loss")
    with pytest.raises(UsageError, match="penalty=-1 must be a finite number, at least 0"):
        modify_word(phi.one_word(words, 0), learnt, penalty=-1)
