"""Language models of transformers and of anybody: prompts of any kind, either side of padding, any batch size."""

import numpy as np
import pytest
import torch

import jostle
from jostle import Deletion, Embeddings, GaussianNoise, UniformToken, UsageError, Words
from tests.integrations.families import CAUSAL, ENCODER_DECODER, SINGLE, TEXTS, VOCABULARY, network, padded

pytest.importorskip("transformers")

MOVES = [
    (Embeddings(), GaussianNoise(1.0)),
    (Embeddings("before"), GaussianNoise(1.0)),
    (Words(), UniformToken(VOCABULARY)),
    (Words(), UniformToken([4, 9])),  # given alternatives
    (Words(), Deletion()),
]


def measured(model, inputs, tokens, perturbation, response="kl", **options):
    return jostle.measure(
        model, inputs, tokens=tokens, perturbation=perturbation, response=response, plan="grid:2", **options
    )


def by_hand(model, text):
    """The logits after a whole text, asked alone."""
    ids = torch.tensor([text])
    extra = {"decoder_input_ids": torch.tensor([[_start(model)]])} if model.config.is_encoder_decoder else {}
    with torch.inference_mode():
        return model(input_ids=ids, **extra).logits[0, -1]


def _start(model):
    return model.config.decoder_start_token_id


@pytest.mark.parametrize("kind", [*CAUSAL, *ENCODER_DECODER])
def test_every_family_gives_one_answer_for_either_padding_and_every_batch_size(kind):
    model = network(kind)
    tokens, perturbation = MOVES[sorted([*CAUSAL, *ENCODER_DECODER]).index(kind) % 2]
    ways = [(padded("left"), 128), (padded("right"), 2), (TEXTS, 1), (padded("right", 7, pad=11), 128)]
    for view, move in [(tokens, perturbation), MOVES[2]]:
        found = [measured(model, inputs, view, move, batch_size=size) for inputs, size in ways]
        values = np.array([m.per_input for m in found])
        assert np.allclose(values, values[0], rtol=1e-4 if kind in SINGLE else 1e-9, atol=1e-12)
        assert found[0].value > 0.001
        assert not any(m.warnings for m in found)


@pytest.mark.parametrize("kind", ["gpt2", "llama", "rwkv", "t5", "bart"])
def test_deletion_and_given_alternatives_are_what_asking_by_hand_gives(kind):
    model = network(kind)

    def distance(one, other):
        logs = [by_hand(model, text).log_softmax(dim=-1) for text in (one, other)]
        return float((logs[0].exp() * (logs[0] - logs[1])).sum())

    gone = measured(model, padded("left"), Words(), Deletion())
    expected = [np.mean([distance(text, text[:at] + text[at + 1 :]) for at in range(len(text))]) for text in TEXTS]
    assert gone.per_input == pytest.approx(expected, abs=1e-9)
    nine = measured(model, TEXTS, Words(), jostle.ReplaceBy(9))
    expected = [
        np.mean([distance(text, [*text[:at], 9, *text[at + 1 :]]) for at in range(len(text))]) for text in TEXTS
    ]
    assert nine.per_input == pytest.approx(expected, abs=1e-9)


def test_flip_of_a_language_model_is_the_flip_of_its_next_token():
    model = network("llama")
    flips = [measured(model, TEXTS, *MOVES[2], response=name) for name in ("flip", "next-token-flip")]
    assert flips[0].value == flips[1].value > 0
    assert jostle.measure(model, TEXTS, tokens=Words(), perturbation="deletion").settings.response == "flip"


@pytest.mark.parametrize("response", ["next-token-flip", "kl", "total-variation", "surprisal"])
def test_no_noise_changes_nothing(response):
    assert measured(network("gpt2"), TEXTS, Embeddings(), GaussianNoise(0.0), response=response).value == 0.0


class Plain(torch.nn.Module):
    """Any module from ids (batch, tokens) to logits (batch, tokens, vocabulary): sums of the tokens so far."""

    def __init__(self):
        super().__init__()
        self.words = torch.nn.Embedding(VOCABULARY, VOCABULARY)

    def get_input_embeddings(self):
        return self.words

    def forward(self, ids):
        return self.words(ids).cumsum(dim=1)


def test_any_module_from_ids_to_logits_is_a_language_model():
    model = Plain()
    ragged = measured(model, TEXTS, Words(), Deletion(), response="total-variation")
    for text, found in zip(TEXTS, ragged.per_input, strict=True):
        alone = measured(model, torch.tensor([text]), Words(), Deletion(), response="total-variation")
        assert alone.value == pytest.approx(found)
    noisy = measured(model, TEXTS, Embeddings("before"), GaussianNoise(1.0))
    assert noisy.value > 0


def test_one_text_of_ids_is_a_text():
    model = network("llama")
    one, same = (measured(model, inputs, Words(), Deletion()) for inputs in (TEXTS[0], [TEXTS[0]]))
    assert one.value == same.value
    assert one.settings.num_inputs == 1


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        (["a text"], "prompts are texts, and the model has no tokenizer"),
        ([[3, 99]], "words 0 to 39"),
        ([[3, -1]], "prompt 0 must be token ids"),
        ([[3], []], "prompt 1 must be token ids"),
    ],
)
def test_prompts_that_cannot_be_read_are_one_line(inputs, message):
    with pytest.raises(UsageError, match=message) as error:
        measured(network("llama"), inputs, Words(), Deletion())
    assert "\n" not in str(error.value)


def test_a_model_that_does_not_answer_at_tokens_is_one_line():
    with pytest.raises(UsageError, match="expected logits for each token"):
        measured(lambda ids: torch.zeros(len(ids), 3), torch.tensor(TEXTS[0])[None], Words(), Deletion())


def fast_tokenizer():
    from transformers import PreTrainedTokenizerFast

    from tests.integrations.text_folders import tokenizer

    return PreTrainedTokenizerFast(tokenizer_object=tokenizer("gpt2"), eos_token="<|endoftext|>", unk_token="<unk>")


def test_texts_and_pipelines(tmp_path):
    from transformers import pipeline

    model, words = network("gpt2").float(), fast_tokenizer()
    texts = ["the film is good", "A dull plot."]
    piped = pipeline("text-generation", model=model, tokenizer=words)
    by_pipeline = measured(piped, texts, Words(), Deletion())
    prompts = jostle.Prompts.of(texts, words)
    assert measured(model, prompts, Words(), Deletion()).value == by_pipeline.value
    assert measured(model, [list(row) for row in words(texts)["input_ids"]], Words(), Deletion()).value == (
        by_pipeline.value
    )
    assert ["".join(piece.text for piece in pieces) for pieces in prompts.pieces] == texts
    assert [number for piece in prompts.pieces[1] for number in piece.tokens] == [0, 1, 2, 3]
    words.backend_tokenizer.save(str(tmp_path / "tokenizer.json"))
    own = jostle.Prompts.of(texts, tmp_path)
    assert torch.equal(own.inputs["input_ids"], prompts.inputs["input_ids"])


@pytest.mark.parametrize("kind", ["gpt2", "llama", "t5"])
def test_a_folder_is_loaded_as_what_it_is(kind, tmp_path):
    model = network(kind).float()
    model.save_pretrained(tmp_path)
    fast_tokenizer().save_pretrained(tmp_path)
    loaded = jostle.integrations.load(f"hf:{tmp_path}")
    assert (loaded.task, type(loaded.network)) == ("next-token", type(model))
    by_folder = measured(loaded, "the film is good", Words(), Deletion())
    ids = fast_tokenizer()("the film is good")["input_ids"]
    assert by_folder.value == pytest.approx(measured(model, [ids], Words(), Deletion()).value)


def test_a_model_of_the_hub_is_read_from_the_local_cache(tmp_path, monkeypatch):
    import huggingface_hub.constants

    cache = tmp_path / "models--some--story"
    snapshot = cache / "snapshots" / ("a" * 40)
    network("gpt2").float().save_pretrained(snapshot)
    (cache / "refs").mkdir()
    (cache / "refs" / "main").write_text("a" * 40)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path))
    assert jostle.integrations.load("hf:some/story").folder == snapshot
    with pytest.raises(
        UsageError, match="not in the cache of Hugging Face either: fetch it with hf download some/other"
    ):
        jostle.integrations.load("hf:some/other")
