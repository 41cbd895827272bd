import numpy as np
import pytest
import torch
from torch import nn

import jostle
from jostle.base import specs
from jostle.base.errors import FailureError, UsageError
from jostle.estimates import JostleWarning
from jostle.responses import RESPONSES
from jostle.tokens import Inputs, Rows, TokenFunction

INPUTS = Inputs(torch.randn(40, 6, dtype=torch.float64), Rows())
SOME = np.arange(8)


def ask(model, **options):
    function = TokenFunction(model, INPUTS, **options)
    with function.evaluating():
        function.check_steady()
        return function, function(INPUTS.batch(SOME))


class Output:
    def __init__(self, logits):
        self.logits = logits


@pytest.mark.parametrize(
    "wrap", [lambda z: z, lambda z: (z, None), lambda z: {"logits": z}, Output, lambda z: z.numpy()]
)
def test_logits_are_found_in_what_models_return(wrap):
    _, outputs = ask(lambda x: wrap(x[:, :2] * 2))
    assert torch.equal(outputs, INPUTS.batch(SOME)[""][:, :2] * 2)


def test_modes_are_put_back_exactly_even_after_an_error():
    model = nn.Sequential(nn.Linear(6, 4), nn.Dropout(0.5), nn.BatchNorm1d(4), nn.Linear(4, 2))
    model.train()
    model[2].eval()
    before = [module.training for module in model.modules()]
    function, _ = ask(model)
    assert [module.training for module in model.modules()] == before
    assert (function.warnings, len(function.notes)) == ([], 1)
    assert "was in train mode" in function.notes[0]
    with pytest.raises(ZeroDivisionError), function.evaluating():
        raise ZeroDivisionError
    assert [module.training for module in model.modules()] == before


def test_a_model_in_eval_mode_that_is_steady_is_not_warned_about():
    function, _ = ask(nn.Sequential(nn.Linear(6, 4), nn.Dropout(0.5), nn.Linear(4, 2)).eval())
    assert function.warnings == []


def test_a_model_that_answers_differently_twice_is_noticed():
    function, _ = ask(lambda x: nn.functional.dropout(x[:, :3], 0.5, training=True))
    assert "answers the same input differently twice" in function.warnings[0]


def test_a_model_that_looks_at_the_batch_is_noticed():
    function, _ = ask(lambda x: (x - x.mean(dim=0))[:, :3])
    assert "answers an input differently in another batch" in function.warnings[0]


def test_passes_count_inputs_and_include_the_check():
    function, _ = ask(lambda x: x)
    assert function.passes == 16 + 16 + 16 + 8


@pytest.mark.parametrize(
    ("model", "kind", "message"),
    [
        (lambda x: x.sum(), UsageError, "answered 16 inputs with outputs of shape ()"),
        (lambda x: x[:3], UsageError, "expected (16, classes)"),
        (lambda x: "yes", UsageError, "must answer with a tensor of outputs, not str"),
        (lambda x: x @ torch.ones(7), FailureError, "raised RuntimeError on a batch of input (16, 6)"),
        (5, UsageError, "cannot be called"),
    ],
)
def test_wrong_models_are_one_clear_line(model, kind, message):
    with pytest.raises(kind) as error:
        ask(model)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_no_gradients_are_recorded():
    weight = nn.Parameter(torch.ones(6))
    _, outputs = ask(lambda x: x * weight)
    assert not outputs.requires_grad


def test_a_probability_given_for_a_logit_is_noticed():
    function, _ = ask(lambda x: torch.sigmoid(x[:, :1]))
    assert "if that is a probability" in function.warnings[0]
    assert ask(lambda x: torch.sigmoid(x[:, :2]))[0].warnings == []


def test_a_model_of_another_type_is_told_how_to_convert():
    with pytest.raises(FailureError, match=r"inputs are torch\.float64, the model is torch\.float32: convert"):
        ask(nn.Linear(6, 2, dtype=torch.float32).eval())


def test_whole_numbers_given_to_a_model_of_real_ones_are_told_how_to_convert():
    inputs = Inputs(torch.ones(4, 6, dtype=torch.int64), Rows())
    with pytest.raises(FailureError, match=r"inputs are torch\.int64, the model is torch\.float32: convert"):
        TokenFunction(nn.Linear(6, 2, dtype=torch.float32), inputs)(inputs.batch(np.arange(2)))


def test_entries_of_inputs_may_have_any_name():
    inputs = Inputs({"name": torch.ones(4, 6), "hint": torch.ones(4)}, Rows(key="name"))
    assert TokenFunction(lambda name, hint: name, inputs)(inputs.batch(np.arange(2))).shape == (2, 6)


def test_a_device_that_is_not_there_is_one_clear_line():
    with pytest.raises(UsageError, match="device='nowhere' cannot be used"):
        ask(lambda x: x, device="nowhere")


def test_probabilities_given_for_logits_are_noticed_where_they_change_the_number():
    def noticed(model, response):
        function = TokenFunction(model, INPUTS)
        with function.evaluating():
            function.check_steady(specs.build(RESPONSES, response, "response"))
        return function.warnings

    softmax = lambda x: torch.softmax(x[:, :3], dim=1)  # noqa: E731
    (warning,) = noticed(softmax, "margin")
    assert "gives 3 outputs per input, all between 0 and 1, that sum to 1" in warning
    assert "give the logits instead; margin is" in warning
    assert noticed(softmax, "flip") == noticed(softmax, "flip:argmax") == []  # the largest is the same
    assert noticed(lambda x: torch.sigmoid(x[:, :3]), "margin") == []
    assert noticed(lambda x: x[:, :3] / x[:, :3].sum(dim=1, keepdim=True), "margin") == []  # some are below 0
    choices = {"tokens": "coordinates", "perturbation": "gaussian-noise:1", "plan": "grid:1"}
    with pytest.warns(JostleWarning, match="if those are probabilities"):
        jostle.measure(softmax, torch.randn(4, 5), response="logit-change", **choices)


def test_a_mapping_without_logits_is_told_by_its_entries():
    with pytest.raises(UsageError, match=r"not a dict with 'out', 'aux'; expected 'logits'"):
        ask(lambda x: {"out": x, "aux": x})
    with pytest.raises(UsageError, match=r"'e4' and 2 more; expected"):
        ask(lambda x: {f"e{number}": x for number in range(7)})


def test_an_id_without_a_word_is_told_by_the_ids_of_the_batch():
    class Table(nn.Module):
        def __init__(self):
            super().__init__()
            self.words = nn.Embedding(20, 3)

        def forward(self, ids):
            return self.words(ids).sum(dim=1)

    inputs = Inputs(torch.arange(40).reshape(8, 5), Rows())
    with pytest.raises(FailureError, match=r"the ids of this batch go from 5 to 24: does the model have a word"):
        TokenFunction(Table(), inputs)(inputs.batch(np.arange(1, 5)))
    with pytest.raises(FailureError) as error:
        ask(lambda x: [][len(x)])  # of real numbers, nothing is said about words
    assert "word" not in str(error.value)
