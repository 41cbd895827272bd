"""Our own question: what happens to sensitivity when training goes on after every training image is right?"""

from typing import Any

from jostle.models.presets import preset
from jostle.studies.catalogue import register
from jostle.studies.records import Records
from jostle.studies.verdict import Expectation, is_less
from jostle.studies.vision import Training, TrainingStudy, at_accuracy, at_end, in_common, network

_RATES = {"vit-small": 0.1, "mlp-leaky-relu": 0.1, "cnn": 0.05}
_TINY: dict[str, Any] = {"image_size": 28, "channels": 1, "classes": 10}


def _networks() -> dict[str, dict[str, Any]]:
    presets = {name: preset("fashion-mnist", name) for name in _RATES}
    made = {name: network(model, _RATES[name], **sizes) for name, (model, sizes) in presets.items()}
    made["vit-small"]["sizes"] |= {"dim_head": 16, "dropout": 0.0, "embedding_dropout": 0.0}
    return made


@register
class LongerTraining(TrainingStudy):
    """Sensitivity long after the last training error, of the networks of Figure 18 on fewer images."""

    name = "jostle/longer-training"
    title = "Fashion-MNIST: sensitivity after the last training error"
    claim = (
        "Sensitivity goes on falling after every training image is right, and then a vision transformer is the least "
        "sensitive, as in Figure 18 of 2403.06925."
    )
    source = "our own question, about Figure 18 of 2403.06925"
    version = 1
    scales = {
        "smoke": Training(
            seeds=1,
            networks={
                "vit-small": network("vit-small", 0.1, **_TINY, patch_size=7, depth=1, heads=1, mlp_dim=16, dim=16),
                "mlp-leaky-relu": network("mlp", 0.1, **_TINY, hidden=[16]),
                "cnn": network("cnn", 0.1, **_TINY, width=2, hidden=8),
            },
            limit=100, test_limit=50, batch_size=20, target_accuracy=None, std=5**0.5, passes=200,
        ),
        "small": Training(
            networks=_networks(), dataset="fashion-mnist", limit=1_000, test_limit=2_000, batch_size=50, max_epochs=200,
            target_accuracy=None, std=5**0.5, passes=4_000,
        ),
        "paper": Training(
            networks=_networks(), dataset="fashion-mnist", max_epochs=200, target_accuracy=None, std=5**0.5,
            passes=40_000,
        ),
    }  # fmt: skip
    deviations = (
        "Small scale: 1,000 training images, batches of 50, 200 epochs, whatever the accuracy.",
        "The transformer's heads have 16 numbers instead of 64 and it has no dropout; the CNN learns at rate 0.05.",
    )

    def expectations(self, records: Records[Training]) -> list[Expectation]:
        ends = {name: at_end(records, name) for name in records.settings.networks}
        falls = [
            is_less(
                f"sensitivity of {name} at the end - where it first had 99 % of the training images right",
                *in_common(end, at_accuracy(records, name, 0.99)),
            )
            for name, end in ends.items()
        ]
        others = [name for name in ends if name != "vit-small"]
        least = [
            is_less(f"sensitivity of vit-small - sensitivity of {name}, at the end", ends["vit-small"], ends[name])
            for name in others
        ]
        return [*least, *falls]
