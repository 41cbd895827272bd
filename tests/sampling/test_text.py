"""Text from end to end: against loops over single sentences without padding, against closed forms, in any batch."""

import itertools
import math

import numpy as np
import pytest
import torch
from torch import nn

import jostle
from jostle import Deletion, Embeddings, GaussianNoise, Grid, ReplaceBy, UniformToken, Until, Words
from jostle.base.errors import UsageError
from jostle.base.randomness import Stream
from jostle.tokens import Site
from tests.tokens.made_up_texts import LENGTHS, PAD, VOCABULARY, Bag, network, padded, sentences

TEXTS, STD, SEED = sentences(), 2.0, 3
ALL = len(LENGTHS)
NO_PADDING = torch.arange(PAD + 1, VOCABULARY)


def noise(i, t, r, dim=16):
    """The noise of one trial, made for it alone."""
    uniforms = Stream(SEED, "noise").uniforms([i], [t], [r], dim)
    return GaussianNoise(STD).apply(torch.zeros(1, dim), uniforms)[0]


def measured(model, inputs, tokens, perturbation=GaussianNoise(STD), plan=Grid(2), **options):  # noqa: B008
    return jostle.measure(model, inputs, tokens=tokens, perturbation=perturbation, plan=plan, seed=SEED, **options)


def with_positions(mapping):
    """Positions that do not count padding, without which GPT-2 cannot be padded on the left."""
    return mapping | {"position_ids": (mapping["attention_mask"].cumsum(dim=1) - 1).clamp(min=0)}


def flips_one_by_one(kind, where):
    """(texts,): the share of flips of each, by a loop over sentences and tokens, without padding or hooks."""
    model, shares = network(kind), []
    for i, ids in enumerate(TEXTS):
        clean = int(model(input_ids=ids[None]).logits.argmax())
        flips = []
        for t in range(len(ids)):
            if kind == "gpt2" or where == "before":  # GPT-2 adds its positions last, so noise may as well go first
                vectors = model.get_input_embeddings()(ids)[None].clone()
                vectors[0, t] += noise(i, t, 0)
                logits = model(inputs_embeds=vectors, attention_mask=torch.ones(1, len(ids))).logits
                if kind == "gpt2":  # it does not look for the end of embeddings: without padding that is the last
                    assert logits.shape == (1, 3)
            else:
                base = getattr(model, kind)
                vectors = base.embeddings(input_ids=ids[None]).clone()
                vectors[0, t] += noise(i, t, 0)
                hidden = base.encoder(vectors).last_hidden_state
                logits = model.classifier(hidden) if kind == "roberta" else model.classifier(base.pooler(hidden))
            flips.append(int(logits.argmax()) != clean)
        shares.append(np.mean(flips))
    return shares


@pytest.mark.parametrize(
    ("kind", "where"),
    [("roberta", "after"), ("roberta", "before"), ("bert", "after"), ("gpt2", "after")],
)
def test_flips_are_those_of_a_loop_over_single_sentences(kind, where):
    with torch.no_grad():
        expected = flips_one_by_one(kind, where)
    assert 0.05 < np.mean(expected) < 0.95
    for batch_size in (5, 128):
        found = measured(network(kind), padded(TEXTS), Embeddings(where), plan=Grid(1), batch_size=batch_size)
        assert found.per_input.tolist() == pytest.approx(expected, abs=1e-12)
        assert found.trials == sum(LENGTHS)
        assert found.warnings == []


@pytest.mark.parametrize(
    ("case", "plan"),
    [
        ("gpt2", Grid(1)),
        ("encoder", Grid(1)),
        ("bag", Grid(1)),
        ("bag", Until(half_width=0.2)),
        ("bag-ids", Until(half_width=0.2)),
    ],
)
def test_left_and_right_padding_of_any_width_are_the_same(case, plan):
    def given(side, width):
        mapping = padded(TEXTS, side, width)
        if case == "gpt2":
            return network("gpt2"), with_positions(mapping)
        if case == "encoder":
            return network("gpt2", head=False), with_positions(mapping)
        return Bag(), mapping if case == "bag" else mapping["input_ids"]

    response = "absolute-change" if case == "encoder" else "flip"
    runs = [
        measured(*given(side, width), Embeddings(), plan=plan, response=response, batch_size=size)
        for side, width, size in (("right", 12, 128), ("left", 12, 9), ("left", 16, 50))
    ]
    for run in runs[1:]:
        assert run.value == pytest.approx(runs[0].value, rel=1e-9)
        assert run.per_input == pytest.approx(runs[0].per_input, rel=1e-9, nan_ok=True)
        assert run.trials == runs[0].trials
        assert run.profile.counts[:12].tolist() == runs[0].profile.counts.tolist()
        assert run.warnings == []


@pytest.mark.parametrize("name", jostle.models.names("text"))
def test_every_text_model_of_the_zoo_can_be_jostled_padded_on_either_side(name):
    sizes = {"heads": 2, "mlp_dim": 16} if name in ("text-encoder", "text-decoder") else {}
    model = jostle.models.create(name, vocabulary=VOCABULARY + 3, dim=8, depth=1, seed=0, **sizes).double().eval()
    texts = [text + 3 for text in TEXTS]  # 0 is padding there
    left, right = (padded(texts, side, width=14, pad=0) for side in ("left", "right"))
    options = {"response": "logit-change", "plan": Grid(1), "batch_size": 20}
    runs = [measured(model, inputs, Embeddings(), **options) for inputs in (right["input_ids"], right, left)]
    assert runs[0].value > 0
    for run in runs[1:]:
        assert run.per_input.tolist() == pytest.approx(runs[0].per_input.tolist(), rel=1e-9)
        assert run.warnings == []


@pytest.mark.parametrize("where", ["after", "before"])
def test_a_linear_bag_has_a_closed_form(where):
    texts = sentences(np.random.Generator(np.random.PCG64(0)).integers(3, 14, size=40).tolist())
    model, draws = Bag(), 20
    exact = model.flip_probability(texts, std=4.0).numpy()
    lengths = np.array([len(text) for text in texts])
    found = measured(model, padded(texts), Embeddings(where), GaussianNoise(4.0), Grid(draws))
    errors = np.sqrt(exact * (1 - exact) / (lengths * draws))
    assert abs(found.value - exact.mean()) < 4 * np.sqrt((errors**2).sum()) / len(texts)
    assert (np.abs(found.per_input - exact) < 5 * errors + 1e-3).all()
    assert 0.05 < exact.mean() < 0.5
    until = measured(model, padded(texts), Embeddings(where), GaussianNoise(4.0), Until(half_width=0.03))
    assert exact.mean() in until.dataset
    micro = measured(model, padded(texts), Embeddings(where), GaussianNoise(4.0), Grid(draws), average="micro")
    by_token = (exact * lengths).sum() / lengths.sum()
    spread = np.sqrt((errors**2 * lengths**2).sum()) / lengths.sum()
    assert abs(micro.value - by_token) < 4 * spread


def test_no_noise_is_exactly_nothing_and_costs_no_pass():
    for perturbation in (GaussianNoise(0), jostle.Sphere(0)):
        for response in ("flip", "logit-change"):
            found = measured(network("roberta"), padded(TEXTS), Embeddings(), perturbation, Grid(1), response=response)
            assert (found.value, found.low, found.high) == (0.0, 0.0, 0.0)
            # clean passes, the check of steadiness, the self-check twice, and one look at an embedding
            assert found.passes == ALL + 3 * ALL + 2 * ALL + 1


def test_an_embedding_that_comes_out_as_it_was_has_no_change():
    model = Bag(dim=2)
    with torch.no_grad():
        model.embeddings.positions.weight.zero_()
        model.embeddings.words.weight[7:] = torch.tensor([1.5, -2.5])
    texts = [torch.tensor([5, 7, 9]), torch.tensor([8, 6])]
    found = measured(model, padded(texts), Embeddings(), ReplaceBy([1.5, -2.5]), Grid(1), response="logit-change")
    step = ((torch.tensor([1.5, -2.5]) - model.embeddings.words.weight[[5, 6]]) @ model.weights).detach()
    expected = [float(step[0].abs()) / 3, 0.0, 0.0], [0.0, float(step[1].abs()) / 2]
    assert found.per_input.tolist() == pytest.approx([np.mean(row) for row in expected])
    assert found.profile.values.tolist() == pytest.approx([expected[0][0] / 2, expected[1][1] / 2, 0.0])

    class Restless(Bag):
        """Never answers the same twice: what is 0 here is 0 by definition."""

        def forward(self, input_ids, attention_mask=None):
            return super().forward(input_ids, attention_mask) + 10 + torch.rand(1)

    restless = Restless(dim=2)
    restless.load_state_dict(model.state_dict())
    with pytest.warns(jostle.JostleWarning, match="answers the same input differently twice"):
        found = measured(
            restless, padded(texts), Embeddings(), ReplaceBy([1.5, -2.5]), Grid(1), response="logit-change"
        )
    assert (found.profile.values[0] > 0, found.profile.values[1] > 0, found.profile.values[2]) == (True, True, 0.0)


@pytest.mark.parametrize(("side", "special"), [("left", True), ("right", False)])
def test_deleted_and_replaced_words_are_those_of_a_loop(side, special):
    model, mapping = network("gpt2"), padded(TEXTS, side)
    mapping = with_positions(mapping)
    where = [[t for t in range(len(ids)) if special or int(ids[t]) not in (0, 2)] for ids in TEXTS]
    with torch.no_grad():
        clean = [int(model(input_ids=ids[None]).logits.argmax()) for ids in TEXTS]
        for perturbation in (Deletion(), ReplaceBy(9)):
            expected = []
            for ids, tokens, before in zip(TEXTS, where, clean, strict=True):
                flips = []
                for t in tokens:
                    changed = torch.cat([ids[:t], ids[t + 1 :]])
                    if perturbation.describe() != "deletion":
                        changed = ids.clone()
                        changed[t] = 9
                    flips.append(int(model(input_ids=changed[None]).logits.argmax()) != before)
                expected.append(np.mean(flips))
            found = measured(model, mapping, Words(special=special), perturbation, Grid(1), batch_size=6)
            assert found.per_input.tolist() == pytest.approx(expected)
            assert found.trials == sum(map(len, where))
            assert (found.low, found.high) == (found.value, found.value)
            assert 0 < found.value < 1


def test_uniform_words_of_a_bag_are_those_of_an_enumeration():
    model, vocabulary = Bag(), torch.arange(4, 12)
    with torch.no_grad():
        clean = [float(model(ids[None])) for ids in TEXTS]
        exact = []
        for ids, before in zip(TEXTS, clean, strict=True):
            flips = []
            for t, new in itertools.product(range(len(ids)), vocabulary.tolist()):
                changed = ids.clone()
                changed[t] = new
                flips.append((float(model(changed[None])) > 0) != (before > 0))
            exact.append(np.mean(flips))
    found = measured(model, padded(TEXTS)["input_ids"], Words(), UniformToken(vocabulary), Grid(60))
    spread = math.sqrt(sum(p * (1 - p) / (60 * n) for p, n in zip(exact, LENGTHS, strict=True))) / ALL
    assert abs(found.value - np.mean(exact)) < 4 * spread
    assert 0.02 < np.mean(exact) < 0.98


def test_models_of_different_widths_share_their_inputs_and_noise():
    models = {"narrow": Bag(dim=3), "wide": Bag(dim=9, seed=1), "roberta": network("roberta")}
    mapping = padded(TEXTS)
    together = jostle.compare(
        models, mapping, tokens=Embeddings(), perturbation=GaussianNoise(STD), plan=Grid(2), seed=SEED
    )
    for name, model in models.items():
        alone = measured(model, mapping, Embeddings())
        assert together[name].per_input.tolist() == pytest.approx(alone.per_input.tolist(), abs=1e-12)
    assert together.difference("narrow", "wide").value == pytest.approx(
        together["narrow"].value - together["wide"].value
    )


def test_padding_and_with_it_special_tokens_are_never_jostled():
    class Watched(Bag):
        def forward(self, input_ids, attention_mask=None):
            assert (input_ids[attention_mask == 0] == PAD).all()
            assert attention_mask.any(dim=0)[[0, -1]].all() or input_ids.shape[1] in (12, 14)
            return super().forward(input_ids, attention_mask)

    found = measured(Watched(), padded(TEXTS, "left", 14), Words(special=False), UniformToken(NO_PADDING))
    assert found.profile.counts[0] == 0  # the first token of every text is special
    assert found.trials == 2 * (sum(LENGTHS) - 2 * ALL)


def test_profiles_are_aligned_at_the_start_or_at_the_end():
    counts = {}
    for side, alignment in itertools.product(("left", "right"), ("left", "right")):
        found = measured(Bag(), padded(TEXTS, side, 14), Embeddings(alignment=alignment))
        counts[side, alignment] = found.profile.counts.tolist()
        assert found.settings.tokens == "embeddings:after" + ("" if alignment == "left" else ",alignment=right")
    reach = [2 * sum(length > t for length in LENGTHS) for t in range(14)]
    assert counts["left", "left"] == counts["right", "left"] == reach
    assert counts["left", "right"] == counts["right", "right"] == reach[::-1]

    class LastToken(Bag):
        """Looks at the last token alone."""

        def forward(self, input_ids, attention_mask=None):
            real = attention_mask.bool()
            last = real.shape[1] - 1 - real.flip(1).long().argmax(dim=1)
            return (self.embeddings(input_ids, real)[torch.arange(len(last)), last] @ self.weights) + self.bias

    found = measured(LastToken(), padded(TEXTS), Embeddings(alignment="right"), GaussianNoise(30.0), Grid(9))
    assert found.profile.values[-1] > 0.2
    assert (found.profile.values[:-1] == 0).all()


def test_both_averages_of_texts_whose_flips_are_known():
    """Texts of one token always flip, texts of nine never do."""

    class Short(nn.Module):
        pad = 0

        def forward(self, input_ids):
            is_short = (input_ids != 0).sum(dim=1) == 1
            return torch.where(is_short & (input_ids == 5).any(dim=1), -1.0, 1.0)

    ids = torch.zeros(10, 9, dtype=torch.int64)
    ids[:, 0], ids[:4, :] = 3, 3
    options = {"tokens": Words(), "perturbation": ReplaceBy(5), "seed": SEED}
    macro, micro = (
        jostle.measure(Short().eval(), ids, plan=Grid(1), average=average, **options) for average in ("macro", "micro")
    )
    assert (macro.value, micro.value) == (0.6, 6 / (6 + 36))
    assert (micro.low, micro.high) == (micro.value, micro.value)
    assert micro.per_input.tolist() == macro.per_input.tolist()
    assert "average=micro" in str(micro)
    assert "average" not in str(macro)
    assert (macro.settings.to_dict().get("average"), micro.settings.to_dict()["average"]) == (None, "micro")
    both = (Until(half_width=0.05), {"macro": 0.6, "micro": 1 / 7})
    for average, exact in both[1].items():
        found = jostle.measure(Short().eval(), ids, plan=both[0], average=average, **options)
        assert abs(found.value - exact) < 4 * math.sqrt(exact * (1 - exact) / found.trials)
        assert exact in found.dataset
    assert (found.population.low, found.population.high) == (0.0, 1.0)
    with pytest.raises(UsageError, match="average='micro' and target='population' need plan=Grid"):
        jostle.measure(Short().eval(), ids, plan=both[0], average="micro", target="population", **options)
    with pytest.raises(UsageError, match="average='mean' must be macro"):
        jostle.measure(Short().eval(), ids, plan=both[0], average="mean", **options)


def test_a_model_that_counts_positions_from_its_padding_keeps_it_and_is_warned_of():
    mapping = padded(TEXTS, "left")
    with pytest.warns(jostle.JostleWarning, match="answers differently if padding is cut off"):
        found = measured(network("gpt2"), mapping, Embeddings())
    whole, model = [], network("gpt2")
    with torch.no_grad():
        for i, ids in enumerate(mapping["input_ids"]):
            one = {"input_ids": ids[None], "attention_mask": mapping["attention_mask"][i : i + 1]}
            whole.append(int(model(**one).logits.argmax()))
    # the clean predictions are those of the model as given, with its padding
    from jostle.responses import Flip
    from jostle.sampling import TrialEvaluation
    from jostle.tokens import Inputs, TokenFunction

    function = TokenFunction(model, Inputs(mapping, Embeddings()))
    evaluation = TrialEvaluation([function], GaussianNoise(STD), Flip(), SEED, 7)
    with function.evaluating():
        evaluation.check()
        assert evaluation.batching.trims is False
        assert evaluation.references[0].of(np.arange(ALL)).tolist() == whole
    assert found.trials == 2 * sum(LENGTHS)


def test_a_model_that_takes_one_width_only_is_given_it():
    weights = torch.randn(12, 2)

    def rigid(input_ids, attention_mask):
        return (input_ids * attention_mask).double() @ weights

    with pytest.warns(jostle.JostleWarning, match="answers differently if padding is cut off"):
        found = measured(rigid, padded(TEXTS), Words(), UniformToken(NO_PADDING))
    assert found.trials == 2 * sum(LENGTHS)


def test_a_model_that_cannot_be_spliced_is_refused_by_name():
    class Proud(Bag):
        """Answers otherwise when someone listens."""

        def forward(self, input_ids, attention_mask=None):
            listened = len(self.embeddings._forward_hooks)
            return super().forward(input_ids, attention_mask) + listened

    with pytest.raises(UsageError, match=r"proud answers differently when one of its embeddings is replaced by itself"):
        measured(Proud(), padded(TEXTS), Embeddings(), name="proud")


@pytest.mark.parametrize(
    ("tokens", "perturbation", "message"),
    [
        (Embeddings(), UniformToken(9), "tokens of 1 numbers, the inputs' tokens have 16"),
        (Embeddings(), Deletion(), "perturbation=deletion takes tokens out of texts: use tokens=words"),
        (jostle.Rows(key="input_ids"), Deletion(), "use tokens=words, not rows:key=input_ids"),
        (Words(), GaussianNoise(1), "needs real-valued tokens"),
        (Words(), UniformToken(VOCABULARY), "may put the padding id 1 into a text: give ids of words"),
        (Words(), ReplaceBy(PAD), "may put the padding id 1 into a text"),
    ],
)
def test_perturbations_that_do_not_fit_are_one_clear_line(tokens, perturbation, message):
    with pytest.raises(UsageError) as error:
        measured(network("roberta"), padded(TEXTS), tokens, perturbation)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_texts_that_deletion_would_leave_empty_or_that_have_no_padding_are_one_clear_line():
    model = lambda input_ids: input_ids.double()  # noqa: E731
    with pytest.raises(UsageError, match=r"would leave 1 of 2 texts empty \(first: input 1, of one token\)"):
        measured(model, padded([torch.tensor([5, 6]), torch.tensor([7])]), Words(), Deletion())
    ids = torch.full((3, 4), 5)
    with pytest.raises(UsageError, match="which token id is padding"):
        measured(model, ids, Words(), Deletion(), Grid(1))
    found = measured(lambda x: 10 * (x != 7).sum(dim=1) - 35, ids, Words(), Deletion(pad=7), Grid(1))
    assert found.value == 1.0


@pytest.mark.parametrize(("where", "special"), [("after", True), ("before", True), ("after", False)])
def test_noise_in_a_whole_text_has_a_closed_form(where, special):
    """A bag of n tokens, m of which move: the logit moves by N(0, std^2 m |w|^2 / n^2)."""
    lengths = np.random.Generator(np.random.PCG64(0)).integers(3, 14, size=40)
    texts, model, draws, std = sentences(lengths.tolist()), Bag(), 60, 1.5
    moved = lengths if special else lengths - 2
    with torch.no_grad():
        logits = np.array([float(model(ids[None])[0]) for ids in texts])
    z = np.abs(logits) * lengths / (std * float(model.weights.detach().norm()) * np.sqrt(moved))
    exact = np.array([0.5 * math.erfc(each / math.sqrt(2)) for each in z])
    view = Embeddings(where, whole=True, special=special)
    found = measured(model, padded(texts, "left", 15), view, GaussianNoise(std), Grid(draws))
    errors = np.sqrt(exact * (1 - exact) / draws)
    assert 0.05 < exact.mean() < 0.5
    assert abs(found.value - exact.mean()) < 4 * np.sqrt((errors**2).sum()) / len(texts)
    assert (np.abs(found.per_input - exact) < 5 * errors + 1e-2).all()
    assert found.trials == len(texts) * draws
    assert found.profile.values.tolist() == pytest.approx([found.value])
    assert exact.mean() in measured(model, padded(texts), view, GaussianNoise(std), Until(half_width=0.03)).dataset
    options = "whole=true" if special else "whole=true,special=false"
    assert found.settings.tokens == f"embeddings:{where},{options}"


@pytest.mark.parametrize(("kind", "name"), [("roberta", None), ("zoo", "text-lstm"), ("zoo", "text-decoder")])
def test_a_whole_text_moves_as_its_tokens_would_and_its_padding_stays(kind, name):
    """Every vector gets the noise of its own trial: a loop over single texts without padding."""
    if kind == "zoo":
        sizes = {"heads": 2, "mlp_dim": 16} if name == "text-decoder" else {}
        model = jostle.models.create(name, vocabulary=VOCABULARY + 3, dim=16, depth=1, seed=0, **sizes).double().eval()
        texts, pad, path = [text + 3 for text in TEXTS], 0, "embeddings"
    else:
        model, texts, pad, path = network("roberta"), TEXTS, PAD, "roberta.embeddings"
    expected = []
    for i, ids in enumerate(texts):
        noises = torch.stack([noise(i, t, 0) for t in range(len(ids))])
        hook = model.get_submodule(path).register_forward_hook(lambda _, __, out, noises=noises: out + noises)
        with torch.no_grad():
            moved = model(input_ids=ids[None])
        hook.remove()
        with torch.no_grad():
            still = model(input_ids=ids[None])
        moved, still = (getattr(each, "logits", each) for each in (moved, still))
        expected.append(float((moved - still).abs().max()))
    runs = [
        measured(model, padded(texts, side, width, pad), view, plan=Grid(1), response="logit-change", batch_size=size)
        for side, width, size, view in (
            ("right", 12, 128, Embeddings(whole=True)),
            ("left" if name else "right", 15, 3, "embeddings:whole=true"),
        )
    ]
    for run in runs:
        assert run.per_input.tolist() == pytest.approx(expected, rel=1e-9)
        assert run.warnings == []
    few = measured(model, padded(texts, pad=pad), Embeddings(whole=True), GaussianNoise(0), response="logit-change")
    assert few.value == 0.0


def test_what_a_whole_text_cannot_be_is_one_clear_line():
    with pytest.raises(UsageError, match=r"alignment='right' of Embeddings\(whole=True\)"):
        Embeddings(whole=True, alignment="right")
    with pytest.raises(UsageError, match="whole=1 must be True or False"):
        Embeddings(whole=1)
    with pytest.raises(UsageError, match="embeddings:after,whole=true: here one token is moved at a time"):
        Site(Bag(), Embeddings(whole=True))
