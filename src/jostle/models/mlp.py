"""Multi-layer perceptrons on the flattened image."""

from collections.abc import Callable, Sequence
from itertools import pairwise

from torch import Tensor, nn

from jostle.base import checks
from jostle.models import register
from jostle.models.images import check_images

ACTIVATIONS: dict[str, Callable[[], nn.Module]] = {
    "leaky-relu": nn.LeakyReLU,
    "sigmoid": nn.Sigmoid,
    "relu": nn.ReLU,
}


@register("mlp")
class MLP(nn.Module):
    """Flatten -> (Linear -> activation) for each hidden width -> Linear without bias.

    At the default sizes it is paper 1's (2403.06925) MLP for Fashion-MNIST, 784-512-128-10, whose last layer has no
    bias.

    Arguments:
        image_size: height and width.
        channels: colours of the image.
        classes: logits; 1 for a binary task with a single logit.
        hidden: widths of the hidden layers, e.g. ``(512, 128)``.
        activation: ``leaky-relu`` (slope 0.01), ``sigmoid`` or ``relu``.
    """

    def __init__(
        self,
        *,
        image_size: int = 28,
        channels: int = 1,
        classes: int = 10,
        hidden: Sequence[int] = (512, 128),
        activation: str = "leaky-relu",
    ) -> None:
        super().__init__()
        checks.sizes(image_size=image_size, channels=channels, classes=classes)
        checks.choice("activation", activation, ACTIVATIONS)
        checks.wholes("hidden", hidden, least=1, example="(512, 128)")
        self.image_size, self.channels = image_size, channels
        widths = [channels * image_size**2, *hidden]
        layers: list[nn.Module] = []
        for width_in, width_out in pairwise(widths):
            layers += [nn.Linear(width_in, width_out), ACTIVATIONS[activation]()]
        self.layers = nn.Sequential(*layers)
        self.classifier = nn.Linear(widths[-1], classes, bias=False)

    def chain(self) -> nn.Sequential:
        """The whole network as one chain of layers, with the same weights."""
        return nn.Sequential(nn.Flatten(), self.layers, self.classifier)

    def features(self, images: Tensor) -> Tensor:
        """The last hidden layer, (batch, hidden[-1])."""
        check_images(images, self.channels, self.image_size)
        hidden: Tensor = self.layers(images.flatten(start_dim=1))  # (batch, hidden[-1])
        return hidden

    def forward(self, images: Tensor) -> Tensor:
        """Images to logits, (batch, channels, image_size, image_size) -> (batch, classes)."""
        logits: Tensor = self.classifier(self.features(images))
        return logits
