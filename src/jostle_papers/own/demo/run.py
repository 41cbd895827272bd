"""The demo's work: train, measure, record; each step once, whatever interrupts it."""

import contextlib
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from jostle import data, models
from jostle.base.errors import UsageError
from jostle.base.estimate import provenance
from jostle.base.progress import State, reporter
from jostle.base.store import Record, Store
from jostle.data import Dataset
from jostle.estimates import Comparison, compare, measure
from jostle.perturbations import GaussianNoise
from jostle.sampling import Grid, Until
from jostle.tokens import Patches
from jostle.training import Epoch, evaluate, fit, load_weights
from jostle_papers.own.demo.settings import Network, Settings

Say = Callable[[str], None]

_HEAVY = ("per_input",)  # left out of records: thousands of numbers nobody reads here


@dataclass(frozen=True)
class Demo:
    """One run of the demo in one folder.

    Arguments:
        folder: holds records, checkpoints and the report; a folder with a part of this demo is continued.
        settings: what to train and measure.
        say: told in a line what happens.
        progress: whether to show bars.
    """

    folder: Path
    settings: Settings
    say: Say
    progress: bool = True

    def run(self) -> Store:
        """Do whatever is not yet done; returns all records."""
        with _one_thread():
            store = self._open()
            train, test = self._load("train"), self._load("test")
            nets = {name: self._trained(store, name, net, train, test) for name, net in self.settings.networks.items()}
            for std in self.settings.stds:
                self._sweep(store, nets, train.inputs, std)
            for std in (self.settings.faint_std, self.settings.training_std):
                self._patches(store, nets, train.inputs, std)
            self._example(store, nets, train)
        return store

    def _open(self) -> Store:
        if self.folder.exists() and not self.folder.is_dir():
            raise UsageError(f"--out {self.folder} is a file; give a folder")
        store = Store(self.folder / "records.jsonl")
        settings = json.loads(json.dumps(self.settings.to_dict()))  # as a file holds them: lists, no tuples
        if "settings" not in store:
            store.append("settings", settings)
        elif store["settings"] != settings:
            raise UsageError(f"--out {self.folder} holds a demo with other settings; give another folder or remove it")
        if "provenance" not in store:
            store.append("provenance", provenance())
        return store

    def _load(self, split: str) -> Dataset:
        whole = data.load(self.settings.dataset, split=split)
        return whole if self.settings.limit is None else whole.subset(min(self.settings.limit, len(whole)))

    def _trained(self, store: Store, name: str, network: Network, train: Dataset, test: Dataset) -> nn.Module:
        """The network at the target accuracy, with a record for every epoch on the way."""
        s, checkpoint = self.settings, self.folder / f"{name}.safetensors"
        model = models.create(network.model, seed=s.seed, **network.sizes)
        if f"{name}/trained" in store:
            load_weights(model, checkpoint)
            return model.eval()
        report = reporter(self.progress, f"train {name:<10}")

        def on_epoch(epoch: Epoch) -> None:
            record = self._epoch(store, name, epoch, train.inputs)
            text = f"loss {epoch.loss:.3f}  accuracy {epoch.accuracy:.1%}  sensitivity {record['value']:.3f}"
            report(State(epoch.number / s.max_epochs, epoch.number * len(train), text, "examples"))

        try:
            history = fit(
                model,
                train,
                lr=network.lr,
                max_epochs=s.max_epochs,
                target_accuracy=s.target_accuracy,
                seed=s.seed,
                checkpoint=checkpoint,
                on_epoch=on_epoch,
            )
        finally:
            report.close()
        record = {
            "epochs": history.epochs,
            "train_accuracy": history.accuracies[-1],
            "test_accuracy": evaluate(model, test).accuracy,
            "stopped": history.stopped,
            "parameters": sum(parameter.numel() for parameter in model.parameters()),
        }
        store.append(f"{name}/trained", record)
        self.say(
            f"{name}: {record['train_accuracy']:.1%} training accuracy after {history.epochs} epochs "
            f"({record['test_accuracy']:.1%} on unseen digits)"
        )
        return model

    def _epoch(self, store: Store, name: str, epoch: Epoch, inputs: Tensor) -> Record:
        key = f"{name}/epoch-{epoch.number}"
        if key not in store:
            s = self.settings
            m = measure(
                epoch.model,
                inputs,
                name=name,
                tokens=Patches(s.patch),
                perturbation=GaussianNoise(s.training_std),
                plan=Until(half_width=s.training_half_width),
                seed=s.seed,
            )
            store.append(key, {"loss": epoch.loss, "accuracy": epoch.accuracy, **_light(m.to_dict())})
        return store[key]

    def _sweep(self, store: Store, nets: dict[str, nn.Module], inputs: Tensor, std: float) -> None:
        """All networks at one noise level, on the same inputs and noise."""
        key, s = f"sweep/{std:g}", self.settings
        if key not in store:
            comparison = compare(
                nets,
                inputs,
                tokens=Patches(s.patch),
                perturbation=GaussianNoise(std),
                plan=Until(relative=s.relative, max_passes=s.max_passes),
                seed=s.seed,
                progress=self.progress,
            )
            store.append(key, _light_comparison(comparison))
            values = "  ".join(f"{name} {comparison[name].value:.3f}" for name in comparison)
            self.say(f"noise of std {std:g}: {values}")

    def _patches(self, store: Store, nets: dict[str, nn.Module], inputs: Tensor, std: float) -> None:
        """Blank patches, all of one colour, against patches with ink, at one noise level."""
        s = self.settings
        blank = _is_blank(inputs, s.patch)
        for kind, mask in (("blank", blank), ("inked", ~blank)):
            key = f"patches/{kind}/{std:g}"
            if key not in store:
                kept = mask.any(dim=1)
                comparison = compare(
                    nets,
                    inputs[kept],
                    mask=mask[kept],
                    tokens=Patches(s.patch),
                    perturbation=GaussianNoise(std),
                    plan=Until(half_width=s.patch_half_width, max_passes=s.max_passes),
                    seed=s.seed,
                    progress=self.progress,
                )
                store.append(key, _light_comparison(comparison))

    def _example(self, store: Store, nets: dict[str, nn.Module], train: Dataset) -> None:
        """One digit patch by patch: one that the networks together classify less surely than 97 % of digits."""
        if "example" in store:
            return
        s, index = self.settings, _rather_unsure(nets, train)
        chosen = train.inputs[index : index + 1]
        maps = {}
        for name, model in nets.items():
            m = measure(
                model,
                chosen,
                name=name,
                tokens=Patches(s.patch),
                perturbation=GaussianNoise(s.training_std),
                plan=Grid(s.example_draws),
                seed=s.seed,
            )
            maps[name] = {"rates": m.profile.image().tolist(), "passes": m.passes}
        picture = (chosen[0, 0] * 0.5 + 0.5).tolist()
        record = {"index": index, "label": int(train.labels[index]), "picture": picture, "maps": maps}
        store.append("example", record)


def _light(record: dict[str, Any]) -> dict[str, Any]:
    return {key: [] if key in _HEAVY else value for key, value in record.items()}


def _light_comparison(comparison: Comparison) -> Record:
    record = comparison.to_dict()
    return record | {part: [_light(entry) for entry in record[part]] for part in ("measurements", "differences")}


def _is_blank(inputs: Tensor, patch: int) -> Tensor:
    """(N, patches): whether all pixels of a patch are equal."""
    pixels = Patches(patch).grid(inputs).flatten(3).flatten(1, 2)  # (N, patches, pixels)
    return pixels.amax(dim=2) == pixels.amin(dim=2)


@torch.inference_mode()
def _rather_unsure(nets: dict[str, nn.Module], train: Dataset) -> int:
    """The digit at the 3rd percentile of the networks' mean probability of its label; the least sure flip anyhow."""
    total = torch.zeros(len(train))
    for model in nets.values():
        logits = torch.cat([model(part) for part in torch.split(train.inputs, 500)])
        total += logits.softmax(dim=1).gather(1, train.labels[:, None])[:, 0].to(total.dtype)
    return int(total.argsort()[len(train) * 3 // 100])


@contextlib.contextmanager
def _one_thread() -> Iterator[None]:
    """Networks this small are faster on one thread, and much faster on a busy machine."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
