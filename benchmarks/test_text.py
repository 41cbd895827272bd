"""What it gains to cut texts to their length: batches by length, against padding everything to the longest.

A RoBERTa of 4 layers, width 256 and hidden width 3072, as in the code of paper 1 (2403.06925), with random weights.
Lengths are like those of pairs of questions in QQP, counted in words with 4 special tokens: 10,000 real pairs have a
mean of 25.6 and a standard deviation of 9.9. The longest is cut at 128 tokens, as in that code, and all are padded to
that. Both ways are timed in one run, in CPU time, and must find the same flips. The large case takes about half an hour
on one core; run the small one, in which the one long text weighs ten times as much, with ``-k 64-``.
"""

import time

import numpy as np
import pytest
import torch

import jostle
from benchmarks.records import record
from jostle.sampling.plans import Batching

LONGEST, DRAWS, WORDS, PAD = 128, 3, 8000, 1

pytestmark = pytest.mark.usefixtures("one_thread")


def question_lengths(count: int) -> np.ndarray:
    generator = np.random.Generator(np.random.PCG64(0))
    lengths = np.clip(np.round(np.exp(generator.normal(3.17, 0.37, count))), 8, LONGEST).astype(int)
    lengths[0] = LONGEST
    return lengths


def texts(count: int) -> dict[str, torch.Tensor]:
    real = torch.arange(LONGEST) < torch.from_numpy(question_lengths(count))[:, None]
    ids = torch.randint(4, WORDS, real.shape, generator=torch.Generator().manual_seed(0))
    return {"input_ids": ids.masked_fill(~real, PAD), "attention_mask": real.long()}


def encoder() -> torch.nn.Module:
    from transformers import RobertaConfig, RobertaForSequenceClassification

    torch.manual_seed(0)
    config = RobertaConfig(
        vocab_size=WORDS,
        hidden_size=256,
        num_hidden_layers=4,
        num_attention_heads=8,
        intermediate_size=3072,
        max_position_embeddings=LONGEST + 2,
        pad_token_id=PAD,
    )
    return RobertaForSequenceClassification(config).eval()


def never(*_: object) -> bool:
    return False


def measured(model: torch.nn.Module, inputs: dict[str, torch.Tensor]) -> tuple[jostle.Measurement, float]:
    started = time.process_time()
    found = jostle.measure(
        model, inputs, tokens=jostle.Embeddings(), perturbation=jostle.GaussianNoise(3.87), plan=jostle.Grid(DRAWS)
    )
    return found, time.process_time() - started


@pytest.mark.parametrize(("count", "least"), [(64, 3.5), (640, 5.0)])
def test_cut_to_length_against_padded_to_the_longest(count, least, monkeypatch):
    model, inputs = encoder(), texts(count)
    cut, seconds_cut = measured(model, inputs)
    with monkeypatch.context() as patch:
        patch.setattr(Batching, "trims", property(never, never), raising=False)
        whole, seconds_whole = measured(model, inputs)
    ratio = seconds_whole / seconds_cut
    lengths = question_lengths(count)
    tokens = LONGEST * lengths.sum() / (lengths**2).sum()  # a text is asked about once for each of its tokens
    print(
        f"\n{count} texts, {cut.trials:,} trials: {seconds_whole:.1f} s padded, {seconds_cut:.1f} s cut to length: "
        f"{ratio:.2f} times as fast, with {tokens:.2f} times fewer tokens; flips {cut.value:.4f}"
    )
    record(f"text-cut-to-length-{count}", {"times_as_fast": ratio, "times_fewer_tokens": float(tokens)})
    assert cut.per_input.tolist() == whole.per_input.tolist()
    assert ratio >= least
