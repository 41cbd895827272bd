"""What the studies of a penalty on sensitivity share: settings at three scales, and a network at several strengths."""

from dataclasses import replace

from jostle_papers.trained import Network, Networks, TrainingSettings

STRENGTHS = (0.1, 0.25, 0.5, 0.75)
STD = 5**0.5  # of the noise, in the penalty and in what is measured

# Settings at the three scales, without networks. Paper scale has all images and the paper's own network.
SMOKE = TrainingSettings(seeds=1, limit=200, test_limit=50, batch_size=20, passes=200, std=STD, over_training=False)
SMALL = TrainingSettings(
    dataset="fashion-mnist",
    limit=2_000,
    test_limit=2_000,
    batch_size=50,
    max_epochs=80,
    passes=4_000,
    std=STD,
    over_training=False,
)
PAPER = TrainingSettings(dataset="fashion-mnist", max_epochs=100, passes=40_000, std=STD, over_training=False)


def doses(network: Network, strengths: tuple[float, ...] = STRENGTHS) -> Networks:
    """A network trained without penalty and with penalties of these strengths, by name.

    With a penalty the loss has the weight 1 - strength, and the learning rate makes up for it: the loss is learnt at
    the same rate throughout.
    """
    made = {
        f"strength {strength:g}": replace(network.with_penalty(strength, STD), lr=network.lr / (1 - strength))
        for strength in strengths
    }
    return {"strength 0": network, **made}
