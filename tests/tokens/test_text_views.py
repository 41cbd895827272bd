import pytest
import torch

from jostle import Embeddings, Words
from jostle.base import specs
from jostle.base.errors import UsageError
from jostle.tokens import VIEWS, TextView

SPECS = [
    "words",
    "words:special=false",
    "words:alignment=right,key=ids",
    "embeddings:after",
    "embeddings:before,special=false,alignment=right",
    "embeddings:module=transformer.drop,mask_key=m",
    "embeddings:after,whole=true,special=false",
    "words:special=only,special_ids=2/3",
    "embeddings:before,special_ids=2/,alignment=right",
]


@pytest.mark.parametrize("spec", SPECS)
def test_the_spec_makes_the_view_again(spec):
    view = specs.build(VIEWS, spec, "tokens", TextView)
    assert view.describe() == spec
    assert specs.build(VIEWS, view.describe(), "tokens") == view


def test_the_usual_view_is_after_the_embedding_block():
    assert specs.build(VIEWS, "embeddings", "tokens") == Embeddings() == Embeddings("after")
    assert (Embeddings().special, Embeddings().alignment, Words().special) == (True, "left", True)


@pytest.mark.parametrize(("view", "shape"), [(Embeddings(), (5, 4)), (Words(), (5,))])
def test_one_token_is_picked_and_put(view, shape):
    batch = torch.randn(3, *shape)
    before, where = batch.clone(), torch.tensor([4, 0, 2])
    token = view.pick(batch, torch.arange(3), where)
    assert torch.equal(token, batch[torch.arange(3), where].reshape(3, -1))
    view.put(batch, where, token + 1)
    assert ((batch != before).reshape(3, 5, -1).any(dim=2).nonzero()[:, 1] == where).all()
    assert view.num_tokens(shape) == 5


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Embeddings("afer"), "unknown where 'afer'; did you mean after?"),
        (lambda: Embeddings("before", module="a.b"), "where='before' and module='a.b' of Embeddings: give one"),
        (lambda: Embeddings(special="no"), "special='no' must be true, false or only"),
        (lambda: Words(alignment="centre"), "unknown alignment 'centre'"),
        (lambda: specs.build(VIEWS, "embeddings:specail=false", "tokens"), "did you mean special or special_ids?"),
    ],
)
def test_wrong_values_are_one_clear_line(make, message):
    with pytest.raises(UsageError) as error:
        make()
    assert message in str(error.value)
    assert "\n" not in str(error.value)
