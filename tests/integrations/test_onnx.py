"""Networks in ONNX's format: names, types and sizes are read from the network, numbers are those of its twin."""

import importlib
import pickle

import numpy as np
import pytest
import torch

import jostle
from jostle.base.errors import UsageError
from jostle.cli import main
from jostle.integrations import load
from jostle.integrations.onnx import OnnxModel
from tests.integrations.onnx_files import write

onnx = pytest.importorskip("onnx", reason="onnx is not installed")
runtime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
FLOAT, INT32, INT64, STRING = (getattr(onnx.TensorProto, name) for name in ("FLOAT", "INT32", "INT64", "STRING"))
WEIGHTS = np.random.default_rng(0).normal(size=(5, 3)).astype(np.float32)
X = np.random.default_rng(1).normal(size=(40, 5)).astype(np.float32)
NOISE = {"tokens": "coordinates", "perturbation": "gaussian-noise:std=1", "plan": jostle.Grid(3)}


def linear(path, batch="batch"):
    return write(
        path,
        [("MatMul", ["x", "w"], ["scores"], {})],
        {"x": (FLOAT, [batch, 5])},
        {"scores": (FLOAT, [batch, 3])},
        {"w": WEIGHTS},
    )


def bag(path, ids=INT64, mask=True):
    """A text classifier: the sum of word vectors, over the words of the mask."""
    table = np.random.default_rng(2).normal(size=(300, 2)).astype(np.float32)
    nodes = [
        ("Gather", ["table", "input_ids"], ["vectors"], {}),
        ("Cast", ["attention_mask"], ["real"], {"to": FLOAT}),
        ("Unsqueeze", ["real", "last"], ["column"], {}),
        ("Mul", ["vectors", "column"], ["kept"], {}),
        ("ReduceSum", ["kept", "tokens"], ["logits"], {"keepdims": 0}),
        ("Identity", ["logits"], ["other"], {}),
    ]
    names = {"input_ids": (ids, ["batch", "tokens"]), "attention_mask": (INT64, ["batch", "tokens"])}
    outputs = {"other": (FLOAT, ["batch", 2]), "logits": (FLOAT, ["batch", 2])}
    return write(path, nodes, names, outputs, {"table": table, "last": np.array([2]), "tokens": np.array([1])}), table


@pytest.fixture
def twin():
    return jostle.measure(lambda x: x @ torch.from_numpy(WEIGHTS), torch.from_numpy(X), **NOISE)


@pytest.mark.parametrize("batch", ["batch", None, 1, 7])
def test_a_file_and_a_session_are_the_network_of_torch(tmp_path, twin, batch):
    path = linear(tmp_path / "net.onnx", batch)
    for model in (load(f"onnx:{path}"), runtime.InferenceSession(path), OnnxModel(path, output="scores")):
        assert jostle.measure(model, X.astype(np.float64), **NOISE).value == twin.value
        assert jostle.measure(model, {"x": X}, **NOISE).value == twin.value


def test_the_command_line_takes_a_file(tmp_path, capsys, twin):
    np.save(tmp_path / "x.npy", X.astype(np.float64))
    path = linear(tmp_path / "net.onnx")
    main(
        [
            "measure",
            "--model",
            f"onnx:{path}",
            "--data",
            str(tmp_path / "x.npy"),
            "--tokens",
            "coordinates",
            "--draws",
            "3",
        ]
    )
    assert f"flip {twin.value:.4g} " in capsys.readouterr().out


def test_ids_get_the_type_and_the_companions_that_the_network_declares(tmp_path):
    path, table = bag(tmp_path / "bag.onnx", ids=INT32)
    ids = torch.randint(1, 300, (20, 6), generator=torch.Generator().manual_seed(0))
    model = OnnxModel(path)
    assert model.output == "logits"
    words = {"tokens": "words", "perturbation": jostle.UniformToken(range(1, 300)), "plan": jostle.Grid(2)}
    vectors = torch.from_numpy(table)
    expected = jostle.measure(lambda x: vectors[x].sum(dim=1), ids, tokens="rows", **dict(list(words.items())[1:]))
    assert jostle.measure(model, ids, tokens="rows", **dict(list(words.items())[1:])).value == expected.value
    assert jostle.measure(model, {"input_ids": ids, "attention_mask": torch.ones_like(ids)}, **words).value > 0


def test_texts_through_the_tokenizer_beside_the_file(tmp_path):
    importlib.import_module("tokenizers")
    from jostle.data import train_tokenizer

    texts = ["low lower lowest", "slow slower slowest", "low slow"]
    train_tokenizer(texts * 5, vocabulary=280).save(tmp_path / "tokenizer.json")
    path, _ = bag(tmp_path / "model.onnx")
    (tmp_path / "config.json").write_text('{"id2label": {"0": "bad", "1": "good"}}')
    model = load(f"onnx:{path}")
    assert model.classes == ("bad", "good")
    m = jostle.measure(model, texts, tokens="words:special=false", perturbation="deletion")
    assert m.settings.num_inputs == 3


def test_a_label_with_probabilities_is_read_by_its_probabilities(tmp_path):
    nodes = [
        ("MatMul", ["x", "w"], ["scores"], {}),
        ("Softmax", ["scores"], ["probabilities"], {"axis": 1}),
        ("ArgMax", ["scores"], ["label"], {"axis": 1, "keepdims": 0}),
    ]
    outputs = {"label": (INT64, ["n"]), "probabilities": (FLOAT, ["n", 3])}
    path = write(tmp_path / "p.onnx", nodes, {"x": (FLOAT, ["n", 5])}, outputs, {"w": WEIGHTS})
    model, label = load(f"onnx:{path}"), load(f"onnx:{path}:output=label")
    assert model.output == "probabilities"
    assert jostle.measure(model, X, **NOISE).value == jostle.measure(label, X, **NOISE).value > 0
    assert repr(model).endswith("x (n, 5) -> probabilities)")


def test_a_pipeline_of_scikit_learn_with_an_input_for_each_column(tmp_path):
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    names = list("abcde")
    nodes = [("Concat", names, ["x"], {"axis": 1}), ("MatMul", ["x", "w"], ["scores"], {})]
    inputs = {name: (FLOAT, ["n", 1]) for name in names}
    path = write(tmp_path / "c.onnx", nodes, inputs, {"scores": (FLOAT, ["n", 3])}, {"w": WEIGHTS})
    frame = pandas.DataFrame(X, columns=names)
    choices = NOISE | {"tokens": "columns"}
    m = jostle.measure(load(f"onnx:{path}"), frame, **choices)
    assert m.profile.names == tuple(names)
    assert m.value == jostle.measure(lambda x: x @ torch.from_numpy(WEIGHTS), torch.from_numpy(X), **choices).value


def test_strings_go_in_as_strings(tmp_path):
    nodes = [("StringNormalizer", ["s"], ["t"], {"case_change_action": "NONE"}), ("Identity", ["c"], ["scores"], {})]
    outputs = {"t": (STRING, ["n"]), "scores": (FLOAT, [2, 2])}
    constants = {"c": np.eye(2, dtype=np.float32)}
    path = write(tmp_path / "s.onnx", nodes, {"s": (STRING, ["n"])}, outputs, constants)
    model = OnnxModel(path)
    assert model.reads_texts
    assert model(["a film", "a play"]).shape == (2, 2)
    assert OnnxModel(path, output="t")(["a film"]).tolist() == ["a film"]


@pytest.mark.parametrize(
    ("make", "inputs", "said"),
    [
        (linear, torch.zeros(4, 6), "takes x of shape (batch, 5), and the inputs have shape (batch, 6)"),
        (
            linear,
            {"y": torch.zeros(4, 5), "z": torch.zeros(4)},
            "takes x, and the inputs are y, z: give a mapping with x",
        ),
        (lambda path: bag(path)[0], torch.zeros(4, 6) + 0.5, "takes whole numbers (tensor(int64)) as input_ids"),
    ],
)
def test_inputs_that_do_not_fit_are_one_line(tmp_path, make, inputs, said):
    model = OnnxModel(make(tmp_path / "net.onnx"))
    choices = NOISE | ({"tokens": "rows:key=y"} if isinstance(inputs, dict) else {})
    with pytest.raises(UsageError) as caught:
        jostle.measure(model, inputs, **choices)
    assert said in str(caught.value)


def test_files_that_cannot_be_used_are_one_line(tmp_path, monkeypatch):
    with pytest.raises(UsageError, match="the file does not exist"):
        load(f"onnx:{tmp_path}/none.onnx")
    (tmp_path / "bad.onnx").write_bytes(b"not a network")
    with pytest.raises(UsageError, match="cannot be loaded by ONNX Runtime"):
        load(f"onnx:{tmp_path}/bad.onnx")
    path = linear(tmp_path / "net.onnx")
    with pytest.raises(UsageError, match="output 'logit"):
        load(f"onnx:{path}:output=logits")
    with pytest.raises(UsageError, match="option of onnx"):
        load(f"onnx:{path}:seed=1")
    monkeypatch.setitem(importlib.sys.modules, "onnxruntime", None)
    with pytest.raises(UsageError, match=r"needs onnxruntime: pip install \"jostle\[onnx\]\""):
        load(f"onnx:{path}")


def test_no_gradients_are_said_where_they_are_wanted(tmp_path):
    model = load(f"onnx:{linear(tmp_path / 'net.onnx')}")
    with pytest.warns(jostle.JostleWarning, match="model gives no gradients"):
        found = jostle.worst_case(model, torch.from_numpy(X[:4]), tokens="coordinates", radius=1.0, starts=2, steps=3)
    assert not found.has_gradient
    assert "no gradients" in str(found)
    penalty = jostle.SensitivityPenalty(tokens="coordinates", std=1.0, strength=0.1)
    with pytest.raises(UsageError, match="gradient"):
        penalty(model, torch.from_numpy(X[:4]))


def test_a_file_goes_to_other_processes_and_a_session_does_not(tmp_path):
    path = linear(tmp_path / "net.onnx")
    copy = pickle.loads(pickle.dumps(OnnxModel(path)))
    assert (copy(X) == OnnxModel(path)(X)).all()
    with pytest.raises(UsageError, match="cannot be sent to other processes: give onnx:FILE"):
        pickle.dumps(OnnxModel(runtime.InferenceSession(path)))
