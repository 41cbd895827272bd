"""Your own model on images: any nn.Module, one patch jostled at a time, a number with its interval, and where.

Takes a second or two. A model and random images stand in for yours: replace the two lines marked below.
"""

import torch
from torch import nn

import jostle


def main() -> jostle.Measurement:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Flatten(), nn.Linear(3 * 16 * 16, 32), nn.ReLU(), nn.Linear(32, 10))  # yours
    images = torch.randn(200, 3, 16, 16)  # yours: (N, channels, height, width), scaled as in training
    model.eval()  # jostle measures in eval mode in any case, and says so if it had to switch
    result = jostle.measure(
        model,
        images,
        tokens=jostle.Patches(4),  # 16 tokens, each a patch of 4 x 4 pixels in all channels
        perturbation=jostle.GaussianNoise(std=2.0),
        plan=jostle.Until(half_width=0.02),  # stop as soon as the interval is this narrow
    )
    print(result)
    print("share of predictions that change, by patch:")
    for row in result.profile.image():
        print("  " + "  ".join(f"{rate:.2f}" for rate in row))
    return result


if __name__ == "__main__":
    main()
