"""Folders as transformers writes them, with small random classifiers of texts and their tokenizers."""

import json

import torch

TEXT_OF_WORDS = "the film is was not a good bad dull fine plot and but very it in of to so ##ly ##s , . !"
WORDS = TEXT_OF_WORDS.split()
SPECIAL = {"bert": ["[PAD]", "[UNK]", "[CLS]", "[SEP]"], "roberta": ["<s>", "<pad>", "</s>", "<unk>"]}
SIZES = {
    "bert": {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 24},
    "distilbert": {"dim": 16, "n_layers": 2, "n_heads": 2, "hidden_dim": 24},
    "gpt2": {"n_embd": 16, "n_layer": 2, "n_head": 2, "n_positions": 24},
}
SIZES["roberta"] = SIZES["bert"]


def tokenizer(kind="bert"):
    """A tokenizer of few words, as BERT, RoBERTa or GPT-2 have them."""
    from tokenizers import AddedToken, Tokenizer, models, normalizers, pre_tokenizers, processors

    style = "roberta" if kind == "roberta" else "bert"
    special = ["<|endoftext|>", "<unk>"] if kind == "gpt2" else SPECIAL[style]
    unknown = next(token for token in special if "unk" in token.lower())
    made = Tokenizer(models.WordPiece({word: n for n, word in enumerate([*special, *WORDS])}, unk_token=unknown))
    made.normalizer = normalizers.BertNormalizer(lowercase=True)
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    made.add_special_tokens([AddedToken(token, special=True) for token in special])
    if kind == "gpt2":
        return made
    start, stop = ("<s>", "</s>") if style == "roberta" else ("[CLS]", "[SEP]")
    middle = f"{stop} {stop} $B" if style == "roberta" else f"{stop} $B:1"
    end = stop if style == "roberta" else f"{stop}:1"
    ids = [(token, special.index(token)) for token in (start, stop)]
    made.post_processor = processors.TemplateProcessing(
        single=f"{start} $A {stop}", pair=f"{start} $A {middle} {end}", special_tokens=ids
    )
    return made


def network(kind="bert", head=True, classes=2, seed=5, **options):
    """A random network in float32 whose predictions differ from text to text."""
    from transformers import AutoConfig, AutoModel, AutoModelForSequenceClassification

    special = {"gpt2": {"pad_token_id": None, "eos_token_id": 0}, "roberta": {"pad_token_id": 1}}
    places = {} if kind == "gpt2" else {"max_position_embeddings": 26 if kind == "roberta" else 24}
    options = {"vocab_size": 64, "num_labels": classes, **SIZES[kind], **places, **special.get(kind, {}), **options}
    config = AutoConfig.for_model(kind, **options)
    made = (AutoModelForSequenceClassification if head else AutoModel).from_config(config).float().eval()
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in made.parameters():
            if parameter.dim() > 1:
                parameter.copy_(torch.randn(parameter.shape, generator=generator) * 0.5)
    return made


def save(folder, kind="bert", *, words=True, **options):
    """(network, folder) of a saved classifier; without ``words`` it has no tokenizer."""
    made = network(kind, **options)
    made.save_pretrained(folder)
    if words:
        tokenizer(kind).save(str(folder / "tokenizer.json"))
        pad = {"bert": "[PAD]", "distilbert": "[PAD]", "roberta": "<pad>"}.get(kind)
        written = {"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": 10**30}
        (folder / "tokenizer_config.json").write_text(json.dumps(written | ({"pad_token": pad} if pad else {})))
    return made, folder


TEXTS = [
    "The film is good, very good!",
    "A dull plot.",
    "not bad",
    "It was fine and so dull, but the plot is very good in a film of films",
    "the plot was bad , the film dulls dull .",
    "good",
]
