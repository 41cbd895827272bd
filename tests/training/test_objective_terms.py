"""A penalty and an augmentation within ``fit``."""

import pytest
import torch
from torch import nn

from jostle.base.errors import UsageError
from jostle.lowering import NoiseAugmentation, SensitivityPenalty
from jostle.training import Constant, Epoch, fit, objective
from jostle.training.checkpoints import load
from jostle.training.randomness import order, own_randomness
from jostle.training.recipe import Recipe
from tests.training.toys import network, random_points, same_weights

ADAM = {"optimizer": "adam", "lr": 0.01, "batch_size": 16, "max_epochs": 4}
CPU = torch.device("cpu")


def penalty(**settings):
    return SensitivityPenalty(**({"tokens": "coordinates", "std": 0.5} | settings))


def both():
    """Fresh objects, as another process would make them."""
    return {"penalty": penalty(), "augment": NoiseAugmentation(std=0.1, share=0.5, mode="append")}


def trained(**terms):
    model = network()
    fit(model, random_points(), **ADAM, seed=3, **terms)
    return model


def by_hand(objective, augment=None):
    """What training with terms is, written out; ``objective`` of (loss, model, inputs, logits)."""
    model, dataset = network(), random_points()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, foreach=False)
    for epoch in range(1, 5):
        model.train()
        with own_randomness("dropout", 3, epoch, CPU):
            for rows in order(len(dataset), 3, epoch).split(16):
                inputs, labels = dataset.inputs[rows], dataset.labels[rows]
                if augment is not None:
                    inputs, labels = augment(inputs, labels)
                optimizer.zero_grad()
                logits = model(inputs)
                objective(nn.functional.cross_entropy(logits, labels), model, inputs, logits).backward()
                optimizer.step()
    return model


def test_the_penalty_is_added_to_the_loss():
    term = penalty()
    expected = by_hand(lambda loss, model, inputs, logits: loss + term(model, inputs, clean=logits))
    assert same_weights(trained(penalty=penalty()), expected)
    assert not same_weights(trained(), expected)


def test_with_mix_it_takes_its_share_of_the_loss():
    term = penalty(strength=0.4)
    expected = by_hand(lambda loss, model, inputs, logits: term.combine(loss, model, inputs, clean=logits))
    assert same_weights(trained(penalty=penalty(strength=0.4, mix=True)), expected)
    assert not same_weights(trained(penalty=penalty(strength=0.4)), expected)


@pytest.mark.parametrize("mode", ["replace", "append"])
def test_the_augmentation_comes_first(mode):
    augment = NoiseAugmentation(std=0.3, mode=mode)
    expected = by_hand(lambda loss, model, inputs, logits: loss, augment)
    assert same_weights(trained(augment=NoiseAugmentation(std=0.3, mode=mode)), expected)
    assert not same_weights(trained(), expected)


@pytest.mark.parametrize(
    "terms",
    [
        {"penalty": penalty(strength=0)},
        {"penalty": penalty(strength=0, mix=True)},
        {"penalty": penalty(std=0)},
        {"augment": NoiseAugmentation(std=0)},
        {"augment": NoiseAugmentation(std=0, mode="append")},
    ],
    ids=repr,
)
def test_nothing_is_plain_training_bit_for_bit(terms):
    assert same_weights(trained(**terms), trained())


def test_noise_is_a_function_of_seed_and_epoch():
    def meddle(epoch: Epoch) -> None:
        torch.manual_seed(epoch.number)

    before = torch.random.get_rng_state()
    first = trained(**both())
    assert torch.equal(torch.random.get_rng_state(), before)
    assert same_weights(first, trained(**both(), on_epoch=meddle))
    other = network()
    fit(other, random_points(), **ADAM, seed=4, **both())
    assert not same_weights(first, other)


class Interrupt(Exception):
    pass


@pytest.mark.parametrize("interrupted_at", [0, 2, 3])
def test_resumes_bit_for_bit(tmp_path, interrupted_at):
    def interrupt(epoch: Epoch) -> None:
        if epoch.number == interrupted_at:
            raise Interrupt

    whole, stopped, resumed = network(), network(), network(seed=5)
    expected = fit(whole, random_points(), **ADAM, **both())
    with pytest.raises(Interrupt):
        fit(stopped, random_points(), **ADAM, **both(), checkpoint=tmp_path / "c", on_epoch=interrupt)
    torch.rand(7)
    assert fit(resumed, random_points(), **ADAM, **both(), checkpoint=tmp_path / "c") == expected
    assert same_weights(whole, resumed)


def test_resumes_from_the_middle_of_an_epoch(tmp_path):
    steps = []

    class Failing(SensitivityPenalty):
        def __call__(self, *args, **named):
            steps.append(1)
            if len(steps) == 4 + 2:
                raise Interrupt
            return super().__call__(*args, **named)

    whole, resumed = network(), network(seed=5)
    expected = fit(whole, random_points(), **ADAM, penalty=penalty())
    with pytest.raises(Interrupt):
        fit(
            network(),
            random_points(),
            **ADAM,
            penalty=Failing(tokens="coordinates", std=0.5),
            checkpoint=tmp_path / "c",
        )
    assert load(tmp_path / "c").epochs == 1
    assert fit(resumed, random_points(), **ADAM, penalty=penalty(), checkpoint=tmp_path / "c") == expected
    assert same_weights(whole, resumed)


@pytest.mark.parametrize(
    ("written", "current", "message"),
    [
        ({}, {"penalty": penalty()}, r"penalty was None, is sensitivity-penalty\(tokens=coordinates"),
        ({"penalty": penalty()}, {}, r"penalty was sensitivity-penalty\(.*\), is None; use those settings"),
        ({"penalty": penalty()}, {"penalty": penalty(strength=0.5)}, r"strength=0.25\), is .*strength=0.5\)"),
        ({"augment": NoiseAugmentation(std=1)}, {}, r"augment was noise-augmentation\(std=1, .*\), is None"),
        (
            {"augment": NoiseAugmentation(std=1)},
            {"augment": NoiseAugmentation(std=2)},
            r"augment was .*std=1, .* is .*std=2,",
        ),
    ],
)
def test_a_checkpoint_of_other_terms_is_refused(tmp_path, written, current, message):
    fit(network(), random_points(), **ADAM, **written, checkpoint=tmp_path / "c")
    kept = (tmp_path / "c").read_bytes()
    with pytest.raises(UsageError, match=message):
        fit(network(), random_points(), **ADAM, **current, checkpoint=tmp_path / "c")
    assert (tmp_path / "c").read_bytes() == kept


def test_runs_without_terms_are_described_as_before(tmp_path):
    """So that checkpoints written before there were terms go on."""
    known = [
        "optimizer",
        "lr",
        "schedule",
        "momentum",
        "weight_decay",
        "clip",
        "batch_size",
        "precision",
        "seed",
        "model",
    ]
    known += ["model architecture", "model dtype", "dataset", "dataset split", "dataset length", "dataset classes"]
    known += ["dataset contents"]
    plain = Recipe("sgd", 0.1, Constant(), 0.0, 0.0, None, 16, "float32", 0)
    assert list(plain.describe(network(), random_points())) == known
    fit(network(), random_points(), **ADAM, checkpoint=tmp_path / "c")
    assert sorted(load(tmp_path / "c").settings) == sorted([*known, "evaluate_every"])


def test_passes_of_a_run():
    term = penalty()
    trained(penalty=term)
    assert term.passes == 3 * 60 * 4  # one jostled pass and its backward pass for each example of each epoch


def test_any_function_will_do(tmp_path):
    def size_of_logits(model, inputs, clean):
        return 0.1 * clean.square().mean()

    def flipped(inputs, labels):
        return -inputs, labels

    expected = by_hand(lambda loss, model, inputs, logits: loss + 0.1 * logits.square().mean(), flipped)
    assert same_weights(trained(penalty=size_of_logits, augment=flipped), expected)
    for name, term in (("penalty", size_of_logits), ("augment", flipped)):
        with pytest.raises(UsageError, match=rf"{name}=<function .* needs a method describe\(\)"):
            fit(network(), random_points(), **ADAM, **{name: term}, checkpoint=tmp_path / "c")
        with pytest.raises(UsageError, match=rf"{name}=0.25 cannot be called; give an object of jostle.lowering"):
            fit(network(), random_points(), **ADAM, **{name: 0.25})
    assert not (tmp_path / "c").exists()


def test_names_of_terms():
    assert objective.describe_term("penalty", None, True) is None
    assert objective.describe_term("penalty", penalty(), True) == penalty().describe()
    assert objective.describe_term("penalty", len, False) == "len"


def test_bfloat16_trains_and_resumes_with_a_penalty(tmp_path):
    settings = ADAM | {"precision": "bfloat16", "clip": 0.5}
    whole, resumed = network(), network()
    expected = fit(whole, random_points(), **settings, **both())
    fit(resumed, random_points(), **(settings | {"max_epochs": 2}), **both(), checkpoint=tmp_path / "c")
    assert fit(resumed, random_points(), **settings, **both(), checkpoint=tmp_path / "c") == expected
    assert same_weights(whole, resumed)


def test_what_does_not_fit_is_one_clear_line():
    with pytest.raises(UsageError, match=r"tokens=patches:4 cannot cut inputs of shape \(5,\)"):
        fit(network(), random_points(), **ADAM, penalty=SensitivityPenalty())
