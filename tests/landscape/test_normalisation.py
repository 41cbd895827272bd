"""Norms of other packages are asked what they do, and blow up as their twins of torch."""

import math

import pytest
import torch
from torch import nn

from jostle.landscape import layernorm_blowup
from jostle.landscape.layernorm import normalisation_of
from jostle.models.convnext import MapNorm

FAR = 100 + torch.randn(4, 5, 6, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
HALVES = [torch.bfloat16, torch.float16]


class RootMeanSquareLayerNorm(nn.Module):
    """Without a bias and without centring, as T5's; its class is named after what it is not."""

    def __init__(self, width=6):
        super().__init__()
        self.weight, self.variance_epsilon = nn.Parameter(torch.ones(width)), 1e-5

    def forward(self, hidden):
        return self.weight * hidden * (hidden.square().mean(-1, keepdim=True) + self.variance_epsilon).rsqrt()


class CentringLayerNorm(RootMeanSquareLayerNorm):
    """Without a bias, as Cohere's."""

    def forward(self, hidden):
        return super().forward(hidden - hidden.mean(-1, keepdim=True))


class GammaBetaLayerNorm(nn.Module):
    def __init__(self, width=6):
        super().__init__()
        self.gamma, self.beta, self.eps = nn.Parameter(torch.ones(width)), nn.Parameter(torch.zeros(width)), 1e-5

    def forward(self, x):
        return nn.functional.layer_norm(x, x.shape[-1:], self.gamma, self.beta, self.eps)


class SilentAboutEpsLayerNorm(nn.Module):
    """Without parameters, with its eps inside, and computed in float32, as Olmo's."""

    def __init__(self, width=6, inside=1e-5):
        super().__init__()
        self.normalized_shape, self._inside = (width,), inside

    def forward(self, hidden):
        return nn.functional.layer_norm(hidden.float(), self.normalized_shape, eps=self._inside).to(hidden.dtype)


class SilentAboutEpsRMSNorm(SilentAboutEpsLayerNorm):
    def forward(self, hidden):
        return nn.functional.rms_norm(hidden, self.normalized_shape, eps=self._inside)


class ConditionedLayerNorm(GammaBetaLayerNorm):
    """With more arguments than one, which it writes to."""

    def forward(self, x, shift, *, scale):
        x -= shift
        shift.zero_()
        return super().forward(x) * scale


CENTRING = [CentringLayerNorm, GammaBetaLayerNorm, SilentAboutEpsLayerNorm]
NOT_CENTRING = [RootMeanSquareLayerNorm, SilentAboutEpsRMSNorm]


@pytest.mark.parametrize("kind", [*CENTRING, *NOT_CENTRING])
def test_other_norms_blow_up_as_those_of_torch(kind):
    twin = nn.LayerNorm(6) if kind in CENTRING else nn.RMSNorm(6, eps=1e-5)
    for x in (FAR, FAR - 100, torch.ones(4, 5, 6)):
        found, expected = (layernorm_blowup(norm, x).per_input.tolist() for norm in (kind(), twin))
        assert found == pytest.approx(expected, rel=1e-5)
    assert layernorm_blowup(kind(), FAR).value == pytest.approx(2.66 if kind in CENTRING else 1.01, abs=0.01)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, *HALVES])
@pytest.mark.parametrize("kind", [*CENTRING, *NOT_CENTRING])
def test_what_they_receive_does_not_matter(kind, dtype):
    for received in (FAR, 0 * FAR, 1e4 + 0 * FAR, 1e-4 * (FAR - 100), FAR * math.nan):
        found = normalisation_of(kind().to(dtype), (received.to(dtype),), {})
        assert found.is_centring == (kind in CENTRING)
        assert found.eps == pytest.approx(1e-5, rel=0.02 if dtype in HALVES else 1e-4)


@pytest.mark.parametrize(
    ("dtype", "places"),
    # The middle of the ramp is 0.002, which bfloat16 does not know from the rounding of the constant.
    [(torch.float64, [0, 1, 250, 498, 499]), (torch.bfloat16, [0, 1, 498, 499])],
)
def test_one_gain_that_is_not_0_is_enough(dtype, places):
    for place in places:
        for kind in (RootMeanSquareLayerNorm, CentringLayerNorm):
            norm = kind(500).requires_grad_(False)
            norm.weight.zero_()[place] = 1
            received = torch.ones(2, 500, dtype=dtype)
            assert normalisation_of(norm.to(dtype), (received,), {}).is_centring == (kind in CENTRING)


def test_of_a_norm_that_answers_nothing_the_name_decides():
    for name, is_centring in (("QuietRMSNorm", False), ("QuietLayerNorm", True)):
        kind = type(name, (nn.Module,), {"forward": lambda _, x: 0 * x})
        found = normalisation_of(kind(), (FAR,), {})
        assert found.is_centring == is_centring
        assert found.eps == torch.finfo(torch.float64).eps


@pytest.mark.parametrize("kind", [SilentAboutEpsLayerNorm, SilentAboutEpsRMSNorm])
@pytest.mark.parametrize("eps", [0.0, 1e-12, 1e-8, 1e-6, 1e-3, 0.25, 10.0])
def test_an_eps_that_is_not_told_is_inferred(eps, kind):
    found = normalisation_of(kind(inside=eps), (FAR,), {}).eps
    # The float32 of the first knows squares of answers to 1e-6 or so, times the small ramp's variance of 5e-9.
    assert found == pytest.approx(eps, rel=1e-5, abs=1e-14)
    assert found >= 0


def test_what_torch_takes_for_no_eps():
    """As torch's answer to numbers of 1e-5 says: t / sqrt(t^2 + eps)."""
    for dtype in (torch.float64, torch.float32, *HALVES):
        for has_weight in (True, False):
            norm = nn.RMSNorm(4, elementwise_affine=has_weight, dtype=dtype).requires_grad_(False)
            x = torch.tensor([[1e-5, -1e-5, 1e-5, -1e-5]], dtype=dtype)
            size, answer = x[0, 0].double(), norm(x)[0, 0].double()
            by_answer = float(size.square() * (1 / answer.square() - 1))
            assert normalisation_of(norm, (x,), {}).eps == pytest.approx(by_answer, rel=0.02)
    small = torch.full((2, 4), 1e-5, dtype=torch.float32)
    model = nn.Sequential(nn.RMSNorm(4, elementwise_affine=False, dtype=torch.float32))
    exact = 1 + 1 / math.sqrt(1e-10 + torch.finfo(torch.float32).eps)
    assert layernorm_blowup(model, small).value == pytest.approx(exact, rel=1e-6)


def test_other_arguments_are_given_again_and_left_alone():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm = ConditionedLayerNorm()

        def forward(self, x, by_name):
            shift, scale = torch.arange(6.0), torch.full((6,), 2.0)
            if by_name.any():
                return self.norm(x=x.clone(), shift=shift, scale=scale)
            return self.norm(x.clone(), shift, scale=scale)

    for by_name in (torch.zeros(4), torch.ones(4)):
        answers = []
        model = Model()
        model.norm.register_forward_hook(lambda _, __, outputs, answers=answers: answers.append(outputs.clone()))
        expected = layernorm_blowup(nn.LayerNorm(6), FAR).per_input
        found = layernorm_blowup(model, {"x": FAR, "by_name": by_name})
        assert found.per_input.tolist() == pytest.approx(expected.tolist())
        assert len(answers) == 1  # its own hooks do not run for questions
        assert torch.allclose(answers[0], 2 * nn.functional.layer_norm(FAR - torch.arange(6.0), (6,)))


def test_norms_inside_norms_do_not_see_the_questions():
    class WrappingLayerNorm(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner, self.eps = CentringLayerNorm(), 1e-5

        def forward(self, x):
            return self.inner(x)

    found = layernorm_blowup(WrappingLayerNorm(), FAR)
    assert found.norms == ["itself", "inner"]
    for factors in found.per_norm.T:
        assert factors.tolist() == pytest.approx(layernorm_blowup(nn.LayerNorm(6), FAR).per_input.tolist())


def test_each_is_asked_once():
    calls = []

    class CountedLayerNorm(GammaBetaLayerNorm):
        def forward(self, x):
            calls.append(len(x))
            return super().forward(x)

    layernorm_blowup(CountedLayerNorm(), FAR, batch_size=1)
    assert len(calls) == 4 + 3  # batches and questions
    calls.clear()
    layernorm_blowup(CountedLayerNorm(), FAR, batch_size=1, protocol="released")
    assert len(calls) == 4  # where norms are all alike


def test_maps_are_asked_about_their_channels():
    maps = 100 + torch.randn(2, 6, 3, 3)
    assert normalisation_of(MapNorm(6), (maps,), {}).is_centring

    class SilentMapNorm(MapNorm):
        def forward(self, x):
            return nn.functional.layer_norm(x.mT.transpose(1, 3), (6,), eps=1e-3).transpose(1, 3).mT

    silent = SilentMapNorm(6)
    silent.eps = None
    assert normalisation_of(silent, (maps,), {}).eps == pytest.approx(1e-3)
