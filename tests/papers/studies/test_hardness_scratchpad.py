"""PARITY with a scratchpad: training and measures against slow twins and rules by hand, and verdicts that turn."""

import dataclasses
import math

import numpy as np
import pytest
import torch
from torch import nn
from torch.func import functional_call

from jostle import studies
from jostle.base.errors import FailureError, UsageError
from jostle.landscape import average_direction_sharpness, layernorm_blowup
from jostle.models.bit_scratchpad import BitScratchpad
from jostle.studies import Context, Records, Verdict, decide
from jostle_papers.p2402_09963 import hardness
from jostle_papers.p2402_09963.hardness import HardnessDesign, HardnessPlan, lengths
from jostle_papers.p2402_09963.hardness.lengths import Span, accuracy, shift_positions, train_encoder, train_writer
from jostle_papers.p2402_09963.hardness.scratchpad import (
    create_scratchpad,
    observe_scratchpad,
    prefix_parities,
    taught_loss,
    train_scratchpad,
    write_symbols,
)
from jostle_papers.p2402_09963.hardness.tasks import derive_seed
from jostle_papers.p2402_09963.hardness.training import train_single
from jostle_papers.p2402_09963.length_generalisation import LengthRecord
from jostle_papers.p2402_09963.runs import RunRecord
from jostle_papers.p2402_09963.scratchpad import ScratchpadRecord
from jostle_papers.stacked.adamw import StackedAdamW
from tests.papers.studies.made_up_runs import FITTED, OBSERVED, WRITTEN
from tests.studies.stopping import stopped_and_resumed

PAD, LENGTHS = "2402.09963/scratchpad", "2402.09963/length-generalisation"
SIZES = {"dim": 8}


@pytest.fixture(autouse=True)
def float32():
    """As the runner has it."""
    torch.set_default_dtype(torch.float32)
    yield
    torch.set_default_dtype(torch.float64)


def strings(count, n, seed=0):
    return torch.randint(2, (count, n), generator=torch.Generator().manual_seed(seed)).float() * 2 - 1


class ByHand(BitScratchpad):
    """The rule y_i = y_{i-1} x_i, with the opposite at one place; attention and norms have no say in it."""

    def __init__(self, n, wrong=None):
        super().__init__(max_length=n, dim=8)
        self.wrong = wrong

    def _encode(self, bits):
        super()._encode(bits)  # so that its norms are seen
        return bits

    def _decode(self, encoded, before):
        super()._decode(super()._encode(encoded), before)
        previous = torch.cat([torch.ones_like(before[:, :0].sum(dim=1, keepdim=True)), before], dim=1)
        symbols = previous * encoded[:, : previous.shape[1]]
        if self.wrong is not None and self.wrong < symbols.shape[1]:
            symbols[:, self.wrong] *= -1
        return (symbols + 1) / 2


class TestParities:
    def test_they_are_those_of_all_beginnings(self):
        bits = strings(20, 9)
        task = hardness.named_task("parity", 9)
        found = prefix_parities(bits)
        for length in range(1, 10):
            labels = task.label(bits[:, :length].numpy().astype(np.int8))
            assert ((found[:, length - 1].numpy() + 1) / 2 == labels).all()

    def test_generation_is_teacher_forcing_where_all_is_right(self):
        network, bits = ByHand(6).eval(), strings(300, 6)  # more than one pass
        symbols = prefix_parities(bits)
        assert torch.equal(write_symbols(network, bits), symbols)
        assert torch.equal(torch.where(network(bits, symbols) > 0.5, 1.0, -1.0), symbols)
        found = observe_scratchpad(network, 6, directions=2, strings=8)
        assert (found.loss, found.written_accuracy, found.answer_accuracy, found.sharpness) == (0, 1, 1, 0)
        assert found.has_converged

    def test_one_wrong_place_spoils_all_that_is_written_after_it(self):
        """Teacher forcing puts the right symbol before the next place; a network that writes has its own mistake."""
        found = observe_scratchpad(ByHand(6, wrong=2), 6, directions=2, strings=8)
        assert found.loss == pytest.approx(1 / 6)
        assert found.written_accuracy == pytest.approx(2 / 6)
        assert found.answer_accuracy == 0
        assert not found.has_converged

    def test_the_last_place_is_the_answer(self):
        found = observe_scratchpad(ByHand(5, wrong=4), 5, directions=2, strings=8)
        assert (found.written_accuracy, found.answer_accuracy) == (pytest.approx(0.8), 0)


class TestTraining:
    def test_a_step_is_that_of_torch_on_the_same_batch(self):
        plan = HardnessPlan(batch_size=16, lr=1e-3, steps=3, fit_loss=0.0)
        found, fitted, steps = train_scratchpad(6, plan, seed=4, sizes=SIZES)
        network, task = create_scratchpad(6, 4, **SIZES), hardness.named_task("parity", 6)
        optimizer = torch.optim.AdamW(network.parameters(), lr=1e-3, weight_decay=0.1)
        for step in range(3):
            bits, _, _ = task.batch(16, 4, step)
            symbols = bits.cumprod(dim=1)
            optimizer.zero_grad()
            (network(bits, symbols) - (symbols + 1) / 2).square().mean().backward()
            optimizer.step()
        assert (fitted, steps) == (None, 3)
        moved = [name for name, _ in network.named_parameters() if "to_key.bias" not in name]  # softmax sees none
        ours, theirs = found.state_dict(), network.state_dict()
        first = create_scratchpad(6, 4, **SIZES).state_dict()
        assert max(float((ours[name] - theirs[name]).abs().max()) for name in moved) < 1e-4
        assert max(float((ours[name] - first[name]).abs().max()) for name in moved) > 2e-3

    def test_it_learns_to_write_and_settles(self):
        plan = HardnessPlan(batch_size=32, lr=1e-2, steps=600, settle=40)
        network, fitted, steps = train_scratchpad(3, plan, seed=0, sizes=SIZES)
        assert fitted is not None
        assert steps == fitted + 40
        bits = strings(50, 3)
        assert torch.equal(write_symbols(network, bits), prefix_parities(bits))
        assert not network.training

    def test_training_that_was_stopped_ends_with_the_same_weights(self, tmp_path, monkeypatch):
        plan = HardnessPlan(batch_size=16, lr=1e-2, steps=30, fit_loss=0.0)
        whole, _, _ = train_scratchpad(4, plan, seed=0, sizes=SIZES)

        class Stop(BaseException):
            pass

        step, taken = StackedAdamW.step, []

        def stopping(self, *arguments):
            taken.append(1)
            if len(taken) == 25:
                raise Stop
            step(self, *arguments)

        def loss(network):
            return lambda weights, number: losses[number](network, weights)

        network = create_scratchpad(4, 0, **SIZES)
        task = hardness.named_task("parity", 4)
        losses = [
            lambda network, weights, number=number: taught_loss(
                network, weights, task.batch(16, 0, number)[0], task.batch(16, 0, number)[2]
            )
            for number in range(30)
        ]
        monkeypatch.setattr(StackedAdamW, "step", stopping)
        with pytest.raises(Stop):
            train_single(network, loss(network), plan, {}, folder=tmp_path, checkpoint_every=10)
        monkeypatch.undo()
        again = create_scratchpad(4, 1, **SIZES)  # its own weights do not matter: the state is on disk
        assert train_single(again, loss(again), plan, {}, folder=tmp_path)[1] == 30
        for ours, theirs in zip(again.parameters(), whole.parameters(), strict=True):
            assert torch.equal(ours, theirs)

    def test_wrong_use_is_one_line(self, tmp_path):
        line = nn.Linear(1, 1)
        with pytest.raises(UsageError, match="curriculum="):
            train_single(line, lambda weights, _: weights["bias"].sum(), HardnessPlan(curriculum=(4,)), {})
        with pytest.raises(FailureError, match="training diverged before step 3; a smaller lr"):
            train_single(line, lambda weights, _: weights["bias"].sum() * math.inf, HardnessPlan(steps=3), {})


class TestMeasures:
    def test_sharpness_is_the_mean_over_places_and_that_of_the_last(self):
        network = create_scratchpad(4, 2, **SIZES)
        found = observe_scratchpad(network, 4, directions=6, strings=16, seed=3)
        bits = torch.tensor(np.array(np.meshgrid(*[[-1.0, 1.0]] * 4, indexing="ij")).reshape(4, -1).T).float()
        inputs = {"bits": bits, "scratchpad": bits.cumprod(dim=1)}
        rho = 0.02 * math.sqrt(sum(p.numel() for name, p in network.named_parameters() if name != "positions"))
        assert found.rho == pytest.approx(rho)
        whole = average_direction_sharpness(network, inputs, rho=rho, directions=6, label_values=(0, 1), seed=3)
        assert found.sharpness == pytest.approx(whole.value)
        assert (found.low, found.high) == pytest.approx((whole.low, whole.high))

        class Place(nn.Module):
            def __init__(self, place):
                super().__init__()
                self.network, self.place = network, place

            def forward(self, bits, scratchpad):
                return self.network(bits, scratchpad)[:, self.place]

        single = [
            average_direction_sharpness(Place(place), inputs, rho=rho, directions=6, label_values=(0, 1), seed=3).value
            for place in range(4)
        ]
        assert np.mean(single) == pytest.approx(found.sharpness, rel=1e-4)
        assert found.last_sharpness == pytest.approx(single[3], rel=1e-4)
        assert abs(single[3] / found.sharpness - 1) > 1e-3

    def test_paper_sizes_have_the_papers_step(self):
        network = create_scratchpad(10, 0)
        moved = sum(p.numel() for name, p in network.named_parameters() if name != "positions")
        assert 0.02 * math.sqrt(moved) == pytest.approx(3.722, abs=5e-4)

    def test_blowups_are_those_of_the_blocks_of_each_side(self):
        network = create_scratchpad(4, 2, **SIZES)
        found = observe_scratchpad(network, 4, directions=2, strings=16)
        bits = torch.tensor(np.array(np.meshgrid(*[[-1.0, 1.0]] * 4, indexing="ij")).reshape(4, -1).T).float()
        inputs = {"bits": bits, "scratchpad": bits.cumprod(dim=1)}
        for protocol, start in (("paper", ""), ("released", "released_")):
            whole = layernorm_blowup(network, inputs, protocol=protocol, last_layer_norms=0)
            names = whole.norms
            assert len(names) == 12
            finals = [names.index("encoder_norm"), names.index("decoder_norm")]
            rest = whole.per_input / whole.per_norm[:, finals].prod(axis=1)
            encoder = whole.per_norm[:, : names.index("encoder_norm")].prod(axis=1)
            assert getattr(found, f"{start}encoder_blowup") == pytest.approx(encoder.mean())
            assert getattr(found, f"{start}decoder_blowup") == pytest.approx((rest / encoder).mean())


def made(flat=0.001, steep=0.03, pad_blowup=0.002, spoiled=()):
    """Runs whose sharpness is a line in n with a little noise."""
    study = studies.get(PAD)
    settings, rng = study.scales["small"], np.random.default_rng(3)
    cells = study.cells(settings, range(settings.seeds))
    found = {}
    for cell in cells:
        n, has_pad = cell.n, cell.kind == "scratchpad"
        level = (0.25 if has_pad else 0.1) + (flat if has_pad else steep) * n + 0.004 * rng.normal()
        blowup = 1 + (pad_blowup if has_pad else 0.1) * n + 0.01 * rng.normal()
        own = {"sharpness": level, "norm": 20.0} | (
            {"last_sharpness": level + 0.1, "encoder_blowup": blowup**4, "decoder_blowup": blowup**6}  # equal norms
            if has_pad
            else {"blowup": blowup**4}
        )
        if cell.key in spoiled:
            own |= {"sharpness": 99.0, "has_converged": False}
        found[cell.key] = (
            ScratchpadRecord(**FITTED, **WRITTEN | own) if has_pad else RunRecord(**FITTED, **OBSERVED | own)
        )
    return Records(cells, found, settings, "small")


def findings(records, name=PAD):
    return {finding.statement: finding for finding in decide(studies.get(name).expectations(records), scale="small")}


SLOPE = "slope of sharpness over the number of bits, without a scratchpad - "
FIVE = "slope of sharpness, without a scratchpad - 5 times that with one"
GROWTH = "slope of log blow-up of a norm over the number of bits, without a scratchpad - of the"


class TestScratchpad:
    def test_it_agrees_where_only_networks_without_a_scratchpad_are_sharper(self):
        records = made()
        found = findings(records)
        assert {finding.verdict for finding in found.values()} == {Verdict.AGREES}
        assert found[f"{SLOPE}with one"].value == pytest.approx(0.029, abs=0.002)
        assert found[FIVE].value == pytest.approx(0.025, abs=0.003)
        assert [finding.statement for finding in found.values() if not finding.is_beyond] == [f"{SLOPE}with one"]
        growth = [finding.value for statement, finding in found.items() if statement.startswith(GROWTH)]
        assert len(growth) == 4
        assert growth[0] == pytest.approx(growth[2], rel=0.1)  # six norms of a decoder count as four of an encoder
        stems = [drawing.stem for drawing in studies.get(PAD).figures(records)]
        assert stems == ["sharpness", "blowup", "norm"]

    def test_it_disagrees_where_it_must(self):
        assert findings(made(flat=0.05))[f"{SLOPE}with one"].verdict == Verdict.DISAGREES
        found = findings(made(flat=0.012))
        assert found[f"{SLOPE}with one"].verdict == Verdict.AGREES
        assert found[FIVE].verdict == Verdict.DISAGREES
        assert findings(made(steep=-0.01))["slope of sharpness without a scratchpad"].verdict == Verdict.DISAGREES
        found = findings(made(pad_blowup=0.2))
        for side in ("encoder", "decoder"):
            assert found[f"{GROWTH} {side} with one, up to 10 bits"].verdict == Verdict.DISAGREES

    def test_runs_that_did_not_converge_are_counted_and_left_out(self):
        records = made(spoiled=["scratchpad/n=32/seed=0", "no-scratchpad/n=10/seed=1"])
        found = findings(records)
        assert found[f"{SLOPE}with one"].value == pytest.approx(0.029, abs=0.002)
        assert found["scratchpad: every run converged"].verdict == Verdict.DISAGREES
        caption = studies.get(PAD).figures(records)[0].caption
        assert "2 of 40 runs did not converge and are left out: scratchpad/n=32/seed=0, no-scratchpad/n=10" in caption

    def test_no_converged_run_decides_nothing(self):
        records = made(spoiled=[cell.key for cell in made().cells])
        verdicts = {finding.verdict for finding in findings(records).values() if not finding.is_beyond}
        assert verdicts == {Verdict.UNDECIDED}
        assert studies.get(PAD).figures(records)

    def test_a_cell_gives_what_its_parts_give(self, tmp_path):
        study = studies.get(PAD)
        settings = dataclasses.replace(study.scales["smoke"], steps=20)
        cell = next(cell for cell in study.cells(settings, range(1)) if cell.key == "scratchpad/n=3/seed=0")
        record = study.measure(cell, settings, Context(tmp_path, lambda state: None))
        plan = HardnessPlan(batch_size=32, lr=5e-3, steps=20, settle=20)
        own = derive_seed("a run scratchpad", 3, 0)
        network, fitted, steps = train_scratchpad(3, plan, seed=own, sizes={"dim": 8})
        found = observe_scratchpad(network, 3, directions=4, strings=16, tests=16, seed=own)
        assert record == ScratchpadRecord(fitted=fitted, steps=steps, **vars(found))


class TestLengths:
    SPAN = Span(shortest=3, longest=5, table=7)

    def test_lengths_and_offsets_are_uniform(self):
        drawn = [self.SPAN.draw(1, step, groups=2) for step in range(3000)]
        pairs = np.array([(length, *offsets) for length, offsets in drawn])
        for length in (3, 4, 5):
            offsets = pairs[pairs[:, 0] == length, 1:].flatten()
            assert abs(len(offsets) / 6000 - 1 / 3) < 4 * math.sqrt(2 / 9 / 3000)
            places = 7 - length + 1
            shares = np.bincount(offsets, minlength=places) / len(offsets)
            assert len(shares) == places
            assert abs(shares - 1 / places).max() < 4 * math.sqrt((1 - 1 / places) / places / len(offsets))
        assert self.SPAN.draw(1, 5, groups=2) == drawn[5]
        assert [self.SPAN.draw(2, step, groups=2) for step in range(9)] != drawn[:9]

    def test_strings_are_fair_coins(self):
        bits = torch.cat([lengths._strings(500, 6, 3, step) for step in range(4)]).double()
        assert set(bits.unique().tolist()) == {-1, 1}
        products = bits.T @ bits / len(bits) - torch.eye(6)
        assert float(bits.mean(dim=0).abs().max()) < 4 / math.sqrt(2000)
        assert float(products.abs().max()) < 4 / math.sqrt(2000)
        assert torch.equal(lengths._strings(500, 6, 3, 1).double(), bits[500:1000])

    def test_steps_of_a_writer_are_those_of_torch_on_the_same_strings_at_the_same_place(self):
        plan = HardnessPlan(batch_size=16, lr=1e-3, steps=4, fit_loss=0.0)
        found, _, steps = train_writer(self.SPAN, plan, dim=8, seed=4)
        network, task = create_scratchpad(7, 4, dim=8), hardness.named_task("parity", 5)
        optimizer = torch.optim.AdamW(network.parameters(), lr=1e-3, weight_decay=0.1)
        for step in range(4):
            length, [offset] = self.SPAN.draw(4, step)
            bits, _, shares = task.batch(16, 4, step, length)
            places, symbols = {"positions": network.positions[offset : offset + length]}, bits.cumprod(dim=1)
            errors = (functional_call(network, places, (bits, symbols)) - (symbols + 1) / 2).square().mean(dim=1)
            optimizer.zero_grad()
            (errors * shares).sum().backward()
            optimizer.step()
        assert steps == 4
        assert self.apart(found, network) < 2e-4
        assert self.apart(found, create_scratchpad(7, 4, dim=8)) > 2e-3

    def test_steps_of_an_encoder_are_those_of_torch_on_the_same_strings_at_the_same_places(self):
        plan = HardnessPlan(batch_size=24, lr=1e-3, steps=4, fit_loss=0.0)
        found, _, steps = train_encoder("majority", self.SPAN, HardnessDesign(dim=8), plan, groups=3, seed=4)
        network = HardnessDesign(dim=8).create(7, 4)
        optimizer = torch.optim.AdamW(network.parameters(), lr=1e-3, weight_decay=0.1)
        for step in range(4):
            length, offsets = self.SPAN.draw(4, step, groups=3)
            bits = lengths._strings(24, length, 4, step)
            labels = (bits.sum(dim=1) > 0).float()
            parts = []
            for group, offset in enumerate(offsets):
                places = {"positions": network.positions[offset : offset + length]}  # and no others
                parts.append(functional_call(network, places, (bits[8 * group : 8 * (group + 1)],)))
            optimizer.zero_grad()
            (torch.cat(parts) - labels).square().mean().backward()
            optimizer.step()
        assert steps == 4
        assert self.apart(found, network) < 2e-4
        assert self.apart(found, HardnessDesign(dim=8).create(7, 4)) > 2e-3

    @staticmethod
    def apart(first, second):
        """The largest difference of two weights; softmax does not see a bias of the keys."""
        ours, theirs = first.state_dict(), second.state_dict()
        return max(float((ours[name] - theirs[name]).abs().max()) for name in ours if "to_key.bias" not in name)

    def test_a_shifted_network_reads_from_the_middle_of_the_table(self):
        network, bits = HardnessDesign(dim=8).create(7, 0), strings(5, 4)
        expected = functional_call(network, {"positions": network.positions[2:6]}, (bits,))
        assert torch.equal(shift_positions(network, 2)(bits), expected)
        assert not torch.allclose(network(bits), expected)
        before = network.positions.clone()
        shift_positions(network, 3)
        assert torch.equal(network.positions, before)

    def test_accuracy_of_a_rule_by_hand(self):
        network = ByHand(9, wrong=6)
        assert [accuracy(network, "parity", length, tests=32) for length in range(4, 10)] == [1, 1, 1, 0, 0, 0]

    def test_accuracy_of_a_constant_is_the_share_of_its_label(self):
        network = HardnessDesign(dim=8).create(6, 0)
        with torch.no_grad():
            network.readout.weight.zero_()
            network.readout.bias.fill_(1.0)
        assert accuracy(network, "parity", 6) == 0.5  # all 64 strings
        assert accuracy(network, "majority", 6) == pytest.approx(22 / 64)  # a tie is 0

    def test_offsets_are_spread_over_the_table(self, monkeypatch):
        network, seen = ByHand(9), []
        monkeypatch.setattr(lengths, "shift_positions", lambda network, offset: seen.append(offset) or network)
        accuracy(network, "parity", 5, tests=4)
        assert seen == [0, 1, 3, 4]
        seen.clear()
        accuracy(network, "parity", 8, tests=4)
        assert seen == [0, 1]
        seen.clear()
        accuracy(network, "parity", 5, tests=4, places=1)
        assert seen == [0]

    def test_wrong_use_is_one_line(self):
        with pytest.raises(UsageError, match="must not fall"):
            Span(shortest=4, longest=8, table=7)
        with pytest.raises(UsageError, match="architecture='mlp' cannot be put at offsets"):
            train_encoder("first", self.SPAN, HardnessDesign(dim=8, architecture="mlp"), HardnessPlan(steps=1), seed=0)
        with pytest.raises(UsageError, match="batch_size=100 must be a multiple of groups=8"):
            train_encoder("first", self.SPAN, HardnessDesign(dim=8), HardnessPlan(batch_size=100), seed=0)


def tried(levels, spoiled=()):
    """Runs with an accuracy of 1 on 4 to 6 bits and, on 7 to 12, about the level of their kind."""
    study = studies.get(LENGTHS)
    settings, rng = study.scales["small"], np.random.default_rng(1)
    cells = study.cells(settings, range(5))
    found = {}
    for cell in cells:
        level = levels[cell.kind]
        trained = [0.7 if cell.key in spoiled else 1.0] * 3
        values = trained + [min(1.0, level + 0.01 * rng.normal()) for _ in range(6)]
        found[cell.key] = LengthRecord(fitted=500, steps=800, lengths=tuple(range(4, 13)), accuracy=tuple(values))
    return Records(cells, found, settings, "small")


LIKE_THEORY = {"scratchpad": 0.95, "parity": 0.52, "majority": 0.93, "first": 0.98}


class TestLengthGeneralisation:
    def test_it_agrees_where_parity_is_lost_without_a_scratchpad_only(self):
        records = tried(LIKE_THEORY)
        found = findings(records, LENGTHS)
        assert {finding.verdict for finding in found.values()} == {Verdict.AGREES}
        assert found["parity: accuracy on 7 to 12 bits - on those of training"].value == pytest.approx(-0.48, abs=0.01)
        assert found["accuracy on 7 to 12 bits, scratchpad - none"].value == pytest.approx(0.43, abs=0.01)
        assert len([finding for finding in found.values() if not finding.is_beyond]) == 2
        (drawing,) = studies.get(LENGTHS).figures(records)
        line = next(line for line in drawing.figure.axes[0].lines if line.get_label() == "parity")
        assert list(line.get_xdata()) == list(range(4, 13))
        assert line.get_ydata()[:3].tolist() == [1.0] * 3
        assert line.get_ydata()[3:].mean() == pytest.approx(0.52, abs=0.01)

    def test_it_disagrees_where_it_must(self):
        found = findings(tried(LIKE_THEORY | {"scratchpad": 0.4, "parity": 0.6, "first": 0.5}), LENGTHS)
        assert found["accuracy on 7 to 12 bits, scratchpad - none"].verdict == Verdict.DISAGREES
        assert found["scratchpad: accuracy on 7 bits"].verdict == Verdict.DISAGREES
        statement = "accuracy on 7 to 12 bits, {} - parity, both without a scratchpad"
        assert found[statement.format("first")].verdict == Verdict.DISAGREES
        assert found[statement.format("majority")].verdict == Verdict.AGREES
        found = findings(tried(LIKE_THEORY | {"parity": 0.9}), LENGTHS)
        assert found["parity: accuracy on 7 to 12 bits"].verdict == Verdict.DISAGREES
        assert found["parity: accuracy on 7 to 12 bits - on those of training"].verdict == Verdict.DISAGREES

    def test_runs_that_have_not_learnt_are_counted_and_left_out(self):
        records = tried(LIKE_THEORY, spoiled=["parity/seed=1", "scratchpad/seed=4"])
        found = findings(records, LENGTHS)
        assert found["parity: accuracy on 7 to 12 bits - on those of training"].value == pytest.approx(-0.48, abs=0.01)
        for kind, value in (("parity", 1), ("scratchpad", 1), ("majority", 0)):
            assert found[f"{kind}: every run has learnt the lengths of training"].value == value
        assert "2 of 20 runs did not learn" in studies.get(LENGTHS).figures(records)[0].caption

    def test_nothing_learnt_decides_nothing(self):
        records = tried(LIKE_THEORY, spoiled=[cell.key for cell in tried(LIKE_THEORY).cells])
        verdicts = {finding.verdict for finding in findings(records, LENGTHS).values() if not finding.is_beyond}
        assert verdicts == {Verdict.UNDECIDED}
        assert studies.get(LENGTHS).figures(records)


@pytest.mark.parametrize(
    ("name", "key"),
    [(PAD, "scratchpad/n=4/seed=0"), (LENGTHS, "scratchpad/seed=0"), (LENGTHS, "parity/seed=0")],
)
def test_a_cell_that_was_stopped_ends_with_the_same_record(name, key, tmp_path, monkeypatch):
    study = studies.get(name)
    fewer = {"steps": 30} | ({"pad_steps": 30} if name == LENGTHS else {})
    settings = dataclasses.replace(study.scales["smoke"], **fewer)
    cell = next(cell for cell in study.cells(settings, range(1)) if cell.key == key)
    whole = study.measure(cell, settings, Context(tmp_path / "whole", lambda state: None))

    monkeypatch.setitem(train_single.__kwdefaults__, "checkpoint_every", 10)
    again, taken = stopped_and_resumed(study, cell, settings, tmp_path / "stopped", at=25)
    assert again == whole
    assert taken == whole.steps - 20  # it went on from the last state
