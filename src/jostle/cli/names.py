"""``jostle list``: the names of models, datasets, perturbations, studies and more."""

import inspect
import json
import re
from typing import Annotated, Any, Literal

from cyclopts import Parameter
from rich.console import Console
from rich.table import Table

from jostle.cli.output import say

Kind = Literal[
    "models",
    "text-models",
    "bit-models",
    "datasets",
    "text-datasets",
    "corruptions",
    "tokens",
    "perturbations",
    "responses",
    "text-changes",
    "plans",
    "functions",
    "networks",
    "studies",
]
_WITH_OPTIONS = ("tokens", "perturbations", "responses", "text-changes", "plans")


def list_names(
    kind: Annotated[Kind | None, Parameter(help="Which kind of thing; without it, all of them.")] = None,
    /,
    *,
    as_json: Annotated[bool, Parameter(name="--json", negative="", show_default=False, help="Print JSON.")] = False,
) -> None:
    """List models, datasets, perturbations, Boolean functions, studies and more by name.

    Names are used in specs: --tokens patches:4, --perturbation
    gaussian-noise:std=2, --model zoo:vit-simple.
    """
    registries = {name: registry for name, registry in _registries().items() if kind in (None, name)}
    found = {name: _describe(registry) for name, registry in registries.items()}
    if as_json:
        say(json.dumps(found, indent=1))
        return
    console = Console(highlight=False)
    for title, things in found.items():
        table = Table("name", "what it is", title=title, title_justify="left", box=None, padding=(0, 2))
        registry = registries[title]
        for name, text in things.items():
            options = _options(registry.get(name)) if title in _WITH_OPTIONS else ""
            table.add_row(name, f"{text}. Options: {options}." if options else text)
        console.print(table, "")


def _registries() -> dict[str, Any]:
    from jostle import boolean, corruptions, data, models, perturbations, responses, sampling, studies, tokens
    from jostle.text_changes import TEXT_CHANGES

    return {
        "models": models.MODELS,
        "text-models": models.TEXT_MODELS,
        "bit-models": models.BIT_MODELS,
        "datasets": data.DATASETS,
        "text-datasets": data.TEXT_DATASETS,
        "corruptions": corruptions.CORRUPTIONS,
        "tokens": tokens.VIEWS,
        "perturbations": perturbations.PERTURBATIONS,
        "responses": responses.RESPONSES,
        "text-changes": TEXT_CHANGES,
        "plans": sampling.PLANS,
        "functions": boolean.functions.FUNCTIONS,
        "networks": boolean.networks.NETWORKS,
        "studies": studies.STUDIES,
    }


def _options(thing: Any) -> str:
    """The options that a spec of this name takes, with their defaults: ``std``, or ``radius, relative=False``."""
    parameters = inspect.signature(thing).parameters.values()
    return ", ".join(
        one.name if one.default is one.empty else f"{one.name}={one.default}"
        for one in parameters
        if one.kind is not one.VAR_KEYWORD
    )


def _describe(registry: Any) -> dict[str, str]:
    return {name: _summary(registry.get(name)) for name in registry.names()}


def _summary(thing: Any) -> str:
    """The title of a study, or the first sentence of a docstring; a dot after Eq or Def does not end it."""
    if hasattr(thing, "claim"):
        return str(thing.title)
    text = " ".join((inspect.getdoc(thing) or "").split("\n\n")[0].split())
    return re.split(r"(?<!\bEq)(?<!\bDef)\. ", text)[0].rstrip(".").replace("``", "")
