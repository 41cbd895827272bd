"""``Request``: all settings of one measurement, from the arguments of a call to the saved settings.

``Request.build`` takes what people type, objects or specs, and checks it once. After that, all settings are objects and
not strings: the loop in ``measure``, the tallies, ``sweep``, ``worst_case``, ``Probe`` and the command line all read
the same fields.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np

from jostle.base import checks, specs
from jostle.base.errors import UsageError
from jostle.base.estimate import TARGETS, Target
from jostle.base.model import parameter_type
from jostle.data.table import DataTable, is_frame
from jostle.estimates.result import MeasureSettings
from jostle.integrations.answers import Continuation
from jostle.integrations.prompts import network_of, read_prompts
from jostle.perturbations import PERTURBATIONS, Perturbation
from jostle.responses import RESPONSES, ContinuationFlip, Response
from jostle.sampling import PLANS, DefaultPlan, Grid, Plan, TrialEvaluation, Until
from jostle.tokens import VIEWS, Inputs, Readout, TextView, TokenFunction, TokenView
from jostle.tokens.readout import answers_by_token
from jostle.tokens.text import padding_id

Model = Callable[..., Any]
Average = Literal["macro", "micro"]


@dataclass(frozen=True, eq=False)
class Request:
    """Everything that is asked of models except the models and the inputs.

    >>> request = Request.build(tokens="patches:4", perturbation="gaussian-noise:2", level=0.9)
    >>> request.tokens, request.perturbation, request.level
    (Patches(key=None, mask_key=None, size=4), GaussianNoise(std=2.0), 0.9)

    Arguments:
        tokens: what a token is.
        perturbation: what a token becomes.
        response: what counts as a change.
        plan: which (input, token, draw) are tried and when to stop; ``plan_for`` settles a ``DefaultPlan``.
        target: which interval is ``low`` and ``high``, and which one a stopping rule looks at.
        average: ``macro``, inputs weigh the same whatever their number of tokens, or ``micro``, tokens weigh the same.
        mask: (N, T), true for tokens that may be jostled; None for the mask that comes with the inputs, if there is
            one.
        level: coverage of the intervals.
        seed: of the order, the choice of trials and the noise.
        batch_size: the most inputs that a model is given at once; None for as many as suit the models.
        device: where models run; None for where they are.
    """

    tokens: TokenView
    perturbation: Perturbation
    response: Response
    plan: Plan | DefaultPlan
    target: Target
    average: Average
    mask: Any
    level: float
    seed: int
    batch_size: int | None
    device: str | None

    @classmethod
    def build(
        cls,
        *,
        tokens: TokenView | str,
        perturbation: Perturbation | str,
        response: Response | str = "flip",
        plan: Plan | DefaultPlan | str | None = None,
        target: str = "dataset",
        average: str = "macro",
        mask: Any = None,
        level: float = 0.95,
        seed: int = 0,
        batch_size: int | None = None,
        device: str | None = None,
    ) -> "Request":
        """A request from objects or specs. Every argument is checked here; what depends on inputs, in ``prepare``."""
        return cls(
            tokens=specs.build(VIEWS, tokens, "tokens", TokenView),
            perturbation=specs.build(PERTURBATIONS, perturbation, "perturbation", Perturbation),
            response=specs.build(RESPONSES, response, "response", Response),
            plan=DefaultPlan() if plan is None else _plan(plan),
            target=_target(target),
            average=_average(average),
            mask=mask,
            level=checks.level(level),
            seed=checks.whole("seed", seed),
            batch_size=None if batch_size is None else checks.whole("batch_size", batch_size, least=1),
            device=device,
        )

    def read_inputs(self, inputs: Any, models: Iterable[Model] = ()) -> Inputs:
        """The inputs as tokens; raises if they cannot be cut, hold NaN, or cannot be perturbed this way.

        Arguments:
            inputs: a tensor (N, ...), a mapping of tensors, a ``Dataset`` or a ``DataLoader``; for models with a
                tokenizer also texts.
            models: those that will be asked; for texts without a mask they say which id is padding.
        """
        models = list(models)
        is_text = isinstance(self.tokens, TextView)
        if is_text:
            inputs, models = read_prompts(inputs, models), [network_of(model) for model in models]
        inputs, mask = self._read_table(inputs, models)
        by_token = self.response.at not in ("answer", "whole") or any(answers_by_token(model) for model in models)
        pad = padding_id(models) if is_text else None
        held = Inputs(inputs, self.tokens, mask, pad, aligned=is_text and by_token)
        held.pieces = getattr(inputs, "pieces", None)
        held.check_finite()
        if mask is not self.mask:
            held.notes.append(
                "noise moves numbers only, so columns of categories stay as they are; other-input moves all"
            )
        if not is_text:  # texts are checked when the models run: only they know the embeddings
            self.perturbation.check(held.sample_token())
        return held

    def _read_table(self, inputs: Any, models: list[Model]) -> tuple[Any, Any]:
        """A frame as a ``DataTable`` in the type of the models' weights, and the mask; anything else as it is.

        Noise moves numbers only: categories are masked where no mask is given.
        """
        if is_frame(inputs):
            inputs = DataTable.of(inputs)
        if not isinstance(inputs, DataTable):
            return inputs, self.mask
        wanted = parameter_type(models)
        if wanted is not None:
            inputs = replace(inputs, inputs=inputs.inputs.to(wanted))
        is_fixed = inputs.is_category & self.perturbation.has_size
        if not is_fixed.any() or self.mask is not None:
            return inputs, self.mask
        if is_fixed.all():
            raise UsageError(
                f"perturbation={self.perturbation.describe()} moves numbers, and all columns are categories: use "
                "other-input"
            )
        return inputs, np.broadcast_to(~is_fixed, tuple(inputs.inputs.shape))

    def plan_for(self, inputs: Inputs) -> Plan:
        """The plan for these inputs: a default is chosen, and without randomness one draw of a grid says it all."""
        plan = self.plan
        if isinstance(plan, DefaultPlan):
            plan = plan.choose(inputs, self.perturbation, self.response)
        if isinstance(plan, Grid) and self.perturbation.is_deterministic:
            plan = Grid(draws=1)
        if self.average == "micro" and self.target == "population" and isinstance(plan, Until):
            raise UsageError(
                "average='micro' and target='population' need plan=Grid(...): Until has no interval for them"
            )
        return plan

    def prepare(self, models: Mapping[str, Model], inputs: Any) -> TrialEvaluation:
        """The models and the inputs, ready to be asked; no model is called yet.

        Arguments:
            models: by name.
            inputs: what ``read_inputs`` takes, or what it returned.
        """
        if not isinstance(models, Mapping) or not models:
            raise UsageError("models must be a mapping from names to models with at least one entry")
        held = inputs if isinstance(inputs, Inputs) else self.read_inputs(inputs, models.values())
        self.plan_for(held)  # raises before any model is moved to a device
        readout = Readout.of(self.response)
        functions = [
            TokenFunction(self._asked(model), held, str(name), self.device, readout) for name, model in models.items()
        ]
        return TrialEvaluation(functions, self.perturbation, self.response, self.seed, self.batch_size)

    def _asked(self, model: Model) -> Model:
        """The network that is asked: of a pipeline its own; to read on, one that writes."""
        network: Model = network_of(model)
        response = self.response
        return Continuation(network, response.length) if isinstance(response, ContinuationFlip) else network

    def settings(self, inputs: Inputs) -> MeasureSettings:
        """The request as text and numbers, for files and printing."""
        return MeasureSettings(
            tokens=self.tokens.describe(),
            perturbation=self.perturbation.describe(),
            response=self.response.describe(),
            plan=self.plan_for(inputs).describe(),
            target=self.target,
            level=self.level,
            seed=self.seed,
            num_inputs=len(inputs),
            num_tokens=inputs.num_tokens,
            average=self.average,
        )


def _plan(plan: Plan | DefaultPlan | str) -> Plan | DefaultPlan:
    return plan if isinstance(plan, DefaultPlan) else specs.build(PLANS, plan, "plan", Plan)


def _target(target: str) -> Target:
    if not isinstance(target, str) or target not in get_args(Target):
        raise checks.wrong("target", target, " or ".join(f"{name} ({meaning})" for name, meaning in TARGETS.items()))
    return target  # type: ignore[return-value]


def _average(average: str) -> Average:
    if not isinstance(average, str) or average not in get_args(Average):
        raise checks.wrong("average", average, "macro (inputs weigh the same) or micro (tokens weigh the same)")
    return average  # type: ignore[return-value]
