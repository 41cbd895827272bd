"""How far can one patch go? Random changes of a patch, and the worst change there is to be found, at three radii.

A ball around each patch, with a radius in units of the patch's own norm, is searched first at random and then uphill.
The largest response found is a lower bound of the true one. Takes a few seconds; a model and random images stand in for
yours. ``result.plot(images).savefig("flip.png")`` shows an image, its worst patch, and the change that flips it.
"""

import torch
from torch import nn

import jostle


def main() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Flatten(), nn.Linear(16 * 16, 32), nn.ReLU(), nn.Linear(32, 10)).eval()  # yours
    images = torch.randn(8, 1, 16, 16)  # yours: (N, channels, height, width), scaled as in training
    result = jostle.worst_case(
        model,
        images,
        tokens=jostle.Patches(4),
        radius=[0.5, 1.0, 2.0],
        response="flip",  # the margin is brought down; margin, relative-change, ... are ascended themselves
        draws=32,
        steps=40,
    )
    print(result)
    index = int(result.values[1].any(axis=1).argmax())  # the first image with a patch that can be flipped
    position = result.worst_positions(1.0)[index]
    before, after = result.clean_predictions[index], result.predictions[1, index, position]
    print(f"image {index}: patch {position} moved by its own norm turns class {before} into {after}")


if __name__ == "__main__":
    main()
