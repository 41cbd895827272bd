"""Longer answers of language models: a choice among given answers, and what they write next.

Both are modules around a language model, so that everything jostle does with a classifier can be done with them.
``AnswerChoices`` turns it into a classifier whose classes are answers. ``Continuation`` writes on, most likely token
first; the responses ``continuation-flip`` and ``continuation-distance`` compare what it wrote.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from jostle.base import checks
from jostle.base.errors import UsageError
from jostle.base.model import logits_of
from jostle.integrations.prompts import Prompts, network_of, tokenizer_of

_DECODER_IDS = "decoder_input_ids"


class Asked(nn.Module):
    """A language model that is called several times for one answer.

    A token that jostle moves inside the model is moved in each of the calls. Padding must be on the right, so that
    tokens can be appended; jostle puts it there.

    Attributes:
        calls: how often the network is called for an answer.

    Arguments:
        model: a language model or encoder-decoder of transformers, a pipeline, or a module from ids to logits (batch,
            tokens, vocabulary).
    """

    def __init__(self, model: Any) -> None:
        super().__init__()
        network = network_of(model)
        if not isinstance(network, nn.Module):
            raise UsageError(f"a language model must be an nn.Module, not {type(network).__name__}")
        self.network, self.calls = network, 1
        self.training = network.training  # a module of its own would be in train mode, and its network not

    @property
    def config(self) -> Any:
        """The network's own configuration, if it has one."""
        return getattr(self.network, "config", None)

    def get_input_embeddings(self) -> Any:
        """The table of word vectors."""
        return self.network.get_input_embeddings()  # type: ignore[operator]

    def logits(self, input_ids: Tensor, attention_mask: Tensor | None, decoder_ids: Tensor | None) -> Tensor:
        """(batch, tokens, vocabulary) of the network, at the tokens of the text or of its decoder."""
        named = {} if attention_mask is None else {"attention_mask": attention_mask}
        if decoder_ids is not None:
            named[_DECODER_IDS] = decoder_ids
        try:
            return logits_of(self.network(input_ids=input_ids, **named))
        except TypeError:  # a module of somebody's own, from ids alone
            return logits_of(self.network(input_ids))


class AnswerChoices(Asked):
    """A language model as a classifier: which of the given answers is the most likely one after the prompt?

    The logit of an answer is its log-likelihood, the sum of log p(token | prompt and the answer's tokens before it).

    >>> import torch
    >>> class Copies(nn.Module):
    ...     def forward(self, ids): return torch.nn.functional.one_hot(ids, 5).double()
    >>> AnswerChoices(Copies(), [[1], [2, 2]])(torch.tensor([[4, 2]])).argmax(dim=1)
    tensor([1])

    Arguments:
        model: as for ``Asked``.
        choices: the answers: texts, if the model has a tokenizer or one is given, or lists of token ids.
        tokenizer: cuts the answers into tokens, without special ones.
        mean: whether the logit is the mean over an answer's tokens, so that long answers have a chance.
    """

    def __init__(
        self, model: Any, choices: Sequence[str | Sequence[int]], tokenizer: Any = None, *, mean: bool = False
    ) -> None:
        super().__init__(model)
        self.mean, self.choices = checks.truth("mean", mean), _as_ids(choices, tokenizer or tokenizer_of(model))
        self.calls = len(self.choices)

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor | None = None, decoder_input_ids: Tensor | None = None
    ) -> Tensor:
        """The log-likelihood of each answer, (batch, choices)."""
        real = torch.ones_like(input_ids) if attention_mask is None else attention_mask
        scores = []
        for choice in self.choices:
            answer = torch.tensor(choice, device=input_ids.device).expand(len(input_ids), -1)  # (batch, tokens)
            if decoder_input_ids is not None:
                decoder = torch.cat([decoder_input_ids, answer[:, :-1]], dim=1)
                logits = self.logits(input_ids, real, decoder)[:, -len(choice) :]
            else:
                ids, mask = append(input_ids, real, answer[:, :-1])
                places = real.sum(dim=1, keepdim=True) - 1 + torch.arange(len(choice), device=ids.device)
                logits = self.logits(ids, mask, None)
                logits = logits[torch.arange(len(ids), device=ids.device)[:, None], places]
            logs = logits.log_softmax(dim=-1).gather(2, answer[:, :, None])[..., 0]  # (batch, tokens)
            scores.append(logs.mean(dim=1) if self.mean else logs.sum(dim=1))
        return torch.stack(scores, dim=1)


class Continuation(Asked):
    """What a language model writes after the prompt, the most likely token each time: token ids (batch, length).

    Arguments:
        model: as for ``Asked``.
        length: how many tokens.
    """

    def __init__(self, model: Any, length: int = 8) -> None:
        super().__init__(model)
        self.calls = self.length = checks.whole("length", length, least=1)

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor | None = None, decoder_input_ids: Tensor | None = None
    ) -> Tensor:
        """The ids of the tokens that follow, (batch, length)."""
        ids, mask = input_ids, torch.ones_like(input_ids) if attention_mask is None else attention_mask
        decoder, written = decoder_input_ids, list[Tensor]()
        rows = torch.arange(len(ids), device=ids.device)
        for _ in range(self.length):
            logits = self.logits(ids, mask, decoder)
            last = logits[:, -1] if decoder is not None else logits[rows, mask.sum(dim=1) - 1]
            written.append(last.argmax(dim=-1))
            if decoder is not None:
                decoder = torch.cat([decoder, written[-1][:, None]], dim=1)
            else:
                ids, mask = append(ids, mask, written[-1][:, None])
        return torch.stack(written, dim=1)


def append(ids: Tensor, mask: Tensor, tokens: Tensor) -> tuple[Tensor, Tensor]:
    """Texts, padded on the right, with more tokens after their last one, and their masks.

    >>> ids, mask = append(torch.tensor([[5, 6], [7, 0]]), torch.tensor([[1, 1], [1, 0]]), torch.tensor([[8], [9]]))
    >>> ids.tolist(), mask.tolist()
    ([[5, 6, 8], [7, 9, 0]], [[1, 1, 1], [1, 1, 0]])
    """
    count = tokens.shape[1]
    places = mask.sum(dim=1, keepdim=True) + torch.arange(count, device=ids.device)  # (batch, count)
    longer, real = (nn.functional.pad(part, (0, count)) for part in (ids, mask))
    return longer.scatter(1, places, tokens), real.scatter(1, places, torch.ones_like(tokens))


def _as_ids(choices: Sequence[str | Sequence[int]], tokenizer: Any) -> list[list[int]]:
    """The answers as token ids, at least two of them."""
    if isinstance(choices, str) or len(choices) < 2:
        raise UsageError(f"choices={choices!r} must be at least two answers, for example [' yes', ' no']")
    texts = [one for one in choices if isinstance(one, str)]
    if not texts:
        return [[int(number) for number in one] for one in choices]
    if len(texts) < len(choices):
        raise UsageError("choices must be all texts or all lists of token ids")
    if tokenizer is None:
        raise UsageError("choices are texts, and the model has no tokenizer: give tokenizer=, or token ids")
    prompts = Prompts.of(texts, tokenizer, special=False)
    lengths = prompts.inputs["attention_mask"].sum(dim=1).tolist()
    return [row[:length] for row, length in zip(prompts.inputs["input_ids"].tolist(), lengths, strict=True)]
