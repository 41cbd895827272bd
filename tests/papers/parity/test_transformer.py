import pytest
import torch

from jostle.base.errors import UsageError
from jostle.boolean.networks.transformer import BooleanTransformer
from jostle_papers.p2403_06925.parity import DESIGNS, BitTransformer, ParityDesign, SparseParity


def pair(initial="normal", n=7, depth=2, dim=16, factor=1.0):
    """The fast network and the plain encoder with the same weights, biases and gains not at their first values."""
    torch.manual_seed(1)
    fast = BitTransformer(n=n, depth=depth, dim=dim, mlp_dim=24, initial=initial)
    with torch.no_grad():
        for parameter in fast.parameters():
            parameter += 0.3 * torch.randn_like(parameter)
        fast.blocks[0].attention.to_query.weight *= factor
    plain = BooleanTransformer(n=n, depth=depth, dim=dim, heads=4, mlp_dim=24, norm="pre", positions="added")
    plain.load_state_dict(fast.state_dict())
    return fast, plain


@pytest.mark.parametrize("initial", ["normal", "xavier"])
@pytest.mark.parametrize("depth", [2, 3])
def test_it_is_the_plain_encoder(bits, initial, depth):
    fast, plain = pair(initial, depth=depth)
    assert torch.allclose(fast(bits), plain(bits), rtol=0, atol=1e-12)


def test_gradients_are_those_of_the_plain_encoder(bits):
    fast, plain = pair()
    for network in (fast, plain):
        network(bits).square().sum().backward()
    theirs = dict(plain.named_parameters())
    for name, parameter in fast.named_parameters():
        mine = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
        assert torch.allclose(mine, theirs[name].grad, rtol=0, atol=1e-9), name


def test_sharp_attention_keeps_its_digits_in_float32(bits):
    """Where the symbol with the largest score is absent, the others' are far below it."""
    fast, plain = pair(factor=5.0)
    attention, table = fast.blocks[0].attention, fast.blocks[0].attention_norm(fast._table()).flatten(0, 1)
    scores = attention.to_query(table)[:, :4] @ attention.to_key(table)[:, :4].T / 2  # of the first head
    assert 20 < float((scores.amax(dim=1) - scores.amin(dim=1)).max().detach()) < 80
    exact = plain(bits).detach()
    error = (fast.float()(bits.float()) - exact).abs().max().detach()
    own = (plain.float()(bits.float()) - exact).abs().max().detach()  # float32 itself
    assert error < 10 * own + 1e-5


@pytest.mark.parametrize("initial", ["normal", "xavier"])
def test_first_weights(initial):
    torch.manual_seed(0)
    network = BitTransformer(n=40, dim=32, initial=initial)
    if initial == "normal":
        assert float(network.positions.detach().std()) == pytest.approx(1, abs=0.1)
    else:
        assert network.positions.abs().max() <= 0.1
        assert network.symbols.abs().max() <= (6 / 35) ** 0.5 * 32**0.5
        assert network.symbols.abs().max() > (6 / 35) ** 0.5


def test_designs_are_the_settings_of_the_paper_and_networks_of_its_size():
    task = SparseParity()
    counts = {name: sum(p.numel() for p in DESIGNS.get(name).create(task, 0).parameters()) for name in DESIGNS.names()}
    for name in ("mlp", "lstm", "state-space"):
        assert counts[name] == pytest.approx(counts["transformer-50k"], rel=0.1)
    found = [DESIGNS.get(f"transformer-{name}") for name in ("50k", "10k", "5k-25", "5k-50")]
    assert [(one.samples, one.batch_size, one.sizes["dim"], one.lr) for one in found] == [
        (50_000, 250, 32, 1e-3),
        (10_000, 100, 64, 1e-3),
        (5000, 25, 32, 1e-4),
        (5000, 50, 32, 1e-4),
    ]
    assert {network.network for network in map(DESIGNS.get, DESIGNS.names())} == {
        "transformer", "mlp", "lstm", "state-space"
    }  # fmt: skip


@pytest.mark.parametrize("name", DESIGNS.names())
def test_a_network_is_a_function_of_its_seed(name):
    design, task = DESIGNS.get(name), SparseParity(6, (0, 3))
    points = task.sample(5, seed=0).inputs
    torch.manual_seed(1)
    first = design.create(task, 4)(points)
    torch.manual_seed(2)
    assert torch.equal(design.create(task, 4)(points), first)
    assert not torch.equal(design.create(task, 5)(points), first)
    assert first.shape == (5, 1)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: BitTransformer(n=5, depth=1), "depth=1 of a BitTransformer must be at least 2"),
        (lambda: BitTransformer(n=5, initial="xavir"), "did you mean xavier"),
        (lambda: BitTransformer(n=5)(torch.ones(3, 4)), "built for a batch of 5 bits"),
        (lambda: ParityDesign(network="mpl"), "did you mean mlp"),
        (
            lambda: ParityDesign(sizes={"dmi": 8}).create(SparseParity(), 0),
            "unknown transformer argument 'dmi'; did you mean dim",
        ),
        (lambda: ParityDesign(samples=10), "batch_size=250 must be at most samples=10"),
        (lambda: ParityDesign(lr=0), "lr=.* must be a finite number above 0"),
    ],
)
def test_wrong_use_is_one_clear_line(call, message):
    with pytest.raises(UsageError, match=message):
        call()
