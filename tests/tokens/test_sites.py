"""Where models embed their words, and that only what is asked for changes there."""

import pytest
import torch
from torch import nn

import jostle
from jostle import Embeddings
from jostle.base.errors import UsageError
from jostle.tokens import Site
from jostle.tokens.sites import find_sites
from tests.tokens.made_up_texts import PAD, Bag, network, padded, sentences

PATHS = {
    "roberta": ("roberta.embeddings", "roberta.embeddings.word_embeddings"),
    "bert": ("bert.embeddings", "bert.embeddings.word_embeddings"),
    "distilbert": ("distilbert.embeddings", "distilbert.embeddings.word_embeddings"),
    "gpt2": ("transformer.drop", "transformer.wte"),
}
BATCH = {key: tensor for key, tensor in padded(sentences()).items() if key != "special_tokens_mask"}
SHAPE = (8, 12)


@pytest.mark.parametrize("kind", PATHS)
def test_the_modules_of_transformers_are_found(kind):
    after, before = (Site(network(kind), Embeddings(where)).path for where in ("after", "before"))
    assert (after, before) == PATHS[kind]
    bare = Site(network(kind, head=False), Embeddings())
    assert bare.path == PATHS[kind][0].partition(".")[2]


@pytest.mark.parametrize("name", jostle.models.names("text"))
def test_the_modules_of_the_zoo_are_found(name):
    model = jostle.models.create(name, vocabulary=20, dim=8, depth=1, seed=0).eval()
    assert Site(model, Embeddings()).module is model.embeddings
    assert Site(model, Embeddings("before")).module is model.get_input_embeddings()


@pytest.mark.parametrize("where", ["after", "before"])
@pytest.mark.parametrize("kind", PATHS)
def test_giving_back_what_came_changes_no_bit_and_leaves_no_trace(kind, where):
    model, seen = network(kind), []

    def look(embedded):
        seen.append(embedded.clone())
        return embedded.clone()

    with torch.inference_mode():
        plain = model(**BATCH).logits
        with Site(model, Embeddings(where)).edited(look, SHAPE):
            assert torch.equal(model(**BATCH).logits, plain)
        assert torch.equal(model(**BATCH).logits, plain)
    assert [tuple(embedded.shape) for embedded in seen] == [(8, 12, 16)]
    assert not any(module._forward_hooks for module in model.modules())


def test_what_is_before_and_after():
    model, seen = network("roberta"), {}
    for where in ("after", "before"):

        def look(embedded, where=where):
            seen[where] = embedded.clone()
            return embedded

        with torch.inference_mode(), Site(model, Embeddings(where)).edited(look, SHAPE):
            model(**BATCH)
    block = model.roberta.embeddings
    with torch.inference_mode():
        assert torch.equal(seen["before"], block.word_embeddings(BATCH["input_ids"]))
        assert torch.equal(seen["after"], block(input_ids=BATCH["input_ids"]))


def test_only_the_first_call_counts():
    """GPT-2 looks up type ids in the table of its words."""
    model, calls = network("gpt2"), []

    def look(embedded):
        calls.append(1)
        return embedded

    with torch.inference_mode(), Site(model, Embeddings("before")).edited(look, SHAPE):
        model(**BATCH, token_type_ids=torch.zeros(SHAPE, dtype=torch.int64))
    assert calls == [1]


class Wrapped(nn.Module):
    """A model whose parts can be chosen at will."""

    def __init__(self, answer=None, **parts):
        super().__init__()
        self.answer = answer
        for name, part in parts.items():
            setattr(self, name, part)

    def get_input_embeddings(self):
        return self.words

    def forward(self, input_ids):
        made = self.words(input_ids)
        return self.answer(made) if self.answer else made.mean(dim=1)


def test_a_module_may_be_named_and_give_out_several_things():
    class Pair(nn.Embedding):
        def forward(self, ids):
            return super().forward(ids), "more"

    model = Wrapped(lambda made: made[0].sum(dim=1) if made[1] == "more" else None, words=Pair(9, 3))
    ids = torch.arange(8).view(2, 4)
    with Site(model, Embeddings(module="words")).edited(lambda embedded: embedded * 2, (2, 4)):
        doubled = model(ids)
    assert torch.equal(doubled, 2 * model(ids))


def test_the_hook_is_gone_after_an_error_of_the_model():
    model = Wrapped(lambda made: 1 / 0, words=nn.Embedding(9, 3))
    with pytest.raises(ZeroDivisionError), Site(model, Embeddings("before")).edited(lambda e: e, (1, 1)):
        model(torch.zeros(1, 1, dtype=torch.int64))
    assert not model.words._forward_hooks


@pytest.mark.parametrize(
    ("model", "view", "message"),
    [
        (
            lambda x: x,
            Embeddings(),
            "model of type function has no embeddings to jostle: tokens=embeddings:after needs",
        ),
        (nn.Linear(2, 2), Embeddings(), "model (Linear) does not say which module embeds its words"),
        (Bag(), Embeddings(module="embedings"), "module='embedings' of Embeddings is not a module of model"),
        (Wrapped(words=nn.Embedding(9, 3)), Embeddings(), "or use where='before' for the output of 'words'"),
    ],
)
def test_models_whose_embeddings_cannot_be_found_are_one_clear_line(model, view, message):
    with pytest.raises(UsageError) as error:
        Site(model, view)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_positions_beside_words_are_not_taken_for_the_whole():
    model = Wrapped(embeddings=nn.Embedding(9, 3))
    model.get_input_embeddings = lambda: model.embeddings
    assert Site(model, Embeddings()).path == "embeddings"
    model.position_embeddings = nn.Embedding(9, 3)
    with pytest.raises(UsageError, match="no module of it is known to give out the embedded sequence"):
        Site(model, Embeddings())


@pytest.mark.parametrize(
    ("path", "shape", "message"),
    [
        (
            "embeddings.positions",
            (8, 11),
            r"gives out \(8, 12, 5\) of torch.float64, expected real numbers of shape \(8, 11",
        ),
        ("unused", (8, 12), "never calls its module 'unused'"),
    ],
)
def test_modules_that_will_not_do_are_one_clear_line(path, shape, message):
    model = Bag()
    model.unused = nn.Identity()
    with (
        pytest.raises(UsageError, match=message),
        torch.inference_mode(),
        Site(model, Embeddings(module=path), "bag").edited(lambda embedded: embedded, shape),
    ):
        model(BATCH["input_ids"])


def test_the_bag_of_the_tests_knows_its_padding():
    model, texts = Bag(), sentences()
    both = [padded(texts, side)["input_ids"] for side in ("left", "right")]
    assert model.pad == PAD
    assert torch.allclose(model(both[0]), model(both[1]))


class OneLayer(nn.Module):
    def __init__(self):
        super().__init__()
        layer = nn.Module()
        layer.mlp, layer.attn = nn.Linear(2, 2), nn.Linear(2, 2)
        self.h = nn.ModuleList([layer])


def test_a_model_of_one_layer_has_a_layer():
    assert find_sites(OneLayer(), "mlp") == ["h.0.mlp"]
    assert find_sites(OneLayer(), "residual") == ["h.0"]


def test_a_kind_that_a_model_lacks_is_not_offered_again():
    with pytest.raises(UsageError) as error:
        find_sites(nn.Linear(2, 2), "mlp")
    assert str(error.value).startswith("site='mlp' is not found in Linear: give a path or pattern")


def test_a_site_that_is_no_text_is_one_line():
    with pytest.raises(jostle.UsageError, match="site=False must be a text"):
        jostle.depth(nn.Linear(2, 2), torch.ones(3, 2), site=False)
