"""Sequences of different lengths: a mapping with token ids and an attention mask, as text models take them.

Padding is never jostled, and every sequence weighs the same, however short. Each token in turn is replaced by a random
one of the vocabulary.
"""

import torch

import jostle

VOCABULARY, LENGTH = 50, 12
torch.manual_seed(0)
LENGTHS = torch.randint(3, LENGTH + 1, (300,))
MASK = (torch.arange(LENGTH) < LENGTHS[:, None]).long()  # (300, 12), 1 for a token, 0 for padding
IDS = torch.randint(1, VOCABULARY, (300, LENGTH)) * MASK
EMBEDDING = torch.randn(VOCABULARY, 4)


def model(input_ids: torch.Tensor, attention_mask: torch.Tensor) -> dict[str, torch.Tensor]:
    vectors = EMBEDDING[input_ids] * attention_mask[:, :, None]  # (batch, tokens, 4)
    return {"logits": vectors.sum(dim=1) / attention_mask.sum(dim=1, keepdim=True)}


def main() -> jostle.Measurement:
    inputs = {"input_ids": IDS, "attention_mask": MASK}
    uniform = jostle.UniformToken(VOCABULARY)
    result = jostle.measure(model, inputs, tokens="rows", perturbation=uniform, plan=jostle.Grid(5))
    print(result)
    print(f"tokens that are no padding: {int(MASK.sum())} of {MASK.numel()}, 5 draws each: {result.trials} trials")
    short, long = result.per_input[LENGTHS <= 5].mean(), result.per_input[LENGTHS >= 10].mean()
    print(f"sequences of 3 to 5 tokens: {short:.3f}, of 10 to 12 tokens: {long:.3f}")
    return result


if __name__ == "__main__":
    main()
