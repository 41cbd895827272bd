import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset, SubsetRandomSampler, TensorDataset

import jostle
from jostle.base.errors import UsageError
from jostle.estimates.request import Request
from jostle.tokens import Coordinates, Inputs, Patches, Rows, Whole
from jostle.tokens import inputs as module

X = torch.randn(10, 5, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


class Labelled(Dataset):
    def __len__(self):
        return len(X)

    def __getitem__(self, index):
        return X[index], index % 2


class Stream(IterableDataset):
    def __iter__(self):
        return iter(X)


class Holder:
    inputs = X


@pytest.mark.parametrize(
    "source",
    [
        X,
        X.numpy(),
        {"x": X},
        TensorDataset(X, torch.arange(10)),
        Labelled(),
        DataLoader(Labelled(), batch_size=3, shuffle=True),
        DataLoader(Stream(), batch_size=4),
        Holder(),
    ],
    ids=["tensor", "array", "mapping", "tensor-dataset", "dataset", "loader", "iterable-loader", "dataset-record"],
)
def test_inputs_are_reachable_by_index_whatever_they_came_as(source):
    inputs = Inputs(source, Rows())
    assert (len(inputs), inputs.num_tokens, inputs.dim, inputs.shape) == (10, 5, 3, (5, 3))
    batch = inputs.batch(np.array([7, 2, 7]))
    assert torch.equal(batch[inputs.key], X[[7, 2, 7]])


def test_batches_may_be_changed_without_changing_the_inputs():
    inputs = Inputs(X.clone(), Rows())
    inputs.batch(np.array([0]))[inputs.key].zero_()
    assert torch.equal(inputs.batch(np.array([0]))[inputs.key], X[:1])


def test_the_mask_of_a_mapping_is_found_and_counted():
    mask = torch.ones(10, 5, dtype=torch.int64)
    mask[3, 2:] = 0
    mask[4, :3] = 0
    inputs = Inputs({"inputs_embeds": X, "attention_mask": mask, "position_ids": torch.zeros(10, 5)}, Rows())
    assert inputs.key == "inputs_embeds"
    assert inputs.token_counts.tolist() == [5, 5, 5, 2, 2, 5, 5, 5, 5, 5]
    positions = inputs.nth_token(np.array([3, 3, 4, 4, 0]), np.array([0, 1, 0, 1, 4]))
    assert positions.tolist() == [0, 1, 3, 4, 4]


def test_a_full_mask_costs_nothing_and_whole_inputs_ignore_masks():
    mask = torch.ones(10, 5)
    assert Inputs({"x": X, "mask": mask}, Rows()).mask is None
    mask[0, 0] = 0
    assert Inputs({"x": X, "mask": mask}, Whole()).mask is None


def test_arguments_are_positional_for_tensors_and_named_for_mappings():
    plain, named = Inputs(X, Rows()), Inputs({"x": X, "mask": torch.ones(10, 5)}, Rows())
    assert len(plain.arguments(plain.batch(np.array([0])))[0]) == 1
    assert set(named.arguments(named.batch(np.array([0])))[1]) == {"x", "mask"}


@pytest.mark.parametrize(
    ("source", "view", "mask", "message"),
    [
        (torch.empty(0, 5), Coordinates(), None, "inputs are empty"),
        ([], Rows(), None, "inputs are empty"),
        ({"x": X, "y": X[:3]}, Rows(key="x"), None, "differ in length"),
        ({"a": X, "b": X}, Rows(), None, "which entry of the inputs holds the tokens"),
        ({"a": X, "b": X}, Rows(key="c"), None, "key='c' is not an entry"),
        ({"a": X}, Rows(mask_key="m"), None, "mask_key='m' is not an entry"),
        ({"a": "text"}, Rows(), None, "must hold tensors"),
        (X, Rows(), torch.ones(10, 4), "the mask has shape (10, 4), expected (10, 5)"),
        (X, Rows(), torch.zeros(10, 5), "10 of 10 inputs are all masked (first: input 0)"),
        (3, Rows(), None, "inputs of type int cannot be read"),
        (X, Patches(2), None, "must divide"),
        ((X, torch.zeros(10)), Rows(), None, "two tensors of 10 each, of shapes (10, 5, 3) and (10,): if the second"),
        ([X.numpy(), np.zeros((10, 2))], Rows(), None, "labels, give the first alone"),
    ],
)
def test_wrong_inputs_are_one_clear_line(source, view, mask, message):
    with pytest.raises(UsageError) as error:
        Inputs(source, view, mask)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_nan_and_infinity_are_counted():
    broken = X.clone()
    broken[4, 0, 0], broken[6, 1, 1] = torch.nan, torch.inf
    with pytest.raises(UsageError, match=r"2 of 10 inputs hold NaN or infinity \(first: input 4\)"):
        Inputs(broken, Rows()).check_finite()
    Inputs(torch.randint(5, (4, 3)), Rows()).check_finite()


def test_the_mask_of_a_dataset_of_mappings_is_found():
    mask = torch.ones(10, 5, dtype=torch.int64)
    mask[3, 2:] = 0
    items = [{"inputs_embeds": x, "attention_mask": m} for x, m in zip(X, mask, strict=True)]
    for source in (items, DataLoader(items, batch_size=4, shuffle=True)):
        inputs = Inputs(source, Rows())
        assert inputs.token_counts.tolist() == [5, 5, 5, 2, 5, 5, 5, 5, 5, 5]


def test_samplers_and_collate_functions_of_loaders_are_used():
    few = DataLoader(TensorDataset(X), sampler=SubsetRandomSampler(range(4)), batch_size=3)
    assert len(Inputs(few, Rows())) == 4
    doubled = DataLoader(
        TensorDataset(X), batch_size=5, collate_fn=lambda items: torch.stack([x * 2 for (x,) in items])
    )
    assert torch.equal(Inputs(doubled, Rows()).batch(np.array([7]))[""], X[7:8] * 2)


@pytest.mark.parametrize(
    "wrap", [lambda items: items, lambda items: DataLoader(items, batch_size=1, collate_fn=torch.stack)]
)
def test_ragged_inputs_are_one_clear_line(wrap):
    items = [torch.zeros(3), torch.zeros(5)]
    with pytest.raises(UsageError, match="pad all to one length and give a mask"):
        Inputs(wrap(items), Rows()).batch(np.array([0, 1]))


def test_a_number_for_each_input_is_looked_at_too():
    source = {"x": X, "weight": torch.ones(10)}
    source["weight"][3] = torch.nan
    with pytest.raises(UsageError, match=r"1 of 10 inputs hold NaN or infinity \(first: input 3\)"):
        Inputs(source, Rows()).check_finite()


def test_two_inputs_are_not_taken_for_inputs_and_labels():
    for pair in ((X[0], X[1]), [X[0], X[1]]):
        inputs = Inputs(pair, Rows())
        assert len(inputs) == 2
        assert torch.equal(inputs.batch(np.arange(2))[""], X[:2])


class Counting(Dataset):
    """A dataset that counts how often each item was read."""

    def __init__(self, inputs):
        self.held, self.reads = inputs, np.zeros(len(inputs), dtype=int)

    def __len__(self):
        return len(self.held)

    def __getitem__(self, index):
        self.reads[index] += 1
        return self.held[index], 0


@pytest.mark.parametrize("plan", [jostle.Until(half_width=0.05), jostle.Grid(3)])
def test_an_item_is_read_once_however_many_trials_it_is_in(plan):
    counting = Counting(X)
    found = jostle.measure(lambda x: x.sum(dim=(1, 2)), counting, tokens="rows", perturbation="sphere:1", plan=plan)
    wanted = jostle.measure(lambda x: x.sum(dim=(1, 2)), X, tokens="rows", perturbation="sphere:1", plan=plan)
    assert found.trials > 10 * len(X)
    assert counting.reads.tolist() == [1] * len(X)
    assert found.per_input.tolist() == wanted.per_input.tolist()


def test_nothing_is_read_before_it_is_needed():
    counting = Counting(X)
    request = Request.build(tokens="rows", perturbation="sphere:1")
    request.prepare({"sum": lambda x: x.sum(dim=(1, 2))}, counting)
    assert counting.reads.sum() == 1  # the first, which says what shape inputs have


def test_more_inputs_than_fit_the_cache_are_read_again_and_memory_is_bounded(monkeypatch):
    monkeypatch.setattr(module, "CACHE_BYTES", 3 * X[0].nbytes)
    counting = Counting(X)
    inputs = Inputs(counting, Rows())
    for start in (0, 4, 0):
        chosen = np.array([start, start + 3, start, start + 1, start + 2])
        assert torch.equal(inputs.batch(chosen)[""], X[chosen])
        assert inputs.items.bytes_kept <= 3 * X[0].nbytes
    assert counting.reads[:4].tolist() == [2] * 4  # and never more than once for a batch
    monkeypatch.setattr(module, "CACHE_BYTES", 0)
    choices = {"tokens": "rows", "perturbation": "sphere:1", "plan": "grid:1"}
    both = [jostle.measure(lambda x: x.sum(dim=(1, 2)), source, **choices) for source in (X, counting)]
    assert both[0].per_input.tolist() == both[1].per_input.tolist()


def test_items_that_are_not_finite_are_found_when_they_are_read():
    broken = X.clone()
    broken[4, 0, 0] = torch.nan
    inputs = Inputs(Counting(broken), Rows())
    inputs.check_finite()
    inputs.batch(np.array([0, 3]))
    with pytest.raises(UsageError, match=r"input 4 holds NaN or infinity"):
        inputs.batch(np.array([3, 4]))
