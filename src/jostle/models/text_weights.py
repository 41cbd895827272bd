"""How the weights of the transformers of texts start: narrow normal numbers, as BERT, RoBERTa and GPT-2 have them."""

from torch import nn

from jostle.models.text_embeddings import PAD

STD = 0.02


def draw_weights(model: nn.Module) -> None:
    """Matrices and vectors of words and positions from N(0, 0.02^2), biases 0, and 0 for the word that is padding."""
    for module in model.modules():
        if isinstance(module, nn.Linear | nn.Embedding):
            nn.init.normal_(module.weight, std=STD)
        if isinstance(module, nn.Linear) and module.bias is not None:
            nn.init.zeros_(module.bias)
        if isinstance(module, nn.Embedding) and module.padding_idx is not None:
            module.weight.data[PAD] = 0
