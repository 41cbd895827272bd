"""The penalty on texts: closed forms, the gradient, and that nothing but one token of each text moves."""

import pytest
import torch

import jostle
from jostle import Deletion, Embeddings, NoiseAugmentation, SensitivityPenalty, UniformToken, Words
from jostle.base.errors import UsageError
from tests.tokens.made_up_texts import LENGTHS, PAD, VOCABULARY, Bag, network, padded, sentences

TEXTS = sentences()


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("where", ["after", "before"])
@pytest.mark.parametrize("side", ["left", "right"])
def test_a_linear_bag_has_a_closed_form(where, side):
    """The logit moves by (noise . w) / length, so the mean square is std^2 |w|^2 / length^2."""
    lengths = [2, 5, 9] * 1000
    model, texts = Bag(), sentences(lengths)
    penalty = SensitivityPenalty(tokens=Embeddings(where), std=1.5, strength=1.0)
    found = float(penalty(model, padded(texts, side), generator=generator()).detach())
    norm = float(model.weights.detach().norm())
    exact = (1.5 * norm) ** 2 * sum(length**-2.0 for length in lengths) / len(lengths)
    spread = (1.5 * norm) ** 2 * (2 * sum(length**-4.0 for length in lengths)) ** 0.5 / len(lengths)
    assert abs(found - exact) < 4 * spread
    assert spread < 0.05 * exact
    alone = float(penalty(model, padded(texts, side)["input_ids"], generator=generator()).detach())
    assert alone == pytest.approx(found)
    assert penalty.passes == 2 * 6 * len(lengths)


def test_the_gradient_goes_through_both_passes_and_one_token_of_each_text():
    model, batch, seen = Bag(), padded(TEXTS), []
    model.embeddings.register_forward_hook(lambda module, given, output: seen.append(output))
    penalty = SensitivityPenalty(tokens=Embeddings(), std=1.0, strength=1.0)
    term = penalty(model, batch, generator=generator())
    term.backward()
    assert model.weights.grad.abs().max() > 0
    step = 1e-6
    with torch.no_grad():
        slope = model.weights.grad[0].clone()
        model.weights[0] += step
        above = penalty(model, batch, generator=generator())
        model.weights[0] -= 2 * step
        below = penalty(model, batch, generator=generator())
    assert float(slope) == pytest.approx(float(above - below) / (2 * step), rel=1e-5)


@pytest.mark.parametrize("where", ["after", "before"])
def test_only_one_real_token_moves_and_special_ones_only_if_they_may(where):
    model, moved = network("roberta"), []
    site = jostle.tokens.Site(model, Embeddings(where)).module
    for special in (True, False):
        penalty = SensitivityPenalty(tokens=Embeddings(where, special=special), std=2.0)
        batch, chosen = padded(TEXTS), set()
        for seed in range(12):
            seen = []
            with torch.no_grad():
                plain = site.register_forward_hook(lambda module, given, output, seen=seen: seen.append(output.clone()))
                jostled, inside = penalty._mover.move_for(model, batch, None, generator(seed))
                with inside:
                    late = site.register_forward_hook(lambda m, g, output, seen=seen: seen.append(output.clone()))
                    model(jostled["input_ids"], jostled["attention_mask"])
                late.remove()
                plain.remove()
            changed = (seen[0] != seen[1]).any(dim=2)
            assert (changed.sum(dim=1) == 1).all()
            allowed = batch["attention_mask"].bool()
            if not special:
                allowed &= ~batch["special_tokens_mask"].bool()
            assert not (changed & ~allowed).any()
            chosen |= set(changed.nonzero()[:, 1].tolist())
            moved.append(changed)
        assert len(chosen) > 5
    assert not any(module._forward_hooks for module in model.modules())


def test_clean_logits_handed_in_change_nothing():
    model, batch = network("roberta"), padded(TEXTS)
    penalty = SensitivityPenalty(tokens=Embeddings(), std=1.0)
    with torch.no_grad():
        clean = model(batch["input_ids"], batch["attention_mask"]).logits
        one, two = (float(penalty(model, batch, generator=generator(), clean=given)) for given in (None, clean))
    assert one == pytest.approx(two, rel=1e-9)


def test_the_noise_is_the_same_whatever_dropout_draws_on_the_way():
    model, batch, steps = network("roberta"), padded(TEXTS), []
    words = model.get_input_embeddings()
    before = words.register_forward_hook(lambda module, given, output: steps.append(-output.clone()))
    penalty = SensitivityPenalty(tokens=Embeddings("before"), std=1.0)
    model.train()
    try:
        with torch.no_grad():
            for given in (None, torch.zeros(len(TEXTS), 3)):
                steps.clear()
                torch.manual_seed(5)
                jostled, inside = penalty._mover.move_for(model, batch, None, None)
                if given is None:
                    model(batch["input_ids"], batch["attention_mask"])  # dropout draws from the global generator
                with inside:
                    after = words.register_forward_hook(lambda module, given, output: steps.append(output.clone()))
                    model(jostled["input_ids"], jostled["attention_mask"])
                after.remove()
                noise = steps[-1] + steps[-2]
                expected = noise if given is None else expected  # noqa: F821
                assert torch.equal(noise, expected)
                assert (noise != 0).any(dim=2).sum(dim=1).tolist() == [1] * len(TEXTS)
    finally:
        model.eval()
        before.remove()


@pytest.mark.parametrize("side", ["left", "right"])
def test_words_are_replaced_and_deleted(side):
    batch, lengths, seen = padded(TEXTS, side), torch.tensor(LENGTHS), []

    def model(input_ids, attention_mask):
        seen.append((input_ids, attention_mask))
        return (input_ids * attention_mask).sum(dim=1).double()

    SensitivityPenalty(tokens=Words(special=False), perturbation=Deletion())(model, batch, generator=generator())
    ids, mask = seen[-1]
    assert (mask.sum(dim=1) == lengths - 1).all()
    assert (ids[mask == 0] == PAD).all()
    for row, text in enumerate(TEXTS):
        kept = ids[row][mask[row] == 1].tolist()
        assert kept in [text[:t].tolist() + text[t + 1 :].tolist() for t in range(1, len(text) - 1)]
    words = UniformToken(torch.arange(4, VOCABULARY))
    SensitivityPenalty(tokens=Words(), perturbation=words)(model, batch, generator=generator())
    assert ((seen[-1][0] != batch["input_ids"]).sum(dim=1) <= 1).all()
    assert (seen[-1][0] != batch["input_ids"]).any()
    assert torch.equal(seen[-1][1], batch["attention_mask"])


def test_no_noise_and_wrong_use():
    model, batch = Bag(), padded(TEXTS)
    assert float(SensitivityPenalty(tokens=Embeddings(), std=0.0)(model, batch)) == 0.0
    penalty = SensitivityPenalty(tokens="embeddings:before,special=false", std=1.0)
    assert "tokens=embeddings:before,special=false" in penalty.describe()
    with pytest.raises(UsageError, match="tokens=words of NoiseAugmentation: token ids take no noise"):
        NoiseAugmentation(std=1.0, tokens=Words())
    with pytest.raises(UsageError, match="mode='append' of NoiseAugmentation: embeddings inside a model can only be"):
        NoiseAugmentation(std=1.0, tokens=Embeddings(), mode="append")
    with pytest.raises(UsageError, match=r"are inside the model: write with augment\.inside"):
        NoiseAugmentation(std=1.0, tokens=Embeddings())(batch)
    with pytest.raises(UsageError, match=r"the noise is added to inputs, call augment\(inputs, labels\)"):
        NoiseAugmentation(std=1.0).inside(model, batch)
    with pytest.raises(UsageError, match="needs real-valued tokens"):
        SensitivityPenalty(tokens=Words(), std=1.0)(model, batch)
    with pytest.raises(UsageError, match="has no embeddings to jostle"):
        SensitivityPenalty(tokens=Embeddings(), std=1.0)(lambda **batch: batch["input_ids"].double(), batch)


def noise_inside(augment, model, batch, seed=0):
    """What the augmentation adds to the output of the embedding block, (batch, tokens, dim)."""
    seen = []
    before = model.embeddings.register_forward_hook(lambda module, given, output: seen.append(output.detach().clone()))
    with augment.inside(model, batch, generator=generator(seed)):
        after = model.embeddings.register_forward_hook(
            lambda module, given, output: seen.append(output.detach().clone())
        )
        model(**{key: value for key, value in batch.items() if key != "special_tokens_mask"})
    before.remove()
    after.remove()
    return seen[1] - seen[0]


@pytest.mark.parametrize("side", ["left", "right"])
def test_an_augmentation_inside_the_model_moves_all_real_tokens_or_one(side):
    model, batch = Bag(), padded(TEXTS, side)
    real = batch["attention_mask"].bool()
    everywhere = noise_inside(NoiseAugmentation(std=0.7, tokens=Embeddings(whole=True)), model, batch)
    assert torch.equal((everywhere != 0).any(dim=2), real)
    one = noise_inside(NoiseAugmentation(std=0.7, tokens=Embeddings()), model, batch)
    assert (one != 0).any(dim=2).sum(dim=1).tolist() == [1] * len(TEXTS)
    assert not (one != 0).any(dim=2)[~real].any()
    many = padded(sentences([6] * 4000), side)
    spread = float(noise_inside(NoiseAugmentation(std=0.7, tokens=Embeddings(whole=True)), model, many).std())
    numbers = many["input_ids"].numel() * everywhere.shape[2]
    assert abs(spread - 0.7) < 4 * 0.7 / (2 * numbers) ** 0.5


def test_an_augmentation_inside_the_model_of_a_share_of_the_texts_and_of_none():
    model, batch = Bag(), padded(sentences([4] * 2000))
    noise = noise_inside(NoiseAugmentation(std=1.0, share=0.3, tokens=Embeddings(whole=True)), model, batch)
    moved = (noise != 0).any(dim=2)
    assert torch.equal(moved.any(dim=1), moved.all(dim=1))
    assert abs(float(moved.any(dim=1).double().mean()) - 0.3) < 4 * (0.21 / 2000) ** 0.5
    for nothing in ({"std": 0.0}, {"std": 1.0, "share": 0.0}):
        assert not noise_inside(NoiseAugmentation(tokens=Embeddings(whole=True), **nothing), model, batch).any()


def test_fit_trains_on_noisy_embeddings_and_resumes_bit_for_bit(tmp_path):
    ids = torch.randint(1, 30, (24, 7), generator=generator())
    data = jostle.data.Dataset("texts", ids, ids[:, 0] % 2, classes=2)
    augment = NoiseAugmentation(std=0.5, tokens=Embeddings(whole=True))

    def trained(epochs, checkpoint=None, noise=augment):
        model = jostle.models.create("text-lstm", vocabulary=30, dim=8, depth=1, seed=0)
        fit = {"lr": 1e-2, "batch_size": 8, "max_epochs": epochs, "augment": noise, "checkpoint": checkpoint}
        jostle.training.fit(model, data, optimizer="adam", **fit)
        return torch.cat([parameter.detach().flatten() for parameter in model.parameters()])

    once = trained(4)
    assert not torch.equal(once, trained(4, noise=None))
    trained(2, tmp_path / "run")
    assert torch.equal(once, trained(4, tmp_path / "run"))
    model = jostle.models.create("text-lstm", vocabulary=30, dim=8, depth=1, seed=0)
    penalty = SensitivityPenalty(tokens=Embeddings(), std=1.0)
    with pytest.raises(UsageError, match="the penalty would not see its noise"):
        jostle.training.fit(model, data, optimizer="adam", lr=0.1, max_epochs=1, augment=augment, penalty=penalty)
