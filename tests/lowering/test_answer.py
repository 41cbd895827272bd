"""A model asked in training: what it is given, what it may answer, and which of its errors are explained."""

import pytest
import torch
from torch import nn

from jostle.base.errors import UsageError
from jostle.lowering.answer import ask, read_logits
from jostle.tokens.sources import ONLY

LOGITS = torch.randn(2, 3, dtype=torch.float64)


def test_logits_are_found_in_an_answer_of_several_parts():
    assert ask(lambda given: {"logits": LOGITS, "loss": given.sum()}, {ONLY: LOGITS}) is LOGITS


def test_mappings_are_passed_by_keyword_and_tensors_by_place():
    x, mask = torch.randn(2, 3), torch.ones(2, 3)
    assert ask(lambda given: given, {ONLY: x}) is x
    assert torch.equal(ask(lambda *, inputs, mask: inputs + mask, {"inputs": x, "mask": mask}), x + 1)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (
            torch.tensor(1.0),
            r"answered 2 inputs with outputs of shape \(\); expected \(2, classes\), \(2, 1\) or \(2,\)$",
        ),
        (torch.zeros(3, 2), r"answered 2 inputs with outputs of shape \(3, 2\)"),
        (torch.zeros(2, dtype=torch.int64), "answered with torch.int64; expected real-valued logits"),
        (None, "must answer with a tensor of outputs, not NoneType"),
        ((), "must answer with a tensor of outputs, not tuple"),
        (torch.zeros(2, 0), r"answered 2 inputs with outputs of shape \(2, 0\)"),
    ],
)
def test_answers_that_are_no_logits(answer, message):
    with pytest.raises(UsageError, match=message):
        read_logits(answer, 2)


@pytest.mark.parametrize("model", [None, "vit", LOGITS])
def test_what_cannot_be_called(model):
    with pytest.raises(UsageError, match=f"model of type {type(model).__name__} cannot be called; give an nn.Module"):
        ask(model, {ONLY: LOGITS})


@pytest.mark.parametrize("kind", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("layer", [lambda: nn.Linear(3, 2), lambda: nn.Conv1d(2, 1, 1)], ids=["linear", "convolution"])
def test_inputs_of_another_type_than_the_weights(layer, kind):
    message = rf"inputs are {kind}, the model is torch.float64: .*\.to\(torch.float64\)\), or use torch.autocast"
    with pytest.raises(UsageError, match=message) as caught:
        ask(layer(), {ONLY: LOGITS.to(kind)})
    assert isinstance(caught.value.__cause__, RuntimeError)


def test_entries_under_other_names_than_the_models():
    with pytest.raises(
        UsageError, match=r"entries of inputs \(pixels, mask\) are passed .* unexpected keyword argument"
    ):
        ask(nn.Linear(3, 2), {"pixels": LOGITS, "mask": LOGITS})
    with pytest.raises(UsageError, match=r"entries of inputs \(x\) are passed .* required positional argument: 'mask'"):
        ask(lambda x, mask: x + mask, {"x": LOGITS})


def test_other_errors_of_the_model_pass_as_they_are():
    def broken(x):
        raise TypeError("its own")

    for batch in ({ONLY: LOGITS}, {"x": LOGITS}):
        with pytest.raises(TypeError, match=r"^its own$"):
            ask(broken, batch)
    with pytest.raises(RuntimeError, match=r"^mat1 and mat2 shapes cannot be multiplied"):
        ask(nn.Linear(4, 2), {ONLY: LOGITS})

    class Broken(nn.Linear):
        def forward(self, x):
            raise RuntimeError("a type of error of its own")

    with pytest.raises(RuntimeError, match=r"^a type of error of its own$"):
        ask(Broken(3, 2), {ONLY: LOGITS})
