from types import SimpleNamespace

import pytest
import torch

from jostle.errors import UsageError
from jostle.lowering.asking import ask, logits_of
from jostle.tokens.sources import ONLY

LOGITS = torch.randn(2, 3)


@pytest.mark.parametrize(
    "answer",
    [LOGITS, (LOGITS, "state"), [LOGITS], {"logits": LOGITS, "loss": 1.0}, SimpleNamespace(logits=LOGITS)],
    ids=["tensor", "tuple", "list", "mapping", "object"],
)
def test_logits_are_found_in_every_kind_of_answer(answer):
    assert logits_of(answer, 2) is LOGITS


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
        (torch.zeros(2, dtype=torch.int64), "real-valued logits, not torch.int64"),
        (None, "real-valued logits, not NoneType"),
        ((), "real-valued logits, not tuple"),
    ],
)
def test_answers_that_are_no_logits(answer, message):
    with pytest.raises(UsageError, match=message):
        logits_of(answer, 2)
