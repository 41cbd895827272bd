"""Numbers for an experiment tracker: TensorBoard here; wandb.run and mlflow are given in the same way.

Needs tensorboard: pip install tensorboard. The command line does the same with --tracker tensorboard:logs.
"""

import torch
from torch.utils.tensorboard import SummaryWriter

import jostle

x = torch.randn(300, 6, generator=torch.Generator().manual_seed(0))
models = {"sum": lambda x: x.sum(dim=1), "first": lambda x: x[:, 0]}
with SummaryWriter("logs") as writer:  # or tracker=wandb.init(project="jostle"), or tracker=mlflow
    c = jostle.compare(models, x, tokens="coordinates", perturbation="gaussian-noise:std=1", tracker=writer)
    for step, std in enumerate((0.5, 1, 2)):  # a curve of one's own
        m = jostle.measure(
            models["sum"], x, tokens="coordinates", perturbation=f"gaussian-noise:std={std}", name="curve"
        )
        m.send_to(writer, step)
print(c)
print(c.to_frame()[["model", "against", "value", "low", "high"]])
