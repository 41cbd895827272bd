"""A run of the Trainer of transformers with a probe: how often a moved embedding flips a text classifier, by step.

Needs transformers and accelerate: pip install "jostle[hf]" accelerate. The texts are made up: class 1 holds a word.
"""

import torch
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments

import jostle

torch.manual_seed(0)
ids = torch.randint(5, 50, (256, 12))
labels = (ids == 7).any(dim=1).long()
ones = torch.ones_like(ids)
data = [{"input_ids": ids[i], "attention_mask": ones[i], "labels": labels[i]} for i in range(256)]
config = BertConfig(vocab_size=50, hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=64)

probe = jostle.Probe(
    {"input_ids": ids[:64], "attention_mask": ones[:64]}, labels=labels[:64],
    tokens=jostle.Embeddings(), perturbation=jostle.GaussianNoise(std=5.0), every=16, share=None,
)  # fmt: skip
arguments = TrainingArguments(
    "trained", num_train_epochs=3, per_device_train_batch_size=16, learning_rate=1e-3, report_to="none",
    save_strategy="no", disable_tqdm=True, use_cpu=True, logging_strategy="no", seed=0,
)  # fmt: skip
Trainer(
    BertForSequenceClassification(config), arguments, train_dataset=data, callbacks=[probe.trainer_callback()]
).train()
for row in probe.to_frame().itertuples():
    print(f"step {row.step:3.0f}: sensitivity {row.sensitivity:.3f} [{row.low:.3f}, {row.high:.3f}]")
