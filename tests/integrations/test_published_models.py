"""Real models of other people, each as its package ships it: file types, reactions, toxic comments."""

import importlib.util
import json
import pickle
import re
from collections import OrderedDict, defaultdict
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import jostle
from jostle.integrations import load


def folder(package):
    found = importlib.util.find_spec(package)
    if found is None:
        pytest.skip(f"{package} is not installed")
    return Path((found.submodule_search_locations or [])[0])


def test_magika_knows_python_and_one_random_byte_does_not_change_its_mind():
    pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    place = folder("magika") / "models" / "standard_v3_3"
    settings = json.loads((place / "config.min.json").read_text())
    model = load(f"onnx:{place / 'model.onnx'}")
    begin, end = settings["beg_size"], settings["end_size"]
    sources = [path.read_bytes().strip() for path in sorted(Path(jostle.__file__).parent.rglob("*.py"))]
    data = torch.tensor([[*source[:begin], *source[-end:]] for source in sources if len(source) > begin + end][:12])
    names = {settings["target_labels_space"][number] for number in model(data).argmax(axis=1)}
    assert names == {"python"}
    m = jostle.measure(
        model, data, tokens="coordinates", perturbation="uniform-token:256", plan=jostle.Until(half_width=0.05)
    )
    assert m.high < 0.1


SMILES = re.compile(
    r"(\%\([0-9]{3}\)|\[[^\]]+]|Br?|Cl?|N|O|S|P|F|I|b|c|n|o|s|p|\||\(|\)|\.|=|#|-|\+|\\|\/|:|~|@|\?|>>?|\*|\$|\%[0-9]{2}|[0-9])"
)
AMIDE = "CC(=O)O.NCc1ccccc1>>CC(=O)NCc1ccccc1"  # an acid and an amine become an amide
SUZUKI = "Brc1ccccc1.OB(O)c1ccc(C)cc1>>Cc1ccc(-c2ccccc2)cc1"  # two rings are joined


@pytest.mark.slow
def test_rxnfp_a_fine_tuned_bert_from_its_bin_file():
    pytest.importorskip("transformers", reason="transformers is not installed")
    place = folder("rxnfp") / "models" / "transformers" / "bert_ft_10k_25s"
    assert (place / "pytorch_model.bin").is_file()
    model = load(f"hf:{place}")
    assert len(model.classes) == 50
    numbers = {word: number for number, word in enumerate((place / "vocab.txt").read_text().split("\n"))}
    rows = [[numbers[one] for one in ("[CLS]", *SMILES.findall(reaction), "[SEP]")] for reaction in (AMIDE, SUZUKI)]
    prompts = jostle.Prompts.of_ids(rows)
    with torch.inference_mode():
        logits = model(**prompts.inputs).logits
    assert logits.softmax(dim=1).amax(dim=1).min() > 0.9
    assert len(set(logits.argmax(dim=1).tolist())) == 2
    m = jostle.measure(model, prompts, tokens="words", perturbation="deletion")
    assert m.stopped == "complete"
    assert 0 < m.value < 1
    noise = {"tokens": "embeddings", "perturbation": "gaussian-noise:std=0.5", "plan": jostle.Grid(1)}
    assert 0 <= jostle.measure(model, rows, **noise).value < 1


class Restricted(pickle.Unpickler):
    """Reads the words of a tokenizer and makes no object of any class."""

    def find_class(self, module, name):
        known = {("collections", "OrderedDict"): OrderedDict, ("collections", "defaultdict"): defaultdict}
        return known.get((module, name), int if name == "int" else type(name, (), {}))


class ToxicComments(nn.Module):
    """Embedding, bidirectional LSTM, maximum over words, two layers: six labels of comments (Jigsaw)."""

    def __init__(self, weights):
        super().__init__()
        held = weights["layers"]

        def values(path):
            group = held[path]["vars"]
            return [torch.from_numpy(np.asarray(group[str(number)])).double() for number in range(len(group))]

        self.words = nn.Embedding.from_pretrained(values("embedding")[0])
        self.lstm = nn.LSTM(50, 50, batch_first=True, bidirectional=True)
        for end, path in (("", "forward_layer"), ("_reverse", "backward_layer")):
            kernel, recurrent, bias = values(f"bidirectional/{path}/cell")
            for name, value in (("weight_ih", kernel.T), ("weight_hh", recurrent.T), ("bias_ih", bias)):
                getattr(self.lstm, f"{name}_l0{end}").data = value.contiguous()
            getattr(self.lstm, f"bias_hh_l0{end}").data.zero_()
        self.dense = nn.ParameterList(values("dense") + values("dense_1"))

    def forward(self, ids):
        hidden = self.lstm(self.words(ids))[0].amax(dim=1)
        first, bias, second, last = self.dense
        return torch.relu(hidden @ first + bias) @ second + last


@pytest.mark.slow
def test_a_bilstm_of_toxic_comments_as_a_function_of_strings():
    h5py = pytest.importorskip("h5py", reason="h5py is not installed")
    place = folder("toxic_classifier") / "model"
    with h5py.File(place / "model.weights.h5") as weights:
        network = ToxicComments(weights).eval()
    with (place / "tokenizer.pickle").open("rb") as file:
        numbers = Restricted(file).load().word_index

    def toxic(texts):  # the logit of the label "toxic"
        rows = [[numbers.get(word, 0) for word in re.findall(r"[\w']+", text.lower())][-100:] for text in texts]
        ids = torch.tensor([[0] * (100 - len(row)) + [n if n < 20000 else 0 for n in row] for row in rows])
        with torch.inference_mode():
            return network(ids)[:, 0]

    texts = ["you are a stupid idiot", "thank you for your kind help", "what a nice day it is"]
    answers = toxic(texts)
    assert answers[0] > 2
    assert answers[1:].max() < -2
    m = jostle.measure(toxic, texts, tokens="words", perturbation="deletion")
    assert m.value < 0.3
    prompts = jostle.Prompts.of_words(texts)
    insult = prompts.lexicon.pieces.index("idiot ")
    m = jostle.measure(toxic, prompts, tokens="words", perturbation=jostle.UniformToken([insult]))
    assert m.value > 0.3  # one insult makes a kind comment toxic
