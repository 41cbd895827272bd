"""Sensitivity while a network learns the parity of 3 of 10 bits, measured by a probe inside a plain training loop.

The answer is known: once the parity is learnt, 3 of 10 bits matter, so a flipped bit changes the prediction with
probability 0.3. The probe changes nothing: without it the weights would be the same, bit for bit. Takes seconds.
"""

import torch
from torch import nn

import jostle

BITS = torch.cartesian_prod(*[torch.tensor([-1.0, 1.0])] * 10)  # (1024, 10): all inputs there are
LABELS = (BITS[:, :3].prod(dim=1) > 0).long()


def main() -> jostle.Probe:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(10, 64), nn.ReLU(), nn.Linear(64, 2))
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    probe = jostle.Probe(
        BITS[::3], labels=LABELS[::3], tokens="coordinates", perturbation="sign-flip", every=50, share=None
    )  # share=0.05 would keep it to 5 % of the training time, log="probe.jsonl" would keep the rows
    for step in range(401):
        probe(model, step)
        rows = torch.randint(len(BITS), (64,))
        loss = nn.functional.cross_entropy(model(BITS[rows]), LABELS[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    history = probe.history
    print("step  accuracy  sensitivity  weight norm")
    for row in zip(*(history[name] for name in ("step", "accuracy", "sensitivity", "weight_norm")), strict=True):
        print("{:4.0f}  {:8.3f}  {:11.3f}  {:11.2f}".format(*row))
    return probe


if __name__ == "__main__":
    main()
