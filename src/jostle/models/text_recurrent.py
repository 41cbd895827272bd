"""Recurrent networks of texts: Hochreiter and Schmidhuber 1997 (LSTM), Cho et al. 2014 (GRU, 1406.1078)."""

from abc import abstractmethod

import torch
from torch import Tensor, nn
from torch.nn.functional import linear
from torch.nn.utils.rnn import pack_padded_sequence

from jostle.base import checks
from jostle.models import register_text
from jostle.models.text_causal import CausalTextModel, Past
from jostle.models.text_model import TokenEmbedding, pick

_WEIGHTS = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")  # of a layer, in torch's order


class TextRecurrent(CausalTextModel):
    """Words -> LayerNorm -> ``depth`` recurrent layers -> last layer after the last real token -> logits.

    Arguments:
        vocabulary: number of ids; id 0 is padding.
        classes: logits; 1 for a binary task with a single logit.
        dim: width of a word and of every layer.
        depth: number of recurrent layers.
        max_length: most real tokens of a text; the weights do not depend on it.
        dropout: share of the embeddings, and of the outputs of all layers but the last, set to 0 in training.
    """

    layer: type[nn.LSTM] | type[nn.GRU]
    worth_padding: float  # below this share of real tokens a batch is packed, so that padding is not computed

    def __init__(
        self,
        *,
        vocabulary: int = 8000,
        classes: int = 2,
        dim: int = 256,
        depth: int = 4,
        max_length: int = 512,
        dropout: float = 0.1,
    ) -> None:
        super().__init__()
        checks.sizes(vocabulary=vocabulary, classes=classes, dim=dim, depth=depth, max_length=max_length)
        checks.number("dropout", dropout, least=0, below=1)
        self.embeddings = TokenEmbedding(vocabulary=vocabulary, dim=dim, max_length=max_length, dropout=dropout)
        between = dropout if depth > 1 else 0.0  # torch warns of dropout between layers where there is one.
        self.layers = self.layer(dim, dim, depth, batch_first=True, dropout=between)
        self.classifier = nn.Linear(dim, classes)

    def read(self, embedded: Tensor, lengths: Tensor, past: Past | None) -> tuple[Tensor, Past]:
        """The last layer after the last real token, (batch, dim), and the state of all layers, (batch, depth, dim)."""
        state = None if past is None else self._state(tuple(part.transpose(0, 1).contiguous() for part in past))
        if int(lengths.sum()) < self.worth_padding * embedded.shape[0] * embedded.shape[1]:
            packed = pack_padded_sequence(embedded, lengths.cpu(), batch_first=True, enforce_sorted=False)
            parts = self._parts(self.layers(packed, state)[1])
            return parts[0][:, -1], parts
        outputs, state = self.layers(embedded, state)
        return pick(outputs, lengths - 1), self._parts(state)

    def remember(self, embedded: Tensor, lengths: Tensor) -> tuple[Past | None, ...]:
        """The state before each token; layer by layer over all tokens, because single steps wait for the weights.

        For 30 texts on one core a step of one token takes 91 (GRU) to 124 us a text, one of many tokens 46 us.
        """
        inputs, layers = embedded, list[Past]()
        real = torch.arange(embedded.shape[1], device=lengths.device) < lengths[:, None]  # (batch, length)
        for number in range(self.layers.num_layers):
            weights = [getattr(self.layers, f"{name}_l{number}") for name in _WEIGHTS]
            layers.append(self.after_each(inputs, weights, real))
            inputs = layers[-1][0]
        parts = [torch.stack(part, dim=2) for part in zip(*layers, strict=True)]  # (batch, length, depth, dim)
        return None, *(tuple(part[:, position] for part in parts) for position in range(embedded.shape[1] - 1))

    @staticmethod
    @abstractmethod
    def after_each(inputs: Tensor, weights: list[Tensor], real: Tensor) -> Past:
        """The state of one layer after each token, (batch, length, dim) each; its first part is the layer's output.

        ``real`` (batch, length) says which tokens are real; after the others the state may be anything.
        """

    @staticmethod
    def _state(parts: Past) -> Tensor | Past:
        """The state as torch takes it: a pair for an LSTM, a tensor for a GRU."""
        return parts if len(parts) > 1 else parts[0]

    @staticmethod
    def _parts(state: Tensor | Past) -> Past:
        parts = (state,) if isinstance(state, Tensor) else state
        return tuple(part.transpose(0, 1) for part in parts)


@register_text("text-lstm")
class TextLSTM(TextRecurrent):
    """Words -> LayerNorm -> ``depth`` LSTM layers -> last layer after the last real token -> logits.

    The sizes are those of paper 1's (2403.06925, Section 6) LSTM; with its vocabulary of 50,265 it has 14,974,210
    parameters. Weights start from torch's defaults, as in that paper.

    Differs: all parameters are trained; the paper's code gives only the recurrent ones to its optimiser.
    """

    layer = nn.LSTM
    worth_padding = 0.6  # Packed over padded, CPU time: 1.42 with 90 % real tokens, 0.97 with 60 %, 0.62 with 32 %.

    @staticmethod
    def after_each(inputs: Tensor, weights: list[Tensor], real: Tensor) -> Past:
        """Outputs h and cells c_t = f_t c_{t-1} + i_t g_t; the gates i, f and g are functions of x_t and h_{t-1}."""
        empty = inputs.new_zeros(1, len(inputs), weights[1].shape[1])  # (1, batch, dim)
        outputs = torch.lstm(inputs, (empty, empty), weights, True, 1, 0.0, False, False, True)[0]
        before = torch.cat([torch.zeros_like(outputs[:, :1]), outputs[:, :-1]], dim=1)
        sums = linear(inputs[real], weights[0], weights[2]) + linear(before[real], weights[1], weights[3])
        enter, keep, new, _ = sums.chunk(4, dim=1)  # (real tokens, dim)
        entering, kept = torch.zeros_like(outputs), torch.zeros_like(outputs)
        entering[real], kept[real] = enter.sigmoid() * new.tanh(), keep.sigmoid()
        cells = [entering[:, 0]]
        for position in range(1, inputs.shape[1]):
            cells.append(torch.addcmul(entering[:, position], kept[:, position], cells[-1]))
        return outputs, torch.stack(cells, dim=1)


@register_text("text-gru")
class TextGRU(TextRecurrent):
    """Words -> LayerNorm -> ``depth`` GRU layers -> last layer after the last real token -> logits.

    The sizes are those of ``text-lstm``. Not part of paper 1. Weights start from torch's defaults.
    """

    layer = nn.GRU
    worth_padding = 0.9  # Packed over padded, CPU time: 0.91 with 90 % real tokens, 0.68 with 60 %, 0.42 with 32 %.

    @staticmethod
    def after_each(inputs: Tensor, weights: list[Tensor], real: Tensor) -> Past:  # noqa: ARG004
        """Outputs, which are the whole state of a GRU."""
        empty = inputs.new_zeros(1, len(inputs), weights[1].shape[1])  # (1, batch, dim)
        return (torch.gru(inputs, empty, weights, True, 1, 0.0, False, False, True)[0],)
