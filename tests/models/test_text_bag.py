import torch

from jostle import models
from tests.models.test_text_create import small, texts


def test_default_size():
    expected = 8000 * 256 + 512 + 4 * (256 * 256 + 256) + (256 * 2 + 2)
    model = models.create("text-bag")
    assert sum(weight.numel() for weight in model.parameters()) == expected == 2_312_194


def test_the_mean_of_the_words_through_an_mlp():
    model, ids = small("text-bag"), texts(5, 2)
    for row, length in ((0, 5), (1, 2)):
        vectors = model.embeddings.norm(model.embeddings.words.weight[ids[row, :length]])
        hidden = vectors.sum(dim=0) / length
        for layer in (model.layers[0], model.layers[3]):
            hidden = (layer.weight @ hidden + layer.bias).clamp(min=0)
        expected = model.classifier.weight @ hidden + model.classifier.bias
        torch.testing.assert_close(model(ids)[row], expected, rtol=1e-10, atol=1e-12)
