"""Linear models on features: the interpolator of least norm, and the same after it has learnt one more input.

Nothing here is larger than the features themselves: projections use the kernel Phi Phi^T (N, N), never a matrix of the
size of the features squared.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from jostle.base import checks
from jostle.base.errors import UsageError

TRAININGS = ("fine-tuned", "re-trained")


class Interpolator:
    """theta* = Phi^+ Y: the weights of least norm that fit the labels, where gradient descent from 0 ends.

    >>> model = Interpolator(torch.tensor([[2.0, 0.0, 0.0]]), torch.tensor([1.0]))
    >>> model.weights.tolist(), model.residual(torch.tensor([1.0, 1.0, 0.0])).tolist()
    ([0.5, 0.0, 0.0], [0.0, 1.0, 0.0])

    Arguments:
        features: Phi, (N, p).
        labels: Y, (N,).
    """

    def __init__(self, features: Tensor, labels: Tensor) -> None:
        if features.ndim != 2 or labels.shape != features.shape[:1] or 0 in features.shape:
            raise UsageError(
                f"an interpolator needs features (N, p) and labels (N,), got {tuple(features.shape)} and "
                f"{tuple(labels.shape)}"
            )
        self.features, self.labels = features, labels.to(features)
        values, vectors = torch.linalg.eigh(features @ features.T)
        kept = values > len(values) * torch.finfo(features.dtype).eps * values[-1]
        self._values, self._vectors = values[kept], vectors[:, kept]
        self.smallest_eigenvalue = float(values[0])
        self.weights = features.T @ self._solve(self.labels)  # (p,)

    def predict(self, features: Tensor) -> Tensor:
        """f = phi^T theta*, (count, p) -> (count,)."""
        return features @ self.weights

    def residual(self, features: Tensor) -> Tensor:
        """P phi = phi - Phi^T K^+ Phi phi for one phi (p,), K = Phi Phi^T: the part that no training input explains."""
        residual: Tensor = features
        for _ in range(2):  # the second pass removes the rounding errors of the first
            residual = residual - self.features.T @ self._solve(self.features @ residual)
        return residual

    def learn(self, features: Tensor, label: float, training: str) -> "LearntModel":
        """The model after one more input (features (p,), label) is learnt.

        ``fine-tuned``: gradient descent from theta* on the new input alone. ``re-trained``: the interpolator of least
        norm of all N + 1 inputs. Both are theta* + u (y - a) with a = f(X, theta*) and

            u = phi / ||phi||^2   or   u = P phi / ||P phi||^2,

        the second by Greville's update of a pseudo-inverse.
        """
        checks.choice("training", training, TRAININGS)
        new = features if training == "fine-tuned" else self.residual(features)
        size = float(torch.linalg.vector_norm(features))
        left = float(torch.linalg.vector_norm(new))
        if not left > 1e-7 * size:
            raise UsageError(
                f"{training}: the new input's features are a combination of the {len(self.features)} training inputs', "
                "so another label cannot be learnt; use fewer inputs or more features"
            )
        step = new / left**2
        before = float(features @ self.weights)
        after = self.weights + step * (label - before)
        return LearntModel(training, features, float(label), before, step, self.weights, after, size / left)

    def _solve(self, right: Tensor) -> Tensor:
        """K^+ right."""
        solved: Tensor = self._vectors @ ((self._vectors.T @ right) / self._values)
        return solved


@dataclass(frozen=True, eq=False)
class LearntModel:
    """A model that has learnt one more input, and its answers to that input with a word changed.

    Arguments:
        training: ``fine-tuned`` or ``re-trained``.
        features: phi(X) of the new input, (p,).
        label: y.
        before: a = f(X, theta*).
        step: u, (p,); <phi, u> = 1.
        old_weights, weights: theta* and theta* + u (y - a), (p,).
        stretch: ||phi|| ||u||: 1 fine-tuned, ||phi|| / ||P phi|| re-trained.
    """

    training: str
    features: Tensor
    label: float
    before: float
    step: Tensor
    old_weights: Tensor
    weights: Tensor
    stretch: float

    def judge(self, modified: Tensor) -> "ModifiedInputs":
        """Predictions and errors on changed inputs with features (count, p), whose label is -y."""
        old = modified @ self.old_weights
        alignment = modified @ self.step
        prediction = old + alignment * (self.label - self.before)
        gamma = (old - self.before).abs()
        reach = (alignment - 1).abs() * abs(self.label - self.before)
        change = torch.linalg.vector_norm(modified - self.features, dim=1) / torch.linalg.vector_norm(self.features)
        return ModifiedInputs(
            prediction=prediction,
            error=(prediction + self.label).square(),
            gamma=gamma,
            alignment=alignment,
            bound=(2 - gamma - reach).clamp(min=0).square(),
            alignment_bound=change * self.stretch,
            change=change,
        )

    @property
    def separating_alignment(self) -> float:
        """F = -(y + a) / (y - a), at which the error is gamma^2; -1 where a = 0."""
        return -(self.label + self.before) / (self.label - self.before)


@dataclass(frozen=True, eq=False)
class ModifiedInputs:
    """Changed inputs X_D, whose label is -y, under a model that has learnt (X, y). Each a tensor (count,).

    Arguments:
        prediction: f(X_D, theta) = a_D + F (y - a), with a_D = f(X_D, theta*).
        error: (f(X_D, theta) + y)^2; above 1 where the sign is still y.
        gamma: |a_D - a|: how far the old model already told the two apart.
        alignment: F = <phi(X_D), u>.
        bound: (2 - gamma - |F - 1| |y - a|)_+^2, which no error is below.
        alignment_bound: S ||phi|| ||u||, which no |F - 1| is above, S being ``change``.
        change: ||phi(X_D) - phi(X)|| / ||phi(X)||.
    """

    prediction: Tensor
    error: Tensor
    gamma: Tensor
    alignment: Tensor
    bound: Tensor
    alignment_bound: Tensor
    change: Tensor

    def at(self, index: int) -> dict[str, float]:
        """The numbers of one input."""
        return {name: float(values[index]) for name, values in vars(self).items()}
