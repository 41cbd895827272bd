"""The demo's work: train, measure, record; each step once, whatever interrupts it.

It is no study: its comparisons are of all networks at once on the same noise, while the cells of a study know nothing
of each other. It shares with studies how records are kept, written and read.
"""

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

from jostle import data, models
from jostle.base.errors import KeptFileError, UsageError
from jostle.base.files import set_aside
from jostle.base.progress import State, reporter
from jostle.base.store import Record
from jostle.data import Dataset
from jostle.estimates import Comparison, compare, measure
from jostle.perturbations import GaussianNoise
from jostle.sampling import Grid, Until
from jostle.studies.folder import only_here
from jostle.studies.schema import to_plain
from jostle.tokens import Patches
from jostle.training import Epoch, checkpoints, evaluate, fit, load_weights
from jostle_papers.own.demo.records import (
    EXAMPLE,
    DemoRecords,
    EpochLine,
    ExampleLine,
    PatchKind,
    PatchMap,
    TrainedLine,
    epoch_key,
    patches_key,
    sweep_key,
    trained_key,
)
from jostle_papers.own.demo.settings import DemoNetwork, DemoSettings

Say = Callable[[str], None]

_HEAVY = ("per_input",)  # left out of records: thousands of numbers nobody reads here


@dataclass(frozen=True)
class Demo:
    """One run of the demo in one folder.

    Arguments:
        folder: holds records, checkpoints and the report; a folder with a part of this demo is continued.
        settings: what to train and measure.
        say: a function that is told in a line what happens.
        progress: whether to show bars.
    """

    folder: Path
    settings: DemoSettings
    say: Say
    progress: bool = True

    def run(self) -> DemoRecords:
        """Do whatever is not yet done; returns all records."""
        if self.folder.exists() and not self.folder.is_dir():
            raise UsageError(f"--out {self.folder} is a file; give a folder")
        with only_here(self.folder), _one_thread():
            records = DemoRecords.open(self.folder, self.settings)
            train, test = self._load("train"), self._load("test")
            nets = {
                name: self._train(records, name, network, train, test)
                for name, network in self.settings.networks.items()
            }
            for std in self.settings.stds:
                self._sweep(records, nets, train.inputs, std)
            for std in (self.settings.faint_std, self.settings.training_std):
                self._patches(records, nets, train.inputs, std)
            self._example(records, nets, train)
        return records

    def _load(self, split: str) -> Dataset:
        whole = data.load(self.settings.dataset, split=split)
        return whole if self.settings.limit is None else whole.subset(min(self.settings.limit, len(whole)))

    def _train(self, records: DemoRecords, name: str, network: DemoNetwork, train: Dataset, test: Dataset) -> nn.Module:
        """The network at the target accuracy, with a record for every epoch on the way."""
        s, checkpoint = self.settings, self.folder / f"{name}.safetensors"
        model = models.create(network.model, seed=s.seed, **network.sizes)
        self._set_damaged_aside(checkpoint)
        is_known = trained_key(name) in records.store
        if is_known and checkpoint.exists():
            load_weights(model, checkpoint)
            return model.eval()
        report = reporter(self.progress, f"train {name:<10}")

        def on_epoch(epoch: Epoch) -> None:
            line = self._epoch(records, name, epoch, train.inputs)
            text = f"loss {epoch.loss:.3f}  accuracy {epoch.accuracy:.1%}  sensitivity {line.value:.3f}"
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
        if is_known:  # only its file was lost
            return model
        line = TrainedLine(
            epochs=history.epochs,
            train_accuracy=history.accuracies[-1],
            test_accuracy=evaluate(model, test).accuracy,
            stopped=history.stopped,
            parameters=sum(parameter.numel() for parameter in model.parameters()),
        )
        records.store.append(trained_key(name), to_plain(line))
        self.say(
            f"{name}: {line.train_accuracy:.1%} training accuracy after {line.epochs} epochs "
            f"({line.test_accuracy:.1%} on unseen digits)"
        )
        return model

    def _set_damaged_aside(self, checkpoint: Path) -> None:
        """Keep a checkpoint that cannot be read under another name, so that its network is trained again."""
        if not checkpoint.exists():
            return
        try:
            checkpoints.load(checkpoint)
        except KeptFileError as problem:
            reason = str(problem).partition(";")[0]
            self.say(f"{reason}; it was kept as {set_aside(checkpoint).name}, and the network is trained again")

    def _epoch(self, records: DemoRecords, name: str, epoch: Epoch, inputs: Tensor) -> EpochLine:
        key = epoch_key(name, epoch.number)
        if key not in records.store:
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
            records.store.append(key, {"loss": epoch.loss, "accuracy": epoch.accuracy, **_lighten(m.to_dict())})
        return records.epoch(name, epoch.number)

    def _sweep(self, records: DemoRecords, nets: dict[str, nn.Module], inputs: Tensor, std: float) -> None:
        """All networks at one noise level, on the same inputs and noise."""
        key, s = sweep_key(std), self.settings
        if key not in records.store:
            comparison = compare(
                nets,
                inputs,
                tokens=Patches(s.patch),
                perturbation=GaussianNoise(std),
                plan=Until(relative=s.relative, max_passes=s.max_passes),
                seed=s.seed,
                progress=self.progress,
            )
            records.store.append(key, _light_comparison(comparison))
            values = "  ".join(f"{name} {comparison[name].value:.3f}" for name in comparison)
            self.say(f"noise of std {std:g}: {values}")

    def _patches(self, records: DemoRecords, nets: dict[str, nn.Module], inputs: Tensor, std: float) -> None:
        """Blank patches, all of one colour, against patches with ink, at one noise level."""
        s = self.settings
        blank = _is_blank(inputs, s.patch)
        kinds: dict[PatchKind, Tensor] = {"blank": blank, "inked": ~blank}
        for kind, mask in kinds.items():
            key = patches_key(kind, std)
            if key not in records.store:
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
                records.store.append(key, _light_comparison(comparison))

    def _example(self, records: DemoRecords, nets: dict[str, nn.Module], train: Dataset) -> None:
        """One digit patch by patch: one that the networks together classify less surely than 97 % of digits."""
        if EXAMPLE in records.store:
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
            maps[name] = PatchMap(rates=_rows(m.profile.image().tolist()), passes=m.passes)
        picture = _rows((chosen[0, 0] * 0.5 + 0.5).tolist())
        line = ExampleLine(index=index, label=int(train.labels[index]), picture=picture, maps=maps)
        records.store.append(EXAMPLE, to_plain(line))


def _rows(table: list[list[float]]) -> tuple[tuple[float, ...], ...]:
    return tuple(map(tuple, table))


def _lighten(record: Record) -> Record:
    return {key: [] if key in _HEAVY else value for key, value in record.items()}


def _light_comparison(comparison: Comparison) -> Record:
    record = comparison.to_dict()
    return record | {part: [_lighten(entry) for entry in record[part]] for part in ("measurements", "differences")}


def _is_blank(inputs: Tensor, patch: int) -> Tensor:
    """(N, patches): whether all pixels of a patch are equal."""
    pixels = Patches(patch).grid(inputs).flatten(3).flatten(1, 2)  # (N, patches, pixels)
    return pixels.amax(dim=2) == pixels.amin(dim=2)


@torch.inference_mode()
def _rather_unsure(nets: dict[str, nn.Module], train: Dataset) -> int:
    """The digit at the 3rd percentile of the probability of its label; digits below it flip under any noise."""
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
