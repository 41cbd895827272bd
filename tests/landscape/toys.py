"""Small networks with known landscapes."""

import torch
from torch import Tensor, nn

from jostle import models
from tests.test_contracts import MODEL_EXAMPLES


def zoo(name: str) -> nn.Module:
    return models.create(name, image_size=8, channels=1, classes=3, seed=0, **MODEL_EXAMPLES[name])


def images(count: int = 6) -> Tensor:
    return torch.randn(count, 1, 8, 8, generator=torch.Generator().manual_seed(1))


def linear(weights: list[list[float]], bias: list[float] | None = None) -> nn.Linear:
    matrix = torch.tensor(weights)
    layer = nn.Linear(matrix.shape[1], matrix.shape[0], bias=bias is not None)
    layer.weight.data.copy_(matrix)
    if bias is not None:
        layer.bias.data.copy_(torch.tensor(bias))
    return layer


class Square(nn.Module):
    """x |theta|^2, one output."""

    def __init__(self, theta: list[float]) -> None:
        super().__init__()
        self.theta = nn.Parameter(torch.tensor(theta))

    def forward(self, x: Tensor) -> Tensor:
        return x[:, 0] * self.theta.square().sum()


class Counting(nn.Module):
    """Counts its calls in a buffer, and can be told to raise in one of them."""

    def __init__(self, error: type[BaseException] | None = None, at: int = 4) -> None:
        super().__init__()
        self.level, self.layer, self.norm, self.drop = nn.LayerNorm(3), nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Dropout()
        self.register_buffer("calls", torch.zeros((), dtype=torch.int64))
        self.error, self.at, self.seen = error, at, 0

    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1
        self.seen += 1
        if self.error is not None and self.seen == self.at:
            raise self.error("stop")
        return self.drop(self.norm(self.layer(self.level(x))))


def state(model: nn.Module) -> tuple[dict[str, bytes], list[bool], list[int]]:
    """Every bit of the parameters and buffers, every mode, and which tensor objects they are."""
    bits = {name: tensor.detach().numpy().tobytes() for name, tensor in model.state_dict().items()}
    return bits, [module.training for module in model.modules()], [id(tensor) for tensor in model.parameters()]
