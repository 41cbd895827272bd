"""The number that an ascent raises: the response itself, or for flips the margin, which has a gradient."""

from typing import ClassVar

import torch
from torch import Tensor

from jostle.responses import Flip, Margin, Response, logits_of

DOWN, UP, EITHER = 1, -1, 0  # ways a margin can go
AIMS = (2, 3, 4, 5)  # down, towards the first, second, ... of the other classes


class Objective(Response):
    """A response, and a height that grows towards a large response and has a gradient.

    A flip has no gradient. So the margin m of the clean prediction is lowered, and flips are counted on the way:

        several logits: m = z_c - max of the others, c the clean prediction;   one logit z: m = sign(z_clean) z

    If a single clean logit is exactly 0, |z| is raised instead: any other sign is a flip. For all other responses the
    height is the response itself. A margin has many slopes that do not meet: it can fall towards any of the other
    classes, and |m' - m| also grows where the margin rises. An ascent that starts on a low slope never leaves it, so
    every start has a way to go: ``DOWN``, ``UP``, ``EITHER``, or one of ``AIMS``. With the k-th aim, z_j - z_c is
    ascended for the class j that comes k-th after the prediction in the clean outputs.

    Arguments:
        response: what counts as a change.
    """

    name: ClassVar[str] = "objective"

    def __init__(self, response: Response) -> None:
        self.response = response
        self.is_flip, self.is_margin = isinstance(response, Flip), isinstance(response, Margin)

    @property
    def has_margin(self) -> bool:
        """Whether the response is about the margin: flips and margins."""
        return self.is_flip or self.is_margin

    @property
    def can_ascend(self) -> bool:
        """Whether there is a number to ascend. Binary responses other than flips have none."""
        return self.is_flip or not self.response.is_binary

    def reference(self, outputs: Tensor) -> Tensor:
        """What to remember of clean outputs; for flips and margins (batch, 2 + others): prediction, margin, others.

        The others are the classes that come next, best first, as many as ``AIMS``; none for a single logit.
        """
        own = self.response.reference(outputs)
        if not self.has_margin:
            return own
        predicted = (own if self.is_flip else own[:, 0]).double()
        margin = self._margin(predicted, outputs) if self.is_flip else own[:, 1]
        logits = logits_of(outputs)
        count = min(len(AIMS), logits.shape[1] - 1)
        if not count:
            return torch.stack([predicted, margin], dim=1)
        others = logits.double().scatter(1, predicted.long()[:, None], -torch.inf)
        return torch.cat([predicted[:, None], margin[:, None], others.topk(count).indices.double()], dim=1)

    def change(self, reference: Tensor, outputs: Tensor) -> Tensor:
        """The response (batch,), in double precision."""
        own = reference[:, 0].long() if self.is_flip else reference
        return self.response.change(own, outputs).double()

    def height(self, reference: Tensor, outputs: Tensor, ways: Tensor | None = None) -> Tensor:
        """The number that is ascended, (batch,).

        Arguments:
            reference: of the clean outputs.
            outputs: of the changed inputs.
            ways: (batch,), which way each margin goes. Without them the height is the one that changes are compared
                by: minus the margin for flips, and the response for everything else.
        """
        if not self.has_margin or (self.is_margin and ways is None):
            return self.change(reference, outputs)
        fallen = reference[:, 1] - self._margin(reference[:, 0], outputs)
        if ways is None:
            return fallen - reference[:, 1]
        aimed = self._towards(reference, outputs, ways)
        way = ways.to(fallen)
        either = fallen.abs() if self.is_margin else fallen
        return torch.where(way == EITHER, either, torch.where(way >= AIMS[0], aimed, way * fallen))

    def clean_height(self, reference: Tensor) -> Tensor:
        """The height without a change, (batch,)."""
        return -reference[:, 1] if self.is_flip else torch.zeros(len(reference), dtype=torch.float64)

    def _towards(self, reference: Tensor, outputs: Tensor, ways: Tensor) -> Tensor:
        """z_j - z_c (batch,) for the class j of each aim; any number where the way is no aim."""
        logits = logits_of(outputs).double()
        if logits.shape[1] == 1:
            return -reference[:, 0] * logits[:, 0]
        aim = (ways - AIMS[0]).clamp(0, reference.shape[1] - 3).long()[:, None]
        target = reference[:, 2:].gather(1, aim).long()
        return (logits.gather(1, target) - logits.gather(1, reference[:, :1].long()))[:, 0]

    @staticmethod
    def _margin(predicted: Tensor, outputs: Tensor) -> Tensor:
        logits = logits_of(outputs).double()
        if logits.shape[1] == 1:
            return torch.where(predicted == 0, -logits[:, 0].abs(), predicted * logits[:, 0])
        column = predicted.long()[:, None]
        return logits.gather(1, column)[:, 0] - logits.scatter(1, column, -torch.inf).amax(dim=1)
