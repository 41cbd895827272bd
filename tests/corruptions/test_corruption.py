import numpy as np
import pytest
from scipy import special

from jostle.base.errors import UsageError
from jostle.base.randomness import Stream
from jostle.corruptions import CORRUPTIONS, FAMILIES, Draws, corruption


def test_a_corruption_needs_a_family_and_five_settings():
    with pytest.raises(UsageError, match="unknown family of corruptions 'wether'; did you mean weather"):
        corruption("hail", "wether", [()] * 5)
    with pytest.raises(UsageError, match="corruption 'hail' has 4 settings"):
        corruption("hail", "weather", [()] * 4)
    assert "hail" not in CORRUPTIONS.names()


@pytest.mark.parametrize("name", CORRUPTIONS.names())
def test_every_corruption_is_described(name):
    thing = CORRUPTIONS.get(name)
    assert (thing.name, len(thing.settings)) == (name, 5)
    assert thing.family in FAMILIES
    assert len(thing.__doc__) > 40
    assert repr(thing) == f"Corruption({name!r}, family={thing.family!r})"


def test_draws_are_addressed_by_image_and_part():
    stream = Stream(3, "corruption/test")
    draws = Draws(stream, np.asarray([7, 2]))
    assert draws.uniforms(1, 4, 5).shape == (2, 4, 5)
    assert (draws.uniforms(1, 20)[1] == Draws(stream, np.asarray([2])).uniforms(1, 4, 5).ravel()).all()
    assert not (draws.uniforms(1, 20) == draws.uniforms(2, 20)).any()
    assert special.ndtr(draws.normals(0, 9)) == pytest.approx(draws.uniforms(0, 9))
    assert draws.between(0, 3.0, 5.0) == pytest.approx(3 + 2 * draws.uniforms(0))
