import pytest
import torch
from torch import nn

from jostle.models.text_model import TokenEmbedding


def normal(embeddings):
    """Random numbers in place of all its weights, also those that start as ones and zeros."""
    generator = torch.Generator().manual_seed(0)
    for weight in embeddings.parameters():
        weight.data = torch.randn(weight.shape, generator=generator)
    return embeddings.eval()


def test_words_plus_positions_normalised():
    embeddings = normal(TokenEmbedding(vocabulary=9, dim=4, max_length=5, dropout=0.1, has_positions=True))
    ids = torch.tensor([[3, 8, 2, 0], [0, 0, 5, 3]])
    found = embeddings(ids)
    assert found.shape == (2, 4, 4)
    for row, column, place in [(0, 0, 0), (0, 1, 1), (0, 2, 2), (1, 2, 0), (1, 3, 1)]:
        vector = embeddings.words.weight[ids[row, column]] + embeddings.positions.weight[place]
        centred = vector - vector.mean()
        scaled = centred / (centred.square().mean() + 1e-5).sqrt()
        expected = scaled * embeddings.norm.weight + embeddings.norm.bias
        torch.testing.assert_close(found[row, column], expected)


def test_words_alone():
    embeddings = normal(TokenEmbedding(vocabulary=9, dim=4, max_length=5, dropout=0.1, norm=nn.Identity()))
    ids = torch.tensor([[3, 8, 2, 0]])
    assert torch.equal(embeddings(ids), embeddings.words.weight[ids])
    assert [name for name, _ in embeddings.named_parameters()] == ["words.weight"]


def test_a_masked_token_does_not_count():
    embeddings = normal(TokenEmbedding(vocabulary=9, dim=4, max_length=5, dropout=0.1, has_positions=True))
    found = embeddings(torch.tensor([[3, 8, 2]]), torch.tensor([[1, 0, 1]]))
    assert torch.equal(found[0, [0, 2]], embeddings(torch.tensor([[3, 2]]))[0])


def test_padding_is_not_trained():
    embeddings = TokenEmbedding(vocabulary=9, dim=4, max_length=5, dropout=0.0)
    embeddings(torch.tensor([[3, 0]])).square().sum().backward()
    assert not embeddings.words.weight.grad[0].any()


def test_shows_the_longest_text():
    assert "max_length=5" in repr(TokenEmbedding(vocabulary=9, dim=4, max_length=5, dropout=0.0))


@pytest.mark.parametrize("side", ["left", "right"])
def test_the_rest_of_a_text_is_embedded_as_in_the_whole_text(side):
    embeddings = TokenEmbedding(vocabulary=9, dim=4, max_length=6, dropout=0.0, has_positions=True)
    ids = torch.tensor([[5, 6, 7, 8, 3, 4], [4, 3, 2, 1, 8, 7]])
    whole = embeddings(ids)
    rest = torch.tensor([[8, 3, 4, 0], [3, 2, 1, 8]]) if side == "right" else torch.tensor([[0, 8, 3, 4], [3, 2, 1, 8]])
    found = embeddings(rest, before=torch.tensor([3, 1]))
    first = slice(0, 3) if side == "right" else slice(1, 4)
    torch.testing.assert_close(found[0, first], whole[0, 3:])
    torch.testing.assert_close(found[1], whole[1, 1:5])
