"""Callbacks and trackers with the packages they are for: Lightning, transformers, TensorBoard, wandb, MLflow."""

import csv
import os
import subprocess
import sys

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import jostle
from tests.probe.toys import CHOICES, points

pytestmark = pytest.mark.filterwarnings("ignore")  # these packages warn about each other


def compared(**options):
    x = torch.randn(40, 4, generator=torch.Generator().manual_seed(0))
    models = {"sum": lambda x: x.sum(dim=1), "zoo:first=1": lambda x: x[:, 0]}
    return jostle.compare(models, x, tokens="coordinates", perturbation="sign-flip", plan="grid:1", **options)


def lightning_fit(callbacks, folder, accumulate=1):
    lightning = pytest.importorskip("lightning")
    from lightning.pytorch.loggers import CSVLogger

    class Module(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            torch.manual_seed(0)
            width = points().inputs.flatten(1).shape[1]
            self.net = nn.Sequential(
                nn.Flatten(), nn.Linear(width, 8), nn.BatchNorm1d(8), nn.Dropout(), nn.Linear(8, 2)
            )

        def training_step(self, batch, _):
            return nn.functional.cross_entropy(self.net(batch[0]), batch[1])

        def configure_optimizers(self):
            return torch.optim.Adam(self.parameters(), lr=0.01)

    data = points()
    loader = DataLoader(TensorDataset(data.inputs, data.labels), batch_size=8, shuffle=True)
    lightning.seed_everything(1, verbose=False)
    trainer = lightning.Trainer(
        max_epochs=2, accelerator="cpu", logger=CSVLogger(folder), callbacks=callbacks, enable_progress_bar=False,
        enable_model_summary=False, enable_checkpointing=False, accumulate_grad_batches=accumulate,
    )  # fmt: skip
    module = Module().to(data.inputs.dtype)
    trainer.fit(module, loader)  # jostle measures in the type of the weights
    return module, trainer


def test_lightning_measures_logs_and_changes_nothing(tmp_path):
    plain, _ = lightning_fit([], tmp_path / "plain")
    probe = jostle.Probe(points(30), **CHOICES, every=3, share=None)
    watched, trainer = lightning_fit([probe.lightning(model=lambda module: module.net)], tmp_path / "watched")
    steps = probe.history["step"].astype(int).tolist()
    assert steps[0] == 0
    assert steps[-1] == trainer.global_step
    assert steps[1:-1] == list(range(3, trainer.global_step, 3))
    for mine, other in zip(plain.state_dict().values(), watched.state_dict().values(), strict=True):
        assert torch.equal(mine, other)
    (file,) = (tmp_path / "watched").rglob("metrics.csv")
    rows = [row for row in csv.DictReader(file.read_text().splitlines()) if row.get("jostle/sensitivity")]
    assert [int(row["step"]) for row in rows] == steps
    assert [float(row["jostle/sensitivity"]) for row in rows] == pytest.approx(probe.history["sensitivity"].tolist())


def test_the_trainer_of_transformers_measures_and_changes_nothing(tmp_path):
    pytest.importorskip("accelerate", reason="the Trainer of transformers needs it")
    from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments

    torch.set_default_dtype(torch.float32)
    ids = torch.randint(5, 30, (48, 6), generator=torch.Generator().manual_seed(0))
    data = [{"input_ids": row, "attention_mask": torch.ones(6, dtype=torch.long), "labels": row[0] % 2} for row in ids]

    def train(callbacks):
        torch.manual_seed(0)
        sizes = {"vocab_size": 30, "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
        model = BertForSequenceClassification(BertConfig(**sizes, intermediate_size=16))
        arguments = TrainingArguments(
            str(tmp_path), num_train_epochs=1, per_device_train_batch_size=8, report_to="none", save_strategy="no",
            disable_tqdm=True, use_cpu=True, logging_strategy="no", seed=0,
        )  # fmt: skip
        Trainer(model, arguments, train_dataset=data, callbacks=callbacks).train()
        return model

    probe = jostle.Probe(
        {"input_ids": ids[:16], "attention_mask": torch.ones(16, 6, dtype=torch.long)}, tokens=jostle.Embeddings(),
        perturbation="gaussian-noise:std=3", every=2, share=None, plan="grid:1",
    )  # fmt: skip
    plain, watched = train([]), train([probe.trainer_callback()])
    assert probe.history["step"].tolist() == [0, 2, 4, 6]
    for mine, other in zip(plain.state_dict().values(), watched.state_dict().values(), strict=True):
        assert torch.equal(mine, other)


def test_tensorboard_gets_the_numbers_of_probe_and_compare(tmp_path):
    pytest.importorskip("tensorboard", reason="an optional package, 10 MB")
    from absl import logging as absl_logging
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    from torch.utils.tensorboard import SummaryWriter

    # absl keeps the stderr of its import, which is pytest's for this test, and would close it under a later test.
    absl_logging.get_absl_handler().python_handler.stream = sys.__stderr__
    with SummaryWriter(str(tmp_path)) as writer:
        c = compared(tracker=writer)
        probe = jostle.Probe(points(30), **CHOICES, every=1, share=None, trackers=writer)
        for step in range(2):
            probe(lambda x: x.flatten(1)[:, :2], step)
    events = EventAccumulator(str(tmp_path)).Reload()
    (one,) = events.Scalars("jostle/sum/flip/low")
    assert one.value == pytest.approx(c["sum"].low)
    assert [event.step for event in events.Scalars("jostle/sensitivity")] == [0, 1]


def test_mlflow_gets_the_numbers(tmp_path, monkeypatch):
    mlflow = pytest.importorskip("mlflow", reason="an optional package, 28 MB")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    mlflow.set_tracking_uri(tmp_path.as_uri())
    mlflow.set_experiment("jostle")
    with mlflow.start_run() as run:
        c = compared(tracker=mlflow)
        jostle.Probe(points(30), **CHOICES, share=None, trackers=mlflow)(lambda x: x.flatten(1)[:, :2], 0)
    held = mlflow.get_run(run.info.run_id).data.metrics
    assert held["jostle/zoo:first_1/flip/value"] == pytest.approx(c["zoo:first=1"].value)
    assert "jostle/sensitivity" in held


@pytest.mark.slow
def test_wandb_offline_gets_the_numbers(tmp_path):
    """In a process of its own: wandb talks to a service of its own."""
    pytest.importorskip("wandb", reason="an optional package, 58 MB")
    script = (
        "import jostle, torch, wandb\n"
        "run = wandb.init(project='jostle')\n"
        "x = torch.randn(30, 4)\n"
        "o = dict(tokens='coordinates', perturbation='sign-flip')\n"
        "m = jostle.measure(lambda x: x[:, 0], x, **o, plan='grid:1', tracker=run)\n"
        "jostle.Probe(x, **o, trackers=run)(lambda x: x[:, 0], 0)\n"
        "assert run.summary['jostle/model/flip/value'] == m.value == 0.25\n"
        "assert run.summary['jostle/sensitivity'] == 0.25\n"
        "run.finish()\n"
    )
    settings = os.environ | {"WANDB_MODE": "offline", "WANDB_SILENT": "true", "WANDB_DIR": str(tmp_path)}
    words = [sys.executable, "-c", script]
    ended = subprocess.run(words, env=settings, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False)
    assert ended.returncode == 0, ended.stderr
