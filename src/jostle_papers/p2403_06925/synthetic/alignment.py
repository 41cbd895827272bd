"""Which tokens a network uses: the directions of its read-out, and where its attention goes."""

import math

import torch
from torch import Tensor

from jostle_papers.p2403_06925.synthetic.network import SelfAttention
from jostle_papers.p2403_06925.synthetic.task import GROUPS, SparseFrequent


def alignments(network: SelfAttention, task: SparseFrequent) -> dict[str, float]:
    """The mean over positions of the cosine between a row of U W_V^T and v_sp, v_freq and v_irrel, by group.

    Paper 1 (2403.06925), Section 4.1 and appendix A.1.

    Arguments:
        network: trained or not.
        task: with the directions.
    """
    with torch.no_grad():
        rows = torch.nn.functional.normalize(network.readout, dim=1)  # (num_tokens, vocabulary)
        directions = {name: task.direction(name).to(rows.dtype) for name in GROUPS}
        return {name: float((rows @ (one / one.norm().clamp_min(1e-12))).mean()) for name, one in directions.items()}


def attention_shares(network: SelfAttention, task: SparseFrequent, tokens: Tensor) -> dict[str, float]:
    """The softmax scores summed over the tokens of a group, mean over positions and sequences, by group.

    They add up to 1; uniform attention gives n_s / T, n_f / T and the rest. Paper 1 (2403.06925), appendix A.1.

    Arguments:
        network: trained or not.
        task: with the groups.
        tokens: (batch, num_tokens).
    """
    with torch.no_grad():
        shares = network.attention(tokens).double().mean(dim=(0, 1))  # (vocabulary,)
    return {name: float(shares[task.group(name)].sum()) for name in GROUPS}


def expected_alignments(task: SparseFrequent) -> dict[str, float]:
    """The alignments of a network that starts near 0, from the gradient there.

    Near 0 attention is uniform, and every row of the gradient of the logistic loss in U W_V^T is the mean of
    -y counts / (2 T), which is a negative multiple of

        n_s v_sp + (D / m) v_freq,    D = 2 floor((n_f + n_d) / 2) - n_f.

    Growth from small weights follows it, and so does the separator of least norm under uniform attention. The lengths
    of its two parts are n_s and D / sqrt(m), times sqrt(2): these two numbers decide which tokens such a network uses
    most. With the sparse tokens exchanged it stays right exactly if D / sqrt(m) > n_s. Our own derivation; the paper
    explains the choice of tokens by sensitivity.

    >>> task = SparseFrequent(sparse=1, frequent=17, difference=7, kinds=20, vocabulary=69)
    >>> {name: round(cosine, 3) for name, cosine in expected_alignments(task).items()}
    {'sparse': 0.538, 'frequent': 0.843, 'irrelevant': 0.0}
    """
    lengths = {"sparse": float(task.sparse), "frequent": task.lead / math.sqrt(task.kinds), "irrelevant": 0.0}
    whole = math.hypot(*lengths.values())
    return {name: length / whole for name, length in lengths.items()}
