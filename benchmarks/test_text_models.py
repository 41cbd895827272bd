"""What text models gain where they need not compute: prefixes that one changed token leaves alone, and padding.

``test_prefix``: every token of a batch of texts is changed several times, once by reading every changed text from its
beginning and once by going on from the prefix before the token; about half of the tokens are then read.
``test_measuring``: the same from end to end, ``jostle.measure`` with a grid over all tokens of texts of different
lengths, like pairs of questions in QQP, checks and clean passes included. ``test_packing``: a recurrent network on
batches with more and less padding, packed and padded, from which the share below which a batch is packed was chosen.
Ratios of CPU times, the median of interleaved rounds.
"""

import statistics
import time
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

import jostle
from benchmarks.records import record
from benchmarks.test_text import question_lengths
from jostle.models.text_causal import CausalTextModel
from jostle.sampling.prefixes import PrefixReader

TEXTS, LENGTH, DRAWS, ROUNDS = 16, 24, 3, 3
MEASURED = 64
CAUSAL = ["text-decoder", "text-gru", "text-lstm", "text-ssm"]
SHARES = {"even": 0.9, "uneven": 0.6, "ragged": 0.3}  # real tokens among all

pytestmark = pytest.mark.usefixtures("one_thread")


def seconds(work: Callable[[], object]) -> float:
    started = time.process_time()  # of this process: others on the machine do not count
    work()
    return time.process_time() - started


def changed(embedded: Tensor, position: int) -> Tensor:
    """Each text ``DRAWS`` times, with noise in the token at ``position``, (TEXTS * DRAWS, length, dim)."""
    copies = embedded.repeat_interleave(DRAWS, dim=0)
    generator = torch.Generator().manual_seed(position)
    copies[:, position] += torch.randn(copies[:, position].shape, generator=generator)
    return copies


def from_the_beginning(model: CausalTextModel, embedded: Tensor) -> Tensor:
    mask = torch.ones(TEXTS * DRAWS, LENGTH, dtype=torch.bool)
    return torch.stack([model.classifier(model.encode(changed(embedded, t), mask)) for t in range(LENGTH)])


def from_the_prefix(model: CausalTextModel, embedded: Tensor) -> Tensor:
    prefix, rows = model.prefix(embedded), torch.arange(TEXTS).repeat_interleave(DRAWS)
    return torch.stack([model.continue_from(prefix, t, changed(embedded, t)[:, t:], rows) for t in range(LENGTH)])


@torch.inference_mode()
@pytest.mark.parametrize("name", CAUSAL)
def test_prefix(name: str) -> None:
    model = jostle.models.create(name, vocabulary=100, seed=0).eval()
    assert isinstance(model, CausalTextModel)
    embedded = model.embeddings(torch.randint(1, 100, (TEXTS, LENGTH), generator=torch.Generator().manual_seed(0)))
    torch.testing.assert_close(from_the_prefix(model, embedded), from_the_beginning(model, embedded))
    rounds = [
        (seconds(lambda: from_the_prefix(model, embedded)), seconds(lambda: from_the_beginning(model, embedded)))
        for _ in range(ROUNDS)
    ]
    ratio = statistics.median(short / whole for short, whole in rounds)
    print(f"\n{name}: going on from the prefix takes {ratio:.2f} of the time, over all {LENGTH} positions")
    record(f"text-prefix-{name}", {"share_of_the_time": ratio})
    assert ratio < 0.8


@pytest.mark.parametrize("name", CAUSAL)
def test_measuring(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model = jostle.models.create(name, vocabulary=1000, seed=0).eval()
    lengths = torch.from_numpy(question_lengths(MEASURED + 1)[1:])  # without the one text of 128 tokens
    ids = torch.randint(4, 1000, (MEASURED, int(lengths.max())), generator=torch.Generator().manual_seed(0))
    ids = ids * (torch.arange(ids.shape[1]) < lengths[:, None])
    found = []

    def measure() -> None:
        options = {
            "tokens": jostle.Embeddings(),
            "perturbation": jostle.GaussianNoise(3.87),
            "plan": jostle.Grid(DRAWS),
        }
        found.append(jostle.measure(model, ids, **options))

    def plainly() -> None:
        with monkeypatch.context() as patch:
            patch.setattr(PrefixReader, "group", lambda *_: None)
            measure()

    ratio = statistics.median(seconds(measure) / seconds(plainly) for _ in range(ROUNDS))
    print(f"\n{name}: measured in {ratio:.2f} of the time by going on from prefixes, {found[0].trials:,} trials")
    record(f"text-measuring-{name}", {"share_of_the_time": ratio})
    assert abs(found[0].value - found[1].value) < 5e-4  # in float32 a flip may hang on rounding; tests are in float64
    assert ratio < 0.75


def lengths_with(share: float) -> Tensor:
    """32 lengths up to 60, evenly spread, of which that share of a padded batch is real; the longest is 60."""
    shortest = max(1, round(60 * (2 * share - 1)))
    spread = torch.linspace(shortest, 60, 32)
    power = 1.0 if shortest > 1 else (1 - share) / share  # mean of u^power is 1 / (1 + power)
    return (shortest + (60 - shortest) * ((spread - shortest) / (60 - shortest)) ** power).round().long()


@torch.inference_mode()
@pytest.mark.parametrize("name", ["text-gru", "text-lstm"])
@pytest.mark.parametrize("kind", SHARES)
def test_packing(name: str, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model = jostle.models.create(name, vocabulary=100, seed=0).eval()
    lengths = lengths_with(SHARES[kind])
    ids = (torch.arange(60) < lengths[:, None]).long()
    share = ids.float().mean().item()
    assert abs(share - SHARES[kind]) < 0.05

    def timed(worth_padding: float) -> float:
        monkeypatch.setattr(type(model), "worth_padding", worth_padding)
        return seconds(lambda: model(ids))

    rounds = [(timed(2.0), timed(0.0)) for _ in range(ROUNDS + 1)][1:]
    ratio = statistics.median(packed / padded for packed, padded in rounds)
    print(f"\n{name}: packed takes {ratio:.2f} of the time of padded, {share:.0%} of the tokens real")
    record(f"text-packing-{name}-{kind}", {"share_real": share, "packed_over_padded": ratio})
