"""Fourier components of the logits by answer, and the losses with and without the key frequencies of a network.

Source: Nanda et al. (2301.05217), Section 5. They write the logits of all pairs as waves in a and b. A network that
generalises uses those of the form cos(w_k (a + b)) and sin(w_k (a + b)), w_k = 2 pi k / p. The component of a function
of (a, b) along these waves is the component of frequency k of its mean over the pairs with the same answer. So one
transform of length p over such means gives all of them.
"""

import torch
from torch import Tensor

from jostle.base import checks
from jostle.base.errors import UsageError
from jostle_papers.p2403_06925.grokking.passes import cross_entropy_
from jostle_papers.p2403_06925.grokking.tasks import GrokkingTask


def answer_means(logits: Tensor, task: GrokkingTask) -> Tensor:
    """The mean logits of the pairs with each answer, (networks, answers, tokens), from all pairs of the task."""
    cycle, answers = _cycle(task), task.answers()
    members = torch.nn.functional.one_hot(answers, cycle).T.to(logits)
    return (members / members.sum(dim=1, keepdim=True)) @ logits


def power(means: Tensor) -> Tensor:
    """The power of each frequency 1, 2, ..., summed over logits, (networks, answers // 2)."""
    return _transform(means)[:, 1:].abs().square().sum(dim=2)


def key_frequencies(means: Tensor, share: float = 0.95) -> list[tuple[int, ...]]:
    """For each network the fewest frequencies that hold ``share`` of the power of all, the strongest first.

    Differs: Nanda et al. take the frequencies of the neurons, found by inspection; here a rule finds them.

    Arguments:
        means: from ``answer_means``.
        share: of the power, in (0, 1].
    """
    checks.number("share of the power", share, above=0, most=1)
    found = []
    for spectrum in power(means.double()):
        strongest = spectrum.argsort(descending=True)
        held = spectrum[strongest].cumsum(dim=0) / spectrum.sum().clamp_min(torch.finfo(torch.float64).tiny)
        count = int((held < share * (1 - 1e-12)).sum()) + 1
        found.append(tuple(int(frequency) + 1 for frequency in strongest[:count]))
    return found


def component(means: Tensor, frequencies: list[tuple[int, ...]]) -> Tensor:
    """The part of ``means`` of some frequencies, chosen for each network, (networks, answers, tokens)."""
    transformed = _transform(means)
    kept = torch.zeros_like(transformed)
    for network, chosen in enumerate(frequencies):
        kept[network, list(chosen)] = transformed[network, list(chosen)]
    part: Tensor = torch.fft.irfft(kept, n=means.shape[1], dim=1)
    return part.to(means)


def restricted_loss(means: Tensor, task: GrokkingTask, frequencies: list[tuple[int, ...]]) -> Tensor:
    """The loss over all pairs if the logits keep only their mean and these frequencies, (networks,).

    Such logits are a function of the answer, so there is one loss for each answer.
    """
    kept = component(means, frequencies) + means.mean(dim=1, keepdim=True)
    labels = torch.arange(_cycle(task)).expand(len(means), -1)
    return cross_entropy_(kept.double(), labels)[0].mean(dim=1)


def excluded_loss(
    logits: Tensor, means: Tensor, task: GrokkingTask, frequencies: list[tuple[int, ...]], rows: Tensor
) -> Tensor:
    """The loss on training pairs if these frequencies are removed from the logits, (networks,).

    Differs: Nanda et al. leave "=" out of the classes; here it stays, as in training, so that removing nothing gives
    the training loss.

    Arguments:
        logits: of all pairs of the task, (networks, all, tokens).
        means: from ``answer_means``.
        frequencies: of each network.
        rows: pairs that each network is trained on, (networks, count).
    """
    labels = task.answers()[rows]  # (networks, count)
    index = labels.unsqueeze(2).expand(-1, -1, logits.shape[2])
    removed = component(means, frequencies).gather(1, index)
    present = logits.gather(1, rows.unsqueeze(2).expand_as(index))
    return cross_entropy_((present - removed).double(), labels)[0].mean(dim=1)


def _transform(means: Tensor) -> Tensor:
    """(networks, answers // 2 + 1, tokens), complex, in float64."""
    transformed: Tensor = torch.fft.rfft(means.double(), dim=1)
    return transformed


def _cycle(task: GrokkingTask) -> int:
    if task.cycle is None:
        raise UsageError(f"task={task.describe()} has no Fourier components by answer; addition and subtraction have")
    return task.cycle
