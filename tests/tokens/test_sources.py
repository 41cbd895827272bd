"""What people have as inputs: loaders that pad as they go, ragged lists, datasets, frames, memory maps."""

import warnings

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader

import jostle
from jostle.base.errors import UsageError
from jostle.tokens import sources
from jostle.tokens.sources import as_tensors, tensor_of

WORDS = {"tokens": "words", "perturbation": jostle.UniformToken(range(1, 19)), "plan": jostle.Grid(3)}
ROWS = [[5, 6, 7, 8], [9, 3], [4, 4, 11], [12, 13, 14, 15, 16, 17]]


class Bag(nn.Module):
    """A classifier of texts of any length: the sum of word vectors of real tokens."""

    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(20, 3)

    def forward(self, input_ids, attention_mask=None):
        real = torch.ones_like(input_ids) if attention_mask is None else attention_mask
        return (self.table(input_ids) * real[..., None]).sum(dim=1)


def padded(rows=ROWS, side="right", pad=0):
    width = max(map(len, rows))
    fill = [[pad] * (width - len(row)) for row in rows]
    ids = [row + more if side == "right" else more + row for row, more in zip(rows, fill, strict=True)]
    ones = [[1] * len(row) for row in rows]
    mask = [
        row + [0] * len(more) if side == "right" else [0] * len(more) + row
        for row, more in zip(ones, fill, strict=True)
    ]
    return {"input_ids": torch.tensor(ids), "attention_mask": torch.tensor(mask)}


@pytest.fixture(scope="module")
def model():
    torch.manual_seed(0)
    return Bag()


@pytest.fixture(scope="module")
def expected(model):
    return jostle.measure(model, padded(), **WORDS)


def collate(side):
    def together(items):
        return {**padded([item["input_ids"] for item in items], side, pad=19), "labels": torch.tensor([0] * len(items))}

    return together


@pytest.mark.parametrize("side", ["right", "left"])
@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize("size", [1, 2, 3])
def test_a_loader_that_pads_each_batch_to_its_longest_text(model, expected, side, shuffle, size):
    items = [{"input_ids": row} for row in ROWS]
    loader = DataLoader(items, batch_size=size, shuffle=shuffle, collate_fn=collate(side))
    m = jostle.measure(model, loader, **WORDS)
    assert m.per_input.tolist() == expected.per_input.tolist()
    assert m.settings.num_tokens == 6


def test_the_collator_of_transformers(model, expected):
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel

    words = Tokenizer(WordLevel({"[PAD]": 0, **{f"w{number}": number for number in range(1, 20)}}, unk_token="[PAD]"))
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=words, pad_token="[PAD]")
    items = [{"input_ids": row, "attention_mask": [1] * len(row), "label": 1} for row in ROWS]
    loader = DataLoader(items, batch_size=2, collate_fn=transformers.DataCollatorWithPadding(tokenizer))
    assert jostle.measure(model, loader, **WORDS).value == expected.value


@pytest.mark.parametrize(
    "inputs",
    [
        ROWS,
        {"input_ids": ROWS, "attention_mask": [[1] * len(row) for row in ROWS]},
        {"input_ids": ROWS},
        [{"input_ids": row, "attention_mask": [1] * len(row), "label": 0} for row in ROWS],
        [{"input_ids": torch.tensor(row), "text": "as it was"} for row in ROWS],
        [(torch.tensor(row), 1) for row in ROWS],
    ],
    ids=["lists", "what a tokenizer makes", "ids alone", "items", "items with their texts", "pairs"],
)
def test_ragged_texts(model, expected, inputs):
    assert jostle.measure(model, inputs, **WORDS).value == expected.value


def test_datasets_of_hugging_face(model, expected):
    datasets = pytest.importorskip("datasets", reason="datasets is not installed")
    made = datasets.Dataset.from_dict({"input_ids": ROWS, "label": [0, 1, 0, 1], "sentence": ["a", "b", "c", "d"]})
    assert jostle.measure(model, made, **WORDS).value == expected.value
    texts = datasets.Dataset.from_dict({"sentence": ["a good film", "bad"], "label": [1, 0]})
    loud = lambda given: [[len(text) - 5.5, 0.0] for text in given]  # noqa: E731
    m = jostle.measure(loud, texts, tokens="words", perturbation=jostle.UniformToken([1]))
    assert m.settings.num_inputs == 2


def test_columns_of_texts():
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    texts = ["not a good film", "a bad film"]
    loud = lambda given: [[text.count("good") - 0.5, 0.0] for text in given]  # noqa: E731
    deletion = {"tokens": "words", "perturbation": "deletion"}
    expected = jostle.measure(loud, texts, **deletion).value
    assert expected == pytest.approx(1 / 8)
    frame = pandas.DataFrame({"review": texts, "stars": [5, 1]})
    for given in (np.array(texts), np.array(texts, dtype=object), frame["review"], frame, tuple(texts)):
        assert jostle.measure(loud, given, **deletion).value == expected
    two = pandas.DataFrame({"question": texts, "answer": texts})
    with pytest.raises(UsageError, match="which column holds the texts"):
        jostle.measure(loud, two, **deletion)


def test_texts_of_one_length_can_lose_words():
    texts = ["a dull film", "a loud film!", "no sound here"]
    found = jostle.measure(
        lambda lines: [line.count("!") - 0.5 for line in lines], texts, tokens="words", perturbation="deletion"
    )
    assert found.value == pytest.approx(1 / 9)


def test_a_memory_map_is_read_where_it_is(tmp_path):
    x = np.random.default_rng(0).normal(size=(50, 6))
    np.save(tmp_path / "x.npy", x)
    held = np.load(tmp_path / "x.npy", mmap_mode="r")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tensor = tensor_of(held)
        assert tensor.data_ptr() == held.ctypes.data
        choices = {"tokens": "coordinates", "perturbation": "gaussian-noise:std=1", "plan": jostle.Grid(2)}
        m = jostle.measure(lambda y: y.sum(dim=1), held, **choices)
    assert m.value == jostle.measure(lambda y: y.sum(dim=1), torch.from_numpy(x), **choices).value


def test_a_large_memory_map_is_read_row_by_row(tmp_path, monkeypatch):
    monkeypatch.setattr(sources, "_MOST_MAPPED", 1000)
    x = np.random.default_rng(0).normal(size=(50, 6))
    x[7, 3] = np.nan
    np.save(tmp_path / "x.npy", x)
    held = np.load(tmp_path / "x.npy", mmap_mode="r")
    total = lambda y: y.sum(dim=1)  # noqa: E731
    choices = {"tokens": "coordinates", "perturbation": "gaussian-noise:std=1", "plan": jostle.Grid(2)}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        m = jostle.measure(total, held[:7], **choices)
    assert m.value == jostle.measure(total, torch.from_numpy(x[:7]), **choices).value
    with pytest.raises(UsageError, match="input 7 holds NaN or infinity"):
        jostle.measure(total, held, **choices)


def test_lists_of_numbers_and_other_byte_orders():
    choices = {"tokens": "coordinates", "perturbation": "sign-flip"}
    total = lambda y: y.sum(dim=1)  # noqa: E731
    expected = jostle.measure(total, torch.tensor([[1.0, -3.0], [2.0, 5.0]]), **choices).value
    assert jostle.measure(total, [[1.0, -3.0], [2.0, 5.0]], **choices).value == expected
    assert jostle.measure(total, np.array([[1.0, -3.0], [2.0, 5.0]], dtype=">f8"), **choices).value == expected


@pytest.mark.parametrize(
    ("inputs", "said"),
    [
        (["a film"], "inputs are texts: use tokens=words or tokens=embeddings"),
        (np.array(["a film"]), "inputs are texts: use tokens=words"),
        (np.array([object()]), "inputs are of type object; expected numbers"),
        ([{"image": object(), "label": 1}], "entry 'image' of the inputs is object; expected numbers"),
        ([{"text": "a film"}], "items of the inputs hold no numbers, only 'text'"),
        ([torch.zeros(2), torch.zeros(3)], "inputs differ in shape"),
        ({"x": [[1.0], [1.0, 2.0]]}, "inputs['x'] is ragged: pad all to one length"),
        ({"x": "text"}, "inputs as a mapping must hold tensors; not so: 'x'"),
        ({}, "inputs as a mapping must hold tensors; it is empty"),
        (7, "inputs of type int cannot be read: give a tensor, an array"),
    ],
)
def test_what_cannot_be_read_is_one_line(inputs, said):
    with pytest.raises(UsageError) as caught:
        jostle.measure(lambda x: x.sum(dim=1), inputs, tokens="coordinates", perturbation="sign-flip")
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_arrays_of_other_kinds_are_no_tensors():
    assert as_tensors(object()) is None


def test_an_array_that_was_turned_round_is_read():
    """``x[::-1]`` and ``images[:, :, ::-1]`` have strides that torch does not take."""
    array = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    for turned in (array[::-1], array[:, ::-1, ::-1]):
        assert tensor_of(turned).numpy().tolist() == turned.tolist()
    assert jostle.measure(lambda x: x, array[0][::-1], tokens="coordinates", perturbation="gaussian-noise:1").passes


def test_complex_numbers_are_no_token_ids():
    with pytest.raises(UsageError, match=r"needs token ids, whole numbers of shape .*complex64"):
        jostle.influence(lambda x: x, torch.zeros(2, 3, dtype=torch.complex64), perturbation=jostle.ReplaceBy(4))
