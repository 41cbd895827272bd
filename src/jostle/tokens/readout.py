"""Where the answer of a model of texts is read, if it answers at every token.

A language model answers with logits (batch, columns, vocabulary): at each token its prediction of the next one. A token
classifier answers with a label at each token. ``Readout`` picks the answers that a response compares. Tokens are
aligned at the end of their texts, so that the answer at the last token is always found in the last place, also after a
token was deleted, and also if only the end of a text was computed.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from jostle.base.errors import UsageError
from jostle.integrations.answers import Asked
from jostle.responses import Response

_BY_TOKEN = ("ForCausalLM", "LMHeadModel", "ForConditionalGeneration", "ForTokenClassification")  # of transformers
_LABELS = "ForTokenClassification"
_SEVERAL = ("later", "every", "others")
DECODER_IDS = "decoder_input_ids"
DECODER_MASK = "decoder_attention_mask"


def answers_by_token(model: Any) -> bool:
    """Whether a model answers at tokens, or writes after the last one, by its class."""
    return type(model).__name__.endswith(_BY_TOKEN) or isinstance(model, Asked)


def gives_labels(model: Any) -> bool:
    """Whether a model of transformers gives a label to every token, by the name of its class."""
    return type(model).__name__.endswith(_LABELS)


@dataclass(frozen=True)
class Readout:
    """Which answers of a model are read: a place of ``jostle.responses.PLACES``.

    >>> outputs = torch.arange(8.0).reshape(2, 4, 1)
    >>> real = torch.tensor([[True, True, False, False], [True, True, True, True]])
    >>> Readout("last").read(outputs, real, 4).tolist()
    [[1.0], [7.0]]
    >>> Readout("every").read(outputs, real, 4)[..., 0].tolist()
    [[0.0, 0.0, 0.0, 1.0], [4.0, 5.0, 6.0, 7.0]]

    Arguments:
        at: the place.
    """

    at: str

    @classmethod
    def of(cls, response: Response) -> "Readout":
        """The place that a response reads."""
        return cls(response.at)

    @property
    def reads_tokens(self) -> bool:
        """Whether the answers at single tokens are asked for."""
        return self.at in ("last", *_SEVERAL)

    @property
    def reads_several(self) -> bool:
        """Whether more than one answer is read for a text."""
        return self.at in _SEVERAL

    def check(self, model: Any, name: str) -> None:
        """Raise if a token classifier is read as if it predicted the next token."""
        if self.at in ("answer", "last") and gives_labels(model):
            raise UsageError(
                f"{name} gives a label to every token: use response label-flip, the share of tokens whose label "
                "changes, or other-label-flip"
            )

    def read(self, outputs: Tensor, real: Tensor, width: int) -> Tensor:
        """The answers that are read: (batch, classes) of the last token, or (batch, width, classes) of all.

        Arguments:
            outputs: (batch, columns, classes).
            real: (batch, columns), true for tokens that are not padding.
            width: tokens of the longest text of all; shorter texts have zeros in front.
        """
        columns = outputs.shape[1]
        last = columns - 1 - real.flip(1).byte().argmax(dim=1)  # (batch,)
        if not self.reads_several:
            return outputs[torch.arange(len(outputs), device=outputs.device), last]
        source = last[:, None] - torch.arange(width - 1, -1, -1, device=outputs.device)  # (batch, width)
        rows = torch.arange(len(outputs), device=outputs.device)[:, None]
        return outputs[rows, source.clamp(min=0)].masked_fill((source < 0)[:, :, None], 0)

    def is_read(self, moved: NDArray[np.int64], lengths: NDArray[np.int64], width: int) -> NDArray[np.bool_]:
        """(trials, width): the tokens whose answers are compared, when one token of each text moves.

        >>> Readout("later").is_read(np.array([1]), np.array([3]), 4).tolist()
        [[False, False, True, True]]

        Arguments:
            moved: (trials,) the number of the token that moves, from 0 in its text.
            lengths: (trials,) tokens of each text.
            width: as for ``read``.
        """
        number = np.arange(width) - (width - lengths[:, None])  # of each place in its text
        if self.at == "later":
            return np.asarray(number >= moved[:, None])
        is_real = np.asarray(number >= 0)
        return is_real & (number != moved[:, None]) if self.at == "others" else is_real
