import copy
import pickle

import pytest
import torch
from torch import nn

import jostle
from jostle.base import products
from jostle.base.products import quick_products

pytestmark = pytest.mark.skipif(
    not torch.backends.mkldnn.is_available(), reason="this build of torch comes without oneDNN"
)
ROWS, WIDE, NARROW = 512, 96, 64  # enough products to be worth it


@pytest.fixture(autouse=True)
def on_any_processor(monkeypatch):
    """As on a processor where it is quicker: the numbers are the same on all."""
    torch.set_default_dtype(torch.float32)
    monkeypatch.setattr(products, "_has_wider_vectors", lambda: True)


@pytest.fixture
def asked(monkeypatch):
    """The sizes of what oneDNN was asked about."""
    sizes, product = [], products._by_onednn
    monkeypatch.setattr(products, "_by_onednn", lambda *given: sizes.append(tuple(given[0].shape)) or product(*given))
    return sizes


def layer(**options) -> nn.Linear:
    torch.manual_seed(0)
    return nn.Linear(WIDE, NARROW, **options)


@torch.inference_mode()
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("shape", [(ROWS, WIDE), (8, ROWS // 8, WIDE)])
def test_the_same_numbers_up_to_rounding(shape, bias, asked):
    model, given = layer(bias=bias), torch.randn(shape)
    usual = model(given)
    with quick_products(model):
        assert torch.allclose(model(given), usual, atol=1e-5)
        assert torch.allclose(model(given.transpose(0, 1).contiguous().transpose(0, 1)), usual, atol=1e-5)
    assert asked == [shape, shape]


@torch.inference_mode()
def test_nan_and_infinity_are_passed_on(asked):
    model, given = layer(), torch.randn(ROWS, WIDE)
    given[3, 5], given[7, 2] = torch.nan, torch.inf
    with quick_products(model):
        found = model(given)
    assert asked
    assert found[3].isnan().all()
    assert found[7].isinf().all()
    assert found[[0, 1, 2, 4, 5, 6, 8]].isfinite().all()


def test_a_layer_is_as_before_afterwards_also_after_an_error():
    model = nn.Sequential(layer(), nn.ReLU())

    def fail():
        with quick_products(model):
            assert "forward" in vars(model[0])
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert "forward" not in vars(model[0])


@torch.inference_mode()
def test_an_input_may_be_given_by_its_name(asked):
    model, given = layer(), torch.randn(9, WIDE, generator=torch.Generator().manual_seed(0))
    with quick_products(model):
        assert torch.equal(model(input=given), model(given))


@torch.inference_mode()
def test_a_layer_with_a_forward_of_its_own_keeps_it():
    model = layer()
    model.forward = lambda given: given + 1
    with quick_products(model):
        assert model(torch.ones(1)) == 2
    assert model(torch.ones(1)) == 2


@torch.inference_mode()
def test_layers_of_another_class_and_compiled_models_are_left_alone():
    class Own(nn.Linear):
        pass

    own, compiled = Own(WIDE, NARROW), nn.Module()
    compiled._orig_mod = layer()  # as torch.compile has it
    with quick_products(own, compiled, len):
        assert not any("forward" in vars(part) for part in (own, compiled._orig_mod))


@pytest.mark.parametrize(
    "case", ["few products", "gradients", "float64", "autocast", "vmap", "no oneDNN", "rounder products", "Intel"]
)
def test_all_else_is_computed_as_usual(case, asked, monkeypatch):
    model, given = layer(), torch.randn(ROWS, WIDE)
    if case == "few products":
        given = given[:4]
    if case == "float64":
        model, given = model.double(), given.double()
    if case == "no oneDNN":
        monkeypatch.setattr(torch._C, "_get_mkldnn_enabled", lambda: False)
    if case == "rounder products":
        monkeypatch.setattr(torch, "get_float32_matmul_precision", lambda: "medium")
    if case == "Intel":
        monkeypatch.setattr(products, "_has_wider_vectors", lambda: False)
    usual = model(given)
    with quick_products(model):
        if case == "gradients":
            model(given).sum().backward()
            assert model.weight.grad is not None
        elif case == "vmap":
            with torch.no_grad():
                assert torch.allclose(torch.func.vmap(model)(given[:, None])[:, 0], usual, atol=1e-5)
        elif case == "autocast":
            monkeypatch.setattr(torch, "is_autocast_enabled", lambda _: True)  # bfloat16 need not work here
            with torch.no_grad():
                assert torch.equal(model(given), usual)
        else:
            with torch.no_grad():
                assert torch.equal(model(given), usual)
    assert asked == []


@torch.inference_mode()
def test_a_model_may_be_copied_and_pickled_meanwhile():
    model, given = nn.Sequential(layer()), torch.randn(ROWS, WIDE)
    with quick_products(model):
        expected = model(given)
        for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
            assert torch.equal(other(given), expected)
            assert other[0].forward.args[0] is other[0]


def measured(model, inputs, **options):
    noise = {"tokens": jostle.Patches(4), "perturbation": jostle.GaussianNoise(2.0), "plan": jostle.Grid(2)}
    return jostle.measure(model, inputs, **noise, **options)


def test_a_measurement_is_the_same_and_uses_it(asked):
    torch.manual_seed(0)
    model = jostle.models.create("vit-simple", depth=1, heads=2, dim_head=16, mlp_dim=64, seed=0)
    inputs = torch.randn(16, 3, 32, 32)
    quick = measured(model, inputs)
    assert asked
    with products.switched_off():
        asked.clear()
        usual = measured(model, inputs)
    assert asked == []
    assert (quick.value, quick.passes) == (usual.value, usual.passes)
    assert (quick.profile.values == usual.profile.values).all()


def test_workers_answer_the_same_bits():
    torch.manual_seed(0)
    model = jostle.models.create("vit-simple", depth=1, heads=2, dim_head=16, mlp_dim=64, seed=0)
    inputs = torch.randn(12, 3, 32, 32)
    here = measured(model, inputs, response="logit-change")
    there = measured(model, inputs, response="logit-change", workers=2)
    assert here.value == there.value
