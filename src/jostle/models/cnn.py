"""Plain convolutional networks."""

from torch import Tensor, nn

from jostle.base import checks
from jostle.base.errors import UsageError
from jostle.models import register
from jostle.models.images import check_images


@register("cnn")
class CNN(nn.Module):
    """conv 3x3 -> LeakyReLU -> conv 3x3 -> max-pool 2 -> Linear -> LeakyReLU -> Linear, without padding.

    At the default sizes it is paper 1's (2403.06925) CNN for Fashion-MNIST, 600,810 parameters. That network has no
    activation between the second convolution and the pooling, so neither has this one.

    Arguments:
        image_size: height and width, at least 6.
        channels: colours of the image.
        classes: logits; 1 for a binary task with a single logit.
        width: channels of both convolutions.
        hidden: width of the hidden fully connected layer.
    """

    def __init__(
        self, *, image_size: int = 28, channels: int = 1, classes: int = 10, width: int = 32, hidden: int = 128
    ) -> None:
        super().__init__()
        checks.sizes(image_size=image_size, channels=channels, classes=classes, width=width, hidden=hidden)
        if image_size < 6:
            raise UsageError(f"image_size={image_size} is too small: two 3x3 convolutions and the pooling need 6")
        self.image_size, self.channels = image_size, channels
        self.convolutions = nn.Sequential(
            nn.Conv2d(channels, width, 3), nn.LeakyReLU(), nn.Conv2d(width, width, 3), nn.MaxPool2d(2)
        )
        pooled_size = (image_size - 4) // 2
        self.hidden = nn.Sequential(nn.Flatten(), nn.Linear(width * pooled_size**2, hidden), nn.LeakyReLU())
        self.classifier = nn.Linear(hidden, classes)

    def chain(self) -> nn.Sequential:
        """The whole network as one chain of layers, with the same weights."""
        return nn.Sequential(self.convolutions, self.hidden, self.classifier)

    def features(self, images: Tensor) -> Tensor:
        """The hidden fully connected layer, (batch, hidden)."""
        check_images(images, self.channels, self.image_size)
        pooled = self.convolutions(images)  # (batch, width, pooled_size, pooled_size)
        hidden: Tensor = self.hidden(pooled)  # (batch, hidden)
        return hidden

    def forward(self, images: Tensor) -> Tensor:
        """Images to logits, (batch, channels, image_size, image_size) -> (batch, classes)."""
        logits: Tensor = self.classifier(self.features(images))
        return logits
