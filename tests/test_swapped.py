"""Arguments in each other's place: an array where a name, a number or a switch belongs is refused in one line."""

import numpy as np
import pytest
import torch

import jostle

ARRAY = np.linspace(0, 1, 30).reshape(6, 5)
INPUTS = torch.ones(4, 4)
MEASURE = ("tokens", "perturbation", "response", "plan", "target", "average", "device", "batch_size", "engine",
           "workers", "progress", "samples", "level", "seed", "labels", "cluster", "mask", "name")  # fmt: skip
STUDY = "2403.06925/proposition-3.2"


def measured():
    return jostle.measure(lambda x: x, INPUTS, tokens="coordinates", perturbation="sign-flip", plan="grid:1")


def compared():
    models = {"f": lambda x: x, "g": lambda x: -x}
    return jostle.compare(models, INPUTS, tokens="coordinates", perturbation="sign-flip", plan="grid:1")


def clustered(cluster):
    return jostle.measure(
        lambda x: x, INPUTS, tokens="coordinates", perturbation="sign-flip", plan="grid:1", cluster=cluster
    )


def sharpness(draws):
    return jostle.landscape.sharpness(torch.nn.Linear(4, 2), INPUTS, draws=draws)


CALLS = {
    "sweep": lambda: jostle.sweep(abs, INPUTS, tokens="coordinates", stds=ARRAY),
    "stability": lambda: jostle.stability(abs, INPUTS, rho=ARRAY),
    "certify": lambda: jostle.certify(abs, INPUTS, std=ARRAY),
    "worst_case": lambda: jostle.worst_case(abs, INPUTS, tokens="coordinates", radius=ARRAY),
    "depth": lambda: jostle.depth(torch.nn.Linear(4, 2), INPUTS, site=ARRAY),
    "change_texts": lambda: jostle.change_texts(len, ["a b"], change=ARRAY),
    "compare": lambda: jostle.compare(ARRAY, INPUTS, tokens="coordinates", perturbation="sign-flip"),
    "load": lambda: jostle.load(ARRAY),
    "data": lambda: jostle.data.load(ARRAY),
    "models": lambda: jostle.models.create(ARRAY),
    "run": lambda: jostle.run(ARRAY),
    "scale": lambda: jostle.run(STUDY, scale=ARRAY),
    "out": lambda: jostle.run(STUDY, out=ARRAY),
    "data of a study": lambda: jostle.run(STUDY, data=ARRAY),
    "overrides": lambda: jostle.run(STUDY, overrides=ARRAY),
    "save": lambda: measured().save(ARRAY),
    "a name with a zero": lambda: measured().save("a\0b"),
    "difference": lambda: compared().difference(ARRAY, "f"),
    "clusters without names": lambda: clustered([None] * 4),
    "clusters that are NaN": lambda: clustered([1.0, float("nan"), 2.0, 3.0]),
    "clusters of two kinds": lambda: clustered(np.array([1, "a", 2, "b"], dtype=object)),
    "a table that is not dense": lambda: jostle.boolean.analyse(torch.tensor([1, -1, 1, 1]).to_sparse()),
    "a table without numbers": lambda: jostle.boolean.analyse(torch.ones(4, device="meta")),
    "a model's spec": lambda: jostle.integrations.load(ARRAY),
    "a seed among sizes": lambda: jostle.integrations.load("zoo:mlp:seed=1"),
    "an option twice": lambda: jostle.stability(abs, INPUTS, rho=0.5, plan="grid:draws=1,draws=2"),
    "a vocabulary": lambda: jostle.UniformToken(10**20),
    "True as a position": lambda: jostle.worst_case(abs, INPUTS, tokens="coordinates", radius=1.0, positions=True),
    "directions": lambda: jostle.worst_case(abs, INPUTS, tokens="coordinates", radius=1.0, directions=ARRAY),
    "draws of weights": lambda: sharpness(10**15),
    "layers": lambda: jostle.models.create("vit-small", depth=10**9),
    "layers for bits": lambda: jostle.boolean.networks.create("transformer", depth=10**9),
    "bits": lambda: jostle.boolean.networks.create("mlp", n=10**15),
    "corrupt": lambda: jostle.corruptions.corrupt(torch.rand(2, 1, 8, 8), ARRAY),
    "value_range": lambda: jostle.corruptions.corrupt(torch.rand(2, 1, 8, 8), "fog", value_range=ARRAY),
    "stability of bits": lambda: jostle.boolean.analyse([1, -1, -1, 1]).noise_stability(ARRAY + 5),
    "ids": lambda: jostle.Prompts.of_ids(3),
    "rows of ids": lambda: jostle.Prompts.of_ids([3, 4]),
    "draws": lambda: jostle.certify(abs, INPUTS, std=1.0, draws=2**70),
}


@pytest.mark.parametrize("argument", MEASURE)
def test_measure_refuses_an_array_in_one_line(argument):
    given = {"tokens": "coordinates", "perturbation": "gaussian-noise:1"} | {argument: ARRAY}
    with pytest.raises(jostle.UsageError) as raised:
        jostle.measure(lambda x: x, INPUTS, **given)
    assert len(str(raised.value).splitlines()) == 1


@pytest.mark.parametrize("name", CALLS)
def test_other_functions_refuse_it_too(name):
    with pytest.raises(jostle.UsageError) as raised:
        CALLS[name]()
    assert len(str(raised.value).splitlines()) == 1
