"""Token sensitivity as a metric of torchmetrics: batches are summed, and so are processes, however uneven they are.

Needs torchmetrics: pip install "jostle[metrics]". A metric stands in an evaluation loop beside accuracy.
"""

import torch

import jostle

model = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.ReLU(), torch.nn.Linear(32, 3))
metric = jostle.probe.SensitivityMetric(tokens="coordinates", perturbation="gaussian-noise:std=1", draws=4)
for size in (64, 64, 23):  # the last batch is smaller
    metric.update(model, torch.randn(size, 8))
print(f"sensitivity {metric.compute():.3f}")
one = metric.estimate()
print(f"with its interval {one.value:.3f} [{one.low:.3f}, {one.high:.3f}]")
