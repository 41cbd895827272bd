"""The networks that tell stories, read from files, and the summary of their influences."""

import os
import struct
from pathlib import Path

import numpy as np
import pytest
import torch

from jostle.base.errors import UsageError
from jostle_papers.p2602_08287 import stories
from jostle_papers.p2602_08287.juntas import _READ, JuntaSettings, _carrying, _summary

FOLDER = Path(os.environ.get("JOSTLE_NETWORKS", "/nowhere"))


@pytest.fixture(autouse=True)
def single_precision():
    torch.set_default_dtype(torch.float32)


def written(network, path, positions=9):
    """A file of llama2.c with the weights of a network."""
    blocks, words = network.blocks, network.words.weight
    first = blocks[0]
    header = (words.shape[1], first.gate.out_features, len(blocks), first.heads, first.kv_heads, len(words), positions)
    names = ("attention_norm", "to_query", "to_key", "to_value", "to_out", "mlp_norm", "gate", "narrow", "widen")
    parts = [words, *(getattr(block, name).weight for name in names for block in blocks), network.norm.weight]
    numbers = [part.detach().flatten() for part in parts]
    numbers.append(torch.zeros(positions * words.shape[1] // first.heads))
    path.write_bytes(struct.pack("7i", *header) + torch.cat(numbers).numpy().astype("<f4").tobytes())


def test_a_file_of_llama2c_gives_the_network_that_wrote_it(tmp_path):
    torch.manual_seed(3)
    network = stories.StoryLlama(dim=8, hidden=12, depth=2, heads=4, kv_heads=2, vocabulary=11).eval()
    with torch.no_grad():
        for norm in (network.norm, network.blocks[1].mlp_norm):
            norm.weight.uniform_(0.5, 2.0)
    written(network, tmp_path / "m.bin")
    ids = torch.randint(11, (3, 7))
    torch.testing.assert_close(stories.read_llama(tmp_path / "m.bin")(ids), network(ids))
    (tmp_path / "short.bin").write_bytes((tmp_path / "m.bin").read_bytes()[:200])
    with pytest.raises(UsageError, match="ends before its last weight"):
        stories.read_llama(tmp_path / "short.bin")


@pytest.mark.parametrize("make", [stories.untrained, stories.StoryGRU])
def test_networks_read_in_order(make):
    network, ids = make().eval(), torch.randint(3, 20, (2, 12))
    changed = ids.clone()
    changed[:, 7] = (changed[:, 7] + 1) % 20
    before, after = network(ids), network(changed)
    torch.testing.assert_close(before[:, :7], after[:, :7])
    assert (before[:, 7:] - after[:, 7:]).abs().amax(dim=(0, 2)).min() > 0


def test_positions_turn_the_scores_by_their_difference():
    """Rotary positions: the product of two rotated vectors depends on how far they are apart."""
    vectors = torch.randn(1, 1, 1, 6).expand(1, 1, 10, 6)
    turned = stories._rotated(vectors)[0, 0]
    products = turned @ turned.T
    for offset in range(1, 9):
        assert float(products.diagonal(offset).std()) < 1e-5
    torch.testing.assert_close(turned[0], vectors[0, 0, 0])


def test_a_story_depends_on_its_seed_alone_and_has_no_special_token():
    network = stories.untrained()
    first, again, other = (stories.tell(network, (1,), 3, 20, seed) for seed in (0, 0, 1))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    assert int(first[0, 0]) == 1
    assert int(first[0, 1:].min()) >= 3


def test_the_summary_counts_tokens_by_their_influence():
    count = _READ + 6
    values = np.full((count, count), np.nan)
    for place in range(count):
        values[: place + 1, place] = 0.001
        values[place, place] = 0.9  # the last token
        values[max(place - 1, 0), place] = 0.3 if place else 0.9
    found = _summary(values, [16] * count, 5)
    assert (found.mattering, found.half, found.most) == (2.0, 1.0, 2.0)
    assert found.by_distance[:3] == (0.9, 0.3, 0.001)
    assert len(found.by_distance) == count - _READ
    assert _carrying(np.zeros(4), 0.9) == 0
    assert _carrying(np.ones(10), 0.9) == 9


def test_a_story_must_be_longer_than_what_is_read():
    with pytest.raises(UsageError, match="tokens=10 must be"):
        JuntaSettings(tokens=10)


def test_absent_files_are_named(monkeypatch, tmp_path):
    monkeypatch.setenv("JOSTLE_NETWORKS", str(tmp_path))
    with pytest.raises(UsageError, match=r"JOSTLE_NETWORKS has no file stories260K/stories260K\.bin"):
        stories.stories_260k()


@pytest.mark.skipif(
    not (FOLDER / "stories260K").is_dir(), reason="JOSTLE_NETWORKS names no folder of networks that others trained"
)
def test_the_networks_of_others_tell_stories():
    """Their own text surprises them far less than random tokens do."""
    for name in ("stories260K", "babyllama105", "tinystories-gru"):
        make, begin, first = stories.NETWORKS[name]
        network = make()
        story = stories.tell(network, begin, first, 60, 0)
        noise = torch.randint(first, 90, story.shape)
        losses = [torch.nn.functional.cross_entropy(network(ids)[0, :-1], ids[0, 1:]).item() for ids in (story, noise)]
        assert losses[0] < 2 < losses[1] - 2
