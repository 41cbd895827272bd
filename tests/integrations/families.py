"""Small random networks of many families of transformers, and a few texts as token ids."""

import torch

VOCABULARY = 40
TEXTS = [[5, 6, 7, 8, 9], [10, 11, 12], [3, 4, 5, 6, 7, 8, 9]]

SINGLE = ("gptj", "gpt_neo")  # compute attention in float32, whatever the type of their weights

_LLAMA = {
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "intermediate_size": 24,
    "max_position_embeddings": 32,
}
_PLAIN = {key: value for key, value in _LLAMA.items() if key != "num_key_value_heads"}
_GPT = {"n_embd": 16, "n_layer": 2, "n_head": 2, "n_positions": 32}
CAUSAL = {
    "gpt2": _GPT,
    "gptj": {**_GPT, "rotary_dim": 4},
    "gpt_neo": {
        "hidden_size": 16,
        "num_layers": 2,
        "num_heads": 2,
        "attention_types": [[["global", "local"], 1]],
        "max_position_embeddings": 32,
    },
    "gpt_neox": _PLAIN,
    "llama": _LLAMA,
    "mistral": {**_LLAMA, "head_dim": 8},
    "qwen2": _LLAMA,
    "gemma": {**_LLAMA, "head_dim": 8},
    "opt": {**_PLAIN, "ffn_dim": 24, "word_embed_proj_dim": 16},
    "bloom": {"hidden_size": 16, "n_layer": 2, "n_head": 2},
    "phi": _PLAIN,
    "rwkv": {"hidden_size": 16, "num_hidden_layers": 2, "attention_hidden_size": 16, "intermediate_size": 24},
}
ENCODER_DECODER = {
    "t5": {"d_model": 16, "d_kv": 8, "d_ff": 24, "num_layers": 2, "num_heads": 2, "decoder_start_token_id": 0},
    "bart": {
        "d_model": 16,
        "encoder_layers": 2,
        "decoder_layers": 2,
        "encoder_attention_heads": 2,
        "decoder_attention_heads": 2,
        "encoder_ffn_dim": 24,
        "decoder_ffn_dim": 24,
        "max_position_embeddings": 32,
    },
}
TOKEN_CLASSIFIERS = {
    "bert": _PLAIN,
    "distilbert": {"dim": 16, "n_layers": 2, "n_heads": 2, "hidden_dim": 24, "max_position_embeddings": 32},
}


def network(kind, seed=0):
    """A network of a family, in float64, whose answers differ from token to token; causal ones name no padding."""
    import transformers

    tables = {
        "AutoModelForCausalLM": CAUSAL,
        "AutoModelForSeq2SeqLM": ENCODER_DECODER,
        "AutoModelForTokenClassification": TOKEN_CLASSIFIERS,
    }
    loader, sizes = next((name, table[kind]) for name, table in tables.items() if kind in table)
    unnamed = {"pad_token_id": None, "bos_token_id": None, "eos_token_id": None} if kind in CAUSAL else {}
    config = transformers.AutoConfig.for_model(kind, vocab_size=VOCABULARY, **sizes, **unnamed)
    dtype = torch.float32 if kind in SINGLE else torch.float64
    made = getattr(transformers, loader).from_config(config).to(dtype).eval()
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in made.parameters():
            if parameter.dim() > 1:
                parameter.copy_(torch.randn(parameter.shape, generator=generator, dtype=dtype) * 0.5)
    return made


def padded(side, width=8, pad=0):
    """The texts with their mask, padded on one side."""
    rows = [(text, [pad] * (width - len(text))) for text in TEXTS]
    masks = [([1] * len(text), [0] * len(fill)) for text, fill in rows]
    joined = [[a + b for a, b in part] if side == "right" else [b + a for a, b in part] for part in (rows, masks)]
    return {"input_ids": torch.tensor(joined[0]), "attention_mask": torch.tensor(joined[1])}
