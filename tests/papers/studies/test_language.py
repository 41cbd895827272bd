"""What studies of text networks have of their own: settings, places of noise, kinds of token."""

import pytest
import torch

from jostle import models, studies
from jostle_papers.language.networks import EmbeddedTwice
from jostle_papers.p2403_06925 import language_choices, language_positions, text


def encoder():
    return models.create(
        "text-encoder", vocabulary=20, dim=8, depth=1, heads=2, mlp_dim=16, max_length=9, seed=0
    ).eval()


def test_embedding_twice_adds_positions_and_normalises_again():
    model, ids = encoder(), torch.tensor([[5, 6, 7, 0], [0, 8, 9, 4]])
    again = EmbeddedTwice(model.embeddings)(ids)
    once, positions = model.embeddings(ids), model.embeddings.positions.weight
    expected = model.embeddings.norm(once[0, 2] + positions[2])
    assert torch.allclose(again[0, 2], expected)
    assert torch.allclose(again[1, 1], model.embeddings.norm(once[1, 1] + positions[0]))  # left padding is not counted


def test_the_second_norm_takes_the_size_out_of_the_noise():
    model, ids = encoder(), torch.tensor([[5, 6, 7, 3]])
    block = EmbeddedTwice(model.embeddings)
    handle = block.first.register_forward_hook(lambda *_: 1_000 * torch.randn(1, 4, 8))
    sizes = block(ids).detach().std(dim=2, correction=0)
    handle.remove()
    assert torch.allclose(sizes, torch.ones(1, 4), atol=1e-3)


def test_a_partly_trained_lstm_trains_its_recurrent_layers_only():
    network = studies.get("2403.06925/language-choices").scales["smoke"].networks[language_choices.PARTLY]
    model = models.create(network.model, seed=0, **network.sizes)
    for name in network.frozen:
        model.get_submodule(name).requires_grad_(False)
    trained = {name.split(".")[0] for name, parameter in model.named_parameters() if parameter.requires_grad}
    assert trained == {"layers"}


def test_kinds_of_token_share_a_text_out():
    ids = torch.tensor([[2, 7, 3, 8, 9, 3], [2, 7, 3, 8, 3, 0]])
    kinds = language_positions._kinds(ids)
    assert kinds["first token"].nonzero().tolist() == [[0, 0], [1, 0]]
    assert kinds["separators"].nonzero().tolist() == [[0, 2], [0, 5], [1, 2], [1, 4]]
    assert kinds["words"].nonzero().tolist() == [[0, 1], [0, 3], [0, 4], [1, 1], [1, 3]]


@pytest.mark.parametrize("dataset", ["qqp", "mrpc"])
def test_networks_of_one_study_have_the_same_layers_and_stop_at_the_same_accuracy(dataset):
    settings = text.at_scale("small", dataset, ("encoder", "lstm", "ssm"))
    assert {network.sizes["depth"] for network in settings.networks.values()} == {4}
    assert settings.target_accuracy == text.ACCURACY
    assert settings.limit == {"qqp": 3_000, "mrpc": 2_000}[dataset]
    assert settings.networks["lstm"].lr > settings.networks["encoder"].lr
