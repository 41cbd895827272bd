"""``hf:`` for texts: small random networks saved by transformers, read as transformers itself reads them."""

import json

import pytest
import torch

from jostle import integrations
from jostle.base.errors import UsageError
from jostle.data import TextDataset
from jostle.integrations import reader_of
from tests.integrations.text_folders import TEXTS, network, save

KINDS = ["bert", "distilbert", "roberta"]


def dataset(*examples):
    tuples = tuple((text,) if isinstance(text, str) else text for text in examples)
    return TextDataset("made up", tuples, torch.zeros(len(tuples), dtype=torch.int64), 2)


def answer(model, encoded):
    with torch.inference_mode():
        return model(**{key: value for key, value in encoded.items() if key != "special_tokens_mask"}).logits


@pytest.mark.parametrize("kind", KINDS)
def test_one_text_alone_in_transformers_has_the_same_logits(tmp_path, kind, capfd):
    from transformers import PreTrainedTokenizerFast

    saved, folder = save(tmp_path, kind, classes=3)
    capfd.readouterr()
    model = integrations.load(f"hf:{folder}")
    assert capfd.readouterr() == ("", "")
    assert not any(module.training for module in model.modules())
    theirs = PreTrainedTokenizerFast.from_pretrained(folder)
    pairs = [(TEXTS[0], TEXTS[1]), (TEXTS[2], TEXTS[4])]
    for examples in (TEXTS, pairs):
        found = answer(model, reader_of(model).encode(dataset(*examples)))
        for row, example in enumerate(examples):
            parts = (example,) if isinstance(example, str) else example
            given = theirs(*parts, return_tensors="pt", return_token_type_ids=kind == "bert")
            assert torch.allclose(answer(saved, given)[0], found[row], atol=1e-5)
        assert found.std(dim=0).min() > 1e-3  # texts differ


def test_the_second_text_of_a_pair_has_its_own_type(tmp_path):
    _, folder = save(tmp_path, "bert")
    reader = reader_of(integrations.load(f"hf:{folder}"))
    types = reader.encode(dataset(("good", "bad film")))["token_type_ids"]
    assert types.tolist() == [[0, 0, 0, 1, 1, 1]]
    assert "token_type_ids" not in reader.encode(dataset("good"))


def test_a_network_without_padding_pads_with_its_end_of_text(tmp_path):
    saved, folder = save(tmp_path, "gpt2")
    model = integrations.load(f"hf:{folder}")
    encoded = reader_of(model).encode(dataset(*TEXTS))
    assert model.config.pad_token_id == 0
    assert set(encoded["input_ids"][encoded["attention_mask"] == 0].tolist()) == {0}
    alone = answer(saved, {"input_ids": encoded["input_ids"][1:2, :4]})
    assert encoded["attention_mask"][1].sum() == 4
    assert torch.allclose(answer(model, encoded)[1], alone[0], atol=1e-5)


@pytest.mark.parametrize(("kind", "places"), [("bert", 24), ("distilbert", 24), ("roberta", 24), ("gpt2", 24)])
def test_as_many_tokens_as_the_network_has_places_for(tmp_path, kind, places):
    """RoBERTa has 26 rows of positions, of which the first two are for nothing."""
    _, folder = save(tmp_path, kind)
    model = integrations.load(f"hf:{folder}")
    assert reader_of(model).max_length == places
    assert reader_of(model, max_length=7).max_length == 7
    long = dataset("good " * 40, "bad")
    encoded = reader_of(model).encode(long)
    assert encoded["input_ids"].shape == (2, places)
    assert reader_of(model).count_cut(long, encoded) == 1
    answer(model, encoded)  # does not raise
    settings = folder / "tokenizer_config.json"
    settings.write_text(json.dumps(json.loads(settings.read_text()) | {"model_max_length": 9}))
    assert reader_of(model).max_length == 9
    with pytest.raises(UsageError, match="--max-length 10 must be from 1 to 9"):
        reader_of(model, max_length=10)


def test_a_text_of_exactly_the_limit_is_not_cut(tmp_path):
    model = integrations.load(f"hf:{save(tmp_path, 'bert')[1]}")
    reader = reader_of(model, max_length=5)
    texts = dataset("good bad film", "good bad film plot")
    assert reader.count_cut(texts, reader.encode(texts)) == 1


def test_classes_and_their_names(tmp_path):
    model = integrations.load(f"hf:{save(tmp_path, 'bert', id2label={0: 'dull', 1: 'fine'}, label2id={})[1]}")
    assert (model.classes, model.has_names) == (("dull", "fine"), True)
    assert integrations.TextNetwork(network(classes=3)).classes == ("LABEL_0", "LABEL_1", "LABEL_2")
    assert not integrations.TextNetwork(network(classes=3)).has_names


def refused(spec, **options):
    with pytest.raises(UsageError) as error:
        reader_of(integrations.load(spec), **options)
    assert "\n" not in str(error.value)
    return str(error.value)


def test_an_encoder_is_refused_unless_its_features_are_asked_for(tmp_path):
    saved, folder = save(tmp_path, "bert", head=False)
    message = refused(f"hf:{folder}")
    assert "lacks weights that fit classifier.bias, classifier.weight" in message
    assert f"write hf:{folder}:features" in message
    model = integrations.load(f"hf:{folder}:features")
    assert (model.has_head, model.classes) == (False, ())
    encoded = reader_of(model).encode(dataset(*TEXTS))
    encoded.pop("special_tokens_mask")
    with torch.inference_mode():
        assert torch.allclose(model(**encoded).pooler_output, saved(**encoded).pooler_output, atol=1e-6)


def test_a_pooler_without_weights_is_left_out(tmp_path):
    from transformers import BertModel

    bare = BertModel(network(head=False).config, add_pooling_layer=False).float()
    bare.save_pretrained(tmp_path)
    model = integrations.load(f"hf:{tmp_path}:features")
    assert model(input_ids=torch.tensor([[2, 3]])).pooler_output is None


def test_a_folder_without_a_tokenizer_is_one_line_when_texts_are_read(tmp_path):
    message = refused(f"hf:{save(tmp_path, 'bert', words=False)[1]}")
    assert "has no tokenizer.json" in message
    assert "save_pretrained(DIR), or give --tokenizer FILE" in message


def test_a_tokenizer_from_elsewhere(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    _, bare = save(tmp_path / "a", "bert", words=False)
    _, whole = save(tmp_path / "b", "bert")
    model = integrations.load(f"hf:{bare}")
    for place in (whole, whole / "tokenizer.json"):
        assert reader_of(model, tokenizer=place).encode(dataset("good film"))["input_ids"].tolist() == [[2, 10, 5, 3]]
    with pytest.raises(UsageError, match="does not say how it reads texts"):
        reader_of(torch.nn.Linear(2, 2))


def test_a_network_of_neither_kind_is_refused(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "whisper", "architectures": ["WhisperModel"]}))
    (tmp_path / "model.safetensors").touch()
    assert "'WhisperModel' is no classifier of images, texts or tokens" in refused(f"hf:{tmp_path}")
    (tmp_path / "config.json").write_text("[]")
    assert "config.json cannot be read" in refused(f"hf:{tmp_path}")
