"""Our own question: what happens to sensitivity when training continues after the last training error?"""

from jostle.studies.catalogue import register
from jostle.studies.verdict import (
    Expectation,
    is_smaller,
)
from jostle_papers.p2403_06925 import fashion
from jostle_papers.trained import (
    TrainedRecords,
    TrainingSettings,
    TrainingStudy,
    in_common,
    sensitivity_at_accuracy,
    sensitivity_at_end,
)

_NAMES = ("vit-small", "mlp-leaky-relu", "cnn")


@register
class LongerTraining(TrainingStudy):
    """Sensitivity long after the last training error, of the networks of Figure 18 on fewer images."""

    name = "jostle/longer-training"
    title = "Fashion-MNIST: sensitivity after the last training error"
    claim = (
        "Sensitivity goes on falling after every training image is right, and then a vision transformer is the least "
        "sensitive, as in Figure 18 of 2403.06925 (at our setting, small scale: 1,000 images, heads of 16 numbers)."
    )
    source = "our own question, about Figure 18 of 2403.06925"
    version = 1
    scales = {
        "smoke": TrainingSettings(
            seeds=1, networks=fashion.tiny_networks(*_NAMES),
            limit=100, test_limit=50, batch_size=20, target_accuracy=None, std=5**0.5, passes=200,
        ),
        "small": TrainingSettings(
            networks=fashion.small_networks(*_NAMES), dataset="fashion-mnist", limit=1_000, test_limit=2_000,
            batch_size=50, max_epochs=200, target_accuracy=None, std=5**0.5, passes=4_000,
        ),
        "paper": TrainingSettings(
            networks=fashion.paper_networks(*_NAMES), dataset="fashion-mnist", max_epochs=200, target_accuracy=None,
            std=5**0.5, passes=40_000,
        ),
    }  # fmt: skip
    deviations = (
        "Small scale: 1,000 training images, batches of 50, 200 epochs, whatever the accuracy.",
        fashion.SMALL_SCALE,
    )

    def expectations(self, records: TrainedRecords) -> list[Expectation]:
        ends = {name: sensitivity_at_end(records, name) for name in records.settings.networks}
        falls = [
            is_smaller(
                f"sensitivity of {name} at the end / where it first had 99 % of the training images right",
                *in_common(end, sensitivity_at_accuracy(records, name, 0.99)),
            )
            for name, end in ends.items()
        ]
        others = [name for name in ends if name != "vit-small"]
        least = [
            is_smaller(f"sensitivity of vit-small / of {name}, at the end", ends["vit-small"], ends[name])
            for name in others
        ]
        return [*least, *falls]
