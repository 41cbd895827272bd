"""Deep random features: several random layers on the flattened input. Paper 3 (2402.02969)."""

import torch
from torch import Tensor

from jostle.features.feature_map import FeatureMap, OneWord, check_shape, check_words, gaussian, register
from jostle.features.lazy_gaussian import LazyGaussian
from jostle.features.random_features import MovedBlock
from jostle.models.sizes import check_positive


@register("drf")
class DeepRandomFeatures(FeatureMap):
    """phi_0 = flat(X), phi_l = relu(V_l phi_(l-1)) for l = 1 .. L, with (V_l)_ij independent N(0, 2 / fan-in).

    The features are phi_L. At depth 1 it is ``RandomFeatures`` times sqrt(2), whose relative changes are the same.

    Differs: width and variance are the released code's (width n d, He's variance); what the paper states was not at
    hand.

    Arguments:
        num_tokens, dim: n and d.
        depth: L.
        width: k of all layers; n d by default.
        seed: of the matrices.
        lazy: draw only the products that are asked for, with the same law (``LazyGaussian``). Then memory grows by 2
            vectors for each layer, input and gradient, instead of L k^2 numbers, and what a seed gives depends on the
            order of the questions.
    """

    def __init__(
        self,
        *,
        num_tokens: int,
        dim: int,
        depth: int = 2,
        width: int | None = None,
        seed: int = 0,
        lazy: bool = False,
    ) -> None:
        super().__init__()
        width = num_tokens * dim if width is None else width
        check_positive(num_tokens=num_tokens, dim=dim, width=width, depth=depth)
        self.num_tokens, self.dim, self.is_lazy = num_tokens, dim, lazy
        self._layers: list[Tensor | LazyGaussian] = []
        for layer in range(depth):
            fan_in, name = width if layer else num_tokens * dim, f"drf/{layer}"
            std = (2 / fan_in) ** 0.5
            self._layers.append(
                LazyGaussian(width, fan_in, std=std, seed=seed, name=name)
                if lazy
                else gaussian(width, fan_in, std=std, seed=seed, name=name)
            )

    def forward(self, words: Tensor) -> Tensor:
        """Features, (batch, n, d) -> (batch, k)."""
        check_shape(words, self.num_tokens, self.dim)
        return self._from(words.flatten(1), 0)

    def one_word(self, words: Tensor, position: int) -> OneWord:
        """The first layer in O(k d) for each changed word if its matrix is there; the others as they are."""
        check_words(words, position)
        first = self._layers[0]
        if isinstance(first, LazyGaussian):
            return super().one_word(words, position)
        check_shape(words, self.num_tokens, self.dim)
        columns = slice(position * self.dim, (position + 1) * self.dim)
        moved = MovedBlock(words[position], first.to(words) @ words.flatten(), first[:, columns].to(words))
        return _Deep(moved, self)

    def _from(self, features: Tensor, layer: int) -> Tensor:
        """The last features from those before layer number ``layer``, (batch, fan-in) -> (batch, k)."""
        for matrix in self._layers[layer:]:
            if isinstance(matrix, LazyGaussian):
                features = torch.relu(matrix.times(features))
            else:
                features = torch.relu(features @ matrix.to(features).T)
        return features


class _Deep(OneWord):
    """One word through the first layer by its block, and from there through all others."""

    def __init__(self, first: MovedBlock, network: DeepRandomFeatures) -> None:
        self._first, self._network = first, network
        super().__init__(first.word, network._from(first.clean[None], 1)[0])

    def features(self, changes: Tensor) -> Tensor:
        return self._network._from(self._first.features(changes), 1)
