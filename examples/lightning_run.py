"""A Lightning run with a probe: sensitivity, accuracy and weight norm at every 20th step, in Lightning's own log.

Needs lightning: pip install "jostle[lightning]". The probe changes nothing: the weights are those of a run without it.
"""

import lightning
import torch
from lightning.pytorch.loggers import CSVLogger
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import jostle

x = torch.randn(640, 1, 8, 8, generator=torch.Generator().manual_seed(0))
y = (x[:, 0, :4].sum(dim=(1, 2)) > 0).long()


class Classifier(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Flatten(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 2))

    def training_step(self, batch, _):
        return nn.functional.cross_entropy(self.net(batch[0]), batch[1])

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=0.01)


noise = {"tokens": jostle.Patches(4), "perturbation": jostle.GaussianNoise(std=2.0)}
probe = jostle.Probe(x[:200], labels=y[:200], **noise, every=20, share=None)
quiet = {"enable_progress_bar": False, "enable_model_summary": False, "enable_checkpointing": False}
callback = probe.lightning(model=lambda module: module.net)
trainer = lightning.Trainer(max_epochs=4, logger=CSVLogger("logs"), callbacks=[callback], accelerator="cpu", **quiet)
trainer.fit(Classifier(), DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True))
for row in probe.to_frame().itertuples():
    print(f"step {row.step:3.0f}: sensitivity {row.sensitivity:.3f}, accuracy {row.accuracy:.3f}")
