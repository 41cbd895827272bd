"""From arguments to something that can be run: what ``measure``, ``compare`` and ``sweep`` have in common."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from jostle import specs
from jostle.errors import UsageError
from jostle.estimates.settings import Settings, checked_average, checked_level, checked_target, checked_whole
from jostle.perturbations import PERTURBATIONS, Perturbation
from jostle.responses import RESPONSES, Response
from jostle.sampling import PLANS, Evaluation, Grid, Plan, Until
from jostle.tokens import VIEWS, Inputs, TextView, TokenFunction, TokenView
from jostle.tokens.text import padding_id

Model = Callable[..., Any]

_FEW_TOKENS = 10_000


@dataclass(frozen=True)
class Choices:
    """The arguments of ``measure`` as given."""

    tokens: TokenView | str
    perturbation: Perturbation | str
    response: Response | str
    plan: Plan | str | None
    target: str
    average: str
    mask: Any
    level: float
    seed: int
    batch_size: int
    device: str | None


class Prepared(NamedTuple):
    """Models and inputs that are ready to be asked, when to stop, and what to write down."""

    evaluation: Evaluation
    plan: Plan
    settings: Settings


def prepared(models: Mapping[str, Model], inputs: Any, chosen: Choices) -> Prepared:
    """Check all arguments, and hold them together; nothing is asked of a model yet."""
    if not isinstance(models, Mapping) or not models:
        raise UsageError("models must be a mapping from names to models with at least one entry")
    view = specs.build(VIEWS, chosen.tokens, "tokens", TokenView)
    jostle = specs.build(PERTURBATIONS, chosen.perturbation, "perturbation", Perturbation)
    change = specs.build(RESPONSES, chosen.response, "response", Response)
    pad = padding_id(models.values()) if isinstance(view, TextView) else None
    held = Inputs(inputs, view, chosen.mask, pad)
    plan = _default_plan(held, jostle, change) if chosen.plan is None else specs.build(PLANS, chosen.plan, "plan", Plan)
    if isinstance(plan, Grid) and jostle.is_deterministic:
        plan = Grid(draws=1)
    held.check_finite()
    if not isinstance(view, TextView):  # of text, once the models are in eval mode: they may have to embed it
        jostle.check(held.sample_token())
    target = checked_target(chosen.target)
    settings = Settings(
        tokens=view.describe(),
        perturbation=jostle.describe(),
        response=change.describe(),
        plan=plan.describe(),
        target=target,
        level=checked_level(chosen.level),
        seed=checked_whole("seed", chosen.seed),
        num_inputs=len(held),
        num_tokens=held.num_tokens,
        average=checked_average(chosen.average, plan, target),
    )
    functions = [TokenFunction(model, held, str(name), chosen.device) for name, model in models.items()]
    batch_size = checked_whole("batch_size", chosen.batch_size, least=1)
    return Prepared(Evaluation(functions, jostle, change, settings.seed, batch_size), plan, settings)


def _default_plan(inputs: Inputs, perturbation: Perturbation, response: Response) -> Plan:
    if perturbation.is_deterministic and len(inputs) * inputs.num_tokens <= _FEW_TOKENS:
        return Grid(draws=1)
    return Until(half_width=0.01) if response.is_binary else Until(relative=0.05)
