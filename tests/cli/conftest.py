"""What tests of several commands share."""

import pytest


@pytest.fixture(scope="session")
def gpt2_folder(tmp_path_factory):
    """A folder with a small random language model and its tokenizer, as transformers saves them."""
    from tests.integrations.families import network
    from tests.integrations.text_folders import tokenizer

    place = tmp_path_factory.mktemp("model")
    network("gpt2").float().save_pretrained(place)
    tokenizer("gpt2").save(str(place / "tokenizer.json"))
    return place
