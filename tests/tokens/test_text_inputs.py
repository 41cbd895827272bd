"""Reading texts: padding, masks, special tokens, and what a model cannot take."""

import numpy as np
import pytest
import torch

import jostle
from jostle import Embeddings, Rows, Words
from jostle.base.errors import UsageError
from jostle.tokens import Inputs, TokenFunction
from tests.tokens.made_up_texts import LENGTHS, PAD, Bag, network, padded, sentences

TEXTS = sentences()
ALL = len(TEXTS)


def plain(side="right"):
    return padded(TEXTS, side)


@pytest.mark.parametrize("side", ["left", "right"])
def test_padding_is_found_from_the_mask_or_from_the_padding_id(side):
    mapping = plain(side)
    for inputs in (Inputs(mapping, Words()), Inputs(mapping["input_ids"], Words(), pad=PAD)):
        assert inputs.padding.lengths.tolist() == LENGTHS
        assert inputs.padding.side == side
        assert inputs.token_counts.tolist() == LENGTHS
        assert inputs.pad == PAD
    assert Inputs(mapping["input_ids"], Words()).mask is None  # nobody says what padding is


def test_a_dataset_of_texts_is_read_like_a_mapping():
    mapping = plain()
    items = [{key: tensor[row] for key, tensor in mapping.items()} for row in range(len(TEXTS))]
    held = Inputs(items, Embeddings(special=False))
    assert (held.mask == Inputs(mapping, Embeddings(special=False)).mask).all()
    batch = held.batch(np.array([2, 0]), window=(0, 4))
    assert torch.equal(batch["input_ids"], mapping["input_ids"][[2, 0], :4])


def test_special_tokens_and_the_given_mask_only_take_away():
    mapping = plain("left")
    given = torch.ones(ALL, 12)
    given[:, -3:] = 0
    given[[0, 7], -2] = 1  # texts of three tokens keep the one in the middle
    real, special = mapping["attention_mask"].bool(), mapping["special_tokens_mask"].bool()
    assert (Inputs(mapping, Words(), given).mask == (real & given.bool()).numpy()).all()
    assert (Inputs(mapping, Words(special=False)).mask == (real & ~special).numpy()).all()
    both = Inputs({key: part[[0, 1, 3]] for key, part in mapping.items()}, Words(special=False), given[[0, 1, 3]])
    assert (both.mask == (real & ~special & given.bool()).numpy()[[0, 1, 3]]).all()


@pytest.mark.parametrize("view", [Words(), Rows(key="input_ids"), Embeddings()])
def test_the_mask_of_special_tokens_is_not_given_to_the_model(view):
    inputs = Inputs(plain(), view)
    assert set(inputs.arguments(inputs.batch(np.array([0])))[1]) == {"input_ids", "attention_mask"}


def test_a_window_cuts_every_entry_with_a_column_a_token_and_no_other():
    mapping = plain() | {"weight": torch.arange(len(TEXTS)), "vector": torch.zeros(len(TEXTS), 5)}
    batch = Inputs(mapping, Words()).batch(np.array([4, 1]), window=(0, 9))
    assert {key: tuple(tensor.shape) for key, tensor in batch.items()} == {
        "input_ids": (2, 9),
        "attention_mask": (2, 9),
        "special_tokens_mask": (2, 9),
        "weight": (2,),
        "vector": (2, 5),
    }
    assert torch.equal(batch["input_ids"], mapping["input_ids"][[4, 1], :9])
    batch["input_ids"].zero_()
    assert mapping["input_ids"][4, 0] == TEXTS[4][0]
    assert mapping["input_ids"].abs().sum() > 0


def without(key):
    return {name: tensor for name, tensor in plain().items() if name != key}


@pytest.mark.parametrize(
    ("source", "view", "mask", "message"),
    [
        (torch.randn(3, 4), Embeddings(), None, "needs token ids, whole numbers of shape (N, tokens), not (3, 4) of"),
        (torch.zeros(3, 4, 2, dtype=torch.int64), Words(), None, "not (3, 4, 2) of int64"),
        (without("special_tokens_mask"), Words(special=False), None, "return_special_tokens_mask=True"),
        (padded([torch.tensor([0, 2])]), Embeddings(special=False), None, "1 of 1 inputs are without a token that"),
        (plain() | {"attention_mask": torch.zeros(ALL, 12)}, Words(), None, "8 of 8 inputs are all padding"),
        (plain() | {"attention_mask": torch.ones(ALL, 4)}, Words(), None, "the attention mask has shape (8, 4)"),
        (plain(), Words(), torch.zeros(ALL, 12), "8 of 8 inputs are all masked (first: input 0)"),
        (plain(), Words(), torch.zeros(ALL, 3), "the mask has shape (8, 3), expected (8, 12)"),
        (plain(), Words(key="ids"), None, "key='ids' is not an entry"),
        (plain(), Words(mask_key="m"), None, "mask_key='m' is not an entry"),
    ],
)
def test_texts_that_cannot_be_read_are_one_clear_line(source, view, mask, message):
    with pytest.raises(UsageError) as error:
        Inputs(source, view, mask)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("kind", "change", "message"),
    [
        (
            "bert",
            {"input_ids": torch.full((ALL, 12), 40)},
            "the token ids go from 40 to 40, but model has words 0 to 39",
        ),
        ("bert", {"input_ids": torch.full((ALL, 12), -1)}, "the token ids go from -1 to -1"),
        ("bert", None, "the inputs hold model's padding id 1 and no attention_mask"),
    ],
)
def test_texts_of_another_tokenizer_are_one_clear_line(kind, change, message):
    source = plain()["input_ids"] if change is None else plain() | change
    with pytest.raises(UsageError) as error:
        TokenFunction(network(kind), Inputs(source, Embeddings()))
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("kind", "length", "width", "fits"),
    [
        ("bert", 16, 16, True),
        ("bert", 17, 17, False),
        ("bert", 5, 17, False),  # BERT and GPT-2 count positions over the padding, too
        ("gpt2", 16, 16, True),
        ("gpt2", 17, 17, False),
        ("roberta", 18, 18, True),  # of its 20 positions, 0 and 1 are those of padding
        ("roberta", 5, 30, True),
        ("roberta", 19, 19, False),
        ("distilbert", 17, 17, False),
    ],
)
def test_texts_longer_than_the_positions_of_a_model(kind, length, width, fits):
    mapping = padded(sentences([length, 4]), width=width)
    del mapping["special_tokens_mask"]
    inputs = Inputs(mapping, Embeddings())
    if fits:
        with torch.inference_mode():
            assert TokenFunction(network(kind), inputs)(inputs.batch(np.arange(2))).isfinite().all()
        return
    with pytest.raises(UsageError, match=rf"up to \d+ tokens with their padding, {kind} has 1\d positions: cut them"):
        TokenFunction(network(kind), inputs, kind)
    with pytest.raises((IndexError, RuntimeError)):  # what transformers would say
        network(kind)(**mapping)


def test_a_model_without_tables_takes_any_text():
    inputs = Inputs(plain(), Words())
    assert TokenFunction(lambda input_ids, attention_mask: input_ids.double(), inputs).site is None
    assert TokenFunction(Bag(), Inputs(plain()["input_ids"], Words(), pad=PAD)).inputs.pad == PAD


@pytest.mark.parametrize("kind", ["roberta", "gpt2"])
def test_an_encoder_answers_with_its_pooler_or_the_mean_of_its_real_tokens(kind):
    inputs, encoder = Inputs(plain(), Embeddings()), network(kind, head=False)
    with torch.inference_mode():
        found = TokenFunction(encoder, inputs)(inputs.batch(np.arange(ALL)))
        for row, ids in enumerate(TEXTS):
            alone = encoder(input_ids=ids[None])
            mean = alone.last_hidden_state[0].mean(dim=0)
            expected = alone.pooler_output[0] if kind == "roberta" else mean
            torch.testing.assert_close(found[row], expected)


def test_an_empty_list_of_texts_or_ids_is_one_line():
    for call in (
        lambda: jostle.measure(lambda x: x, [], tokens="words", perturbation="deletion"),
        lambda: jostle.influence(lambda x: x, [], perturbation=jostle.ReplaceBy(1)),
    ):
        with pytest.raises(jostle.UsageError, match="inputs are empty: there is nothing to measure"):
            call()
