"""What training with a penalty or an augmentation costs on top of training without, measured in one run, interleaved.

A step with the penalty makes one more forward and backward pass, so the ratio is near 2 where the passes are all a step
costs; the optimiser's share, which is the same with and without, lowers it, and drawing noise raises it. All three
networks train on 28 x 28 images in batches of 100. Printed as ratios of CPU times, the median of interleaved rounds;
the ratio to the same step with a second pass on ready-made inputs says what is the penalty's own.
"""

import copy
import statistics
import time
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

import jostle
from benchmarks.records import record
from jostle.data import Dataset
from jostle.lowering import NoiseAugmentation, SensitivityPenalty
from jostle.training import fit

BATCH, EXAMPLES, EPOCHS, ROUNDS = 100, 1500, 1, 7
IMAGE = {"image_size": 28, "channels": 1, "seed": 0}
VIT = {"patch_size": 7, "dim": 32, "depth": 2, "heads": 2, "dim_head": 16, "mlp_dim": 64}
MODELS = {"mlp": ("mlp", {}), "vit": ("vit-simple", VIT), "cnn": ("cnn", {"width": 8, "hidden": 32})}

pytestmark = pytest.mark.usefixtures("one_thread")


def digits() -> Dataset:
    generator = torch.Generator().manual_seed(0)
    inputs = torch.randn(EXAMPLES, 1, 28, 28, generator=generator)
    return Dataset("noise", inputs, torch.randint(10, (EXAMPLES,), generator=generator), classes=10)


def second_pass(model: nn.Module, inputs: Tensor, clean: Tensor) -> Tensor:
    """The least a penalty can cost: the same pass and backward pass, and no noise to draw."""
    return (model(inputs) - clean).square().mean()


def seconds(work: Callable[[], object]) -> float:
    started = time.process_time()  # of this process: others on the machine do not count
    work()
    return time.process_time() - started


@pytest.mark.parametrize("name", MODELS)
def test_penalty_and_augmentation_against_plain_training(name: str) -> None:
    model, sizes = MODELS[name]
    start, dataset = jostle.models.create(model, **IMAGE, **sizes), digits()
    settings = {"lr": 1e-3, "batch_size": BATCH, "max_epochs": EPOCHS, "evaluate_every": EPOCHS}
    terms = [
        {},
        {"penalty": SensitivityPenalty(tokens=jostle.Patches(4))},
        {"penalty": second_pass},
        {"augment": NoiseAugmentation(std=0.1)},
    ]

    def one_round() -> list[float]:
        return [seconds(lambda each=each: fit(copy.deepcopy(start), dataset, **settings, **each)) for each in terms]

    looks = seconds(lambda: [jostle.training.evaluate(start, dataset) for _ in range(2)])  # not a part of the steps
    one_round()
    rounds = [[whole - looks for whole in one_round()] for _ in range(ROUNDS)]
    penalised, passed, noisy = (statistics.median(each[i] / each[0] for each in rounds) for i in (1, 2, 3))
    own = statistics.median(each[1] / each[2] for each in rounds)
    per_step = statistics.median(each[0] for each in rounds) / (EPOCHS * EXAMPLES / BATCH) * 1e3
    numbers = {
        "penalty": penalised,
        "second_pass": passed,
        "penalty_over_second_pass": own,
        "augmentation": noisy,
        "milliseconds_a_step": per_step,
    }
    record(f"lowering-{name}", numbers)
    print(
        f"\n{name}: {per_step:.1f} ms a plain step; with the penalty {penalised:.2f} x, with a bare second pass "
        f"{passed:.2f} x (penalty over that: {own:.2f}), with noise all over {noisy:.2f} x"
    )
    assert own < 1.25  # drawing and placing noise is a small part of any of them
