"""What single inputs tell beyond their mean: clusters of inputs that belong together, and whether flips mean errors.

Both are made from the mean change of each input, after a measurement.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from jostle.base.errors import UsageError
from jostle.base.estimate import Interval
from jostle.estimates.certainty import find_certainty
from jostle.estimates.clean import clean_outputs, doubts, predictions, read_labels
from jostle.estimates.request import Model, Request
from jostle.estimates.result import Comparison, Difference, Measurement
from jostle.intervals import fixed
from jostle.responses import Flip
from jostle.sampling import DefaultPlan, Grid, Until
from jostle.sampling.plans import Batching
from jostle.tokens import Inputs, TokenFunction

AnyMean = TypeVar("AnyMean", Measurement, Difference)


def plan_for_labels(request: Request, count: int = 0) -> Request:
    """The request with uniform draws: adaptive ones would visit the inputs with a small margin more than others.

    Arguments:
        request: what is asked.
        count: of inputs that are asked once more afterwards, if they are visited; ``max_passes`` counts these too.
            A visit takes two passes at least, so at most a third of all is needed for them.
    """
    plan = request.plan
    if not isinstance(plan, Until | DefaultPlan):
        return request
    most = max(1, plan.max_passes - min(count, -(-plan.max_passes // 3)))
    return replace(request, plan=replace(plan, adaptive=False, max_passes=most))


def plan_for_clusters(request: Request) -> Request:
    """The request with a plan that visits all inputs equally often, which clusters need."""
    if request.average != "macro":
        raise UsageError("cluster= and average='micro': inputs must weigh the same, use average='macro'")
    if isinstance(request.plan, DefaultPlan):
        return replace(request, plan=Grid(1))
    if not isinstance(request.plan, Grid):
        raise UsageError(
            "cluster= needs plan=Grid(draws): the first visits of Until are of single inputs, and inputs of a cluster "
            "are not independent"
        )
    return request


def read_clusters(cluster: Any, count: int) -> NDArray[np.int64]:
    """The clusters of inputs, (count,) numbered from 0; any values, such as names of documents, will do."""
    try:
        given = np.asarray(cluster.cpu() if hasattr(cluster, "cpu") else cluster)
    except (TypeError, ValueError):
        raise UsageError(
            f"cluster of type {type(cluster).__name__} must hold one name or number for each input"
        ) from None
    if given.shape != (count,):
        raise UsageError(f"cluster has shape {given.shape}, expected ({count},): one name or number for each input")
    if any(one is None or one != one for one in given.tolist()):  # NaN, as a column of a table has
        raise UsageError("cluster holds None or NaN; expected one name or number for each input")
    try:
        numbers: NDArray[np.int64] = np.unique(given, return_inverse=True)[1].astype(np.int64)
    except TypeError:  # numbers among texts have no order
        raise UsageError("cluster holds values of several kinds; give names or numbers, not both") from None
    if numbers.max() == 0:
        raise UsageError("cluster: all inputs are of one cluster, which says nothing about other clusters")
    return numbers


def with_clusters(found: Comparison, request: Request, clusters: NDArray[np.int64]) -> Comparison:
    """The same numbers with population intervals in which clusters of inputs, not inputs, are independent.

    The population's mean over inputs is E[size of a cluster x its mean] / E[size]. For flips the interval is Gaffke's
    bound for that ratio (``intervals.fixed.bounded_ratio``); clusters larger than the largest one seen are not covered.
    For other responses it is Student's t after linearisation. With clusters of one input each it is the usual interval.
    """
    measurements = {}
    for name, one in found.measurements.items():
        clustered = _clustered(one, request, clusters, (0.0, 1.0))
        others = [note for note in one.notes if note not in one.caveats]
        measurements[name] = replace(clustered, notes=[*others, *clustered.caveats])
    return Comparison(measurements, [_clustered(one, request, clusters, (-1.0, 1.0)) for one in found.differences])


def _clustered(one: AnyMean, request: Request, clusters: NDArray[np.int64], bounds: fixed.Ends) -> AnyMean:
    seen = np.isfinite(one.per_input)
    numbers, values = clusters[seen], one.per_input[seen]
    sizes = np.bincount(numbers).astype(np.float64)
    sums = np.bincount(numbers, weights=values)
    present = sizes > 0
    means, sizes = sums[present] / sizes[present], sizes[present]
    level, is_flip = one.interval.level, request.response.is_binary
    if is_flip:
        low, high = fixed.bounded_ratio(means, sizes, level, bounds)
    else:
        low, high = fixed.student_ratio(means, sizes, level)
    bound = "Gaffke's bound" if is_flip else "Student's t"
    method = f"{len(means):,} clusters of 1 to {int(sizes.max()):,} inputs, ratio, {bound}"
    residuals = sizes * (means - fixed.weighted_mean(means, sizes))
    caveat = fixed.ratio_caveat(sizes, residuals, is_bounded=is_flip)
    interval = Interval(low, high, level, "population", method, caveat=caveat)
    return replace(one, interval=interval) if one.target == "population" else replace(one, other=interval)


def with_certainty(
    found: Comparison, request: Request, models: Mapping[str, Model], inputs: Any, labels: Any
) -> Comparison:
    """The same measurements, each with its ``Certainty``: the models are asked about the visited inputs once more."""
    if not isinstance(request.response, Flip):
        raise UsageError(
            f"labels= tell whether flips mean errors, and response={request.response.describe()}: use flip"
        )
    held = inputs if isinstance(inputs, Inputs) else request.read_inputs(inputs, models.values())
    measurements = {
        name: _certain(one, request, models[name], held, labels) for name, one in found.measurements.items()
    }
    return replace(found, measurements=measurements)


def _certain(one: Measurement, request: Request, model: Model, held: Inputs, labels: Any) -> Measurement:
    function = TokenFunction(model, held, one.name, request.device)
    visited = np.flatnonzero(np.isfinite(one.per_input))
    outputs = clean_outputs(function, Batching(held, request.batch_size), visited)
    is_single = outputs.dim() == 1 or outputs.shape[1] == 1
    right = read_labels(labels, len(held), 2 if is_single else outputs.shape[1])[visited]
    is_wrong = (predictions(outputs) != right).numpy()
    certainty = find_certainty(
        one.per_input[visited], is_wrong, doubts(outputs), request.level, one.trials / max(len(visited), 1)
    )
    return replace(one, certainty=certainty, passes=one.passes + function.passes)


def refine(
    found: Comparison, request: Request, models: Mapping[str, Model], inputs: Any, labels: Any, cluster: Any
) -> Comparison:
    """What ``measure`` and ``compare`` add to a result where labels or clusters are given."""
    if cluster is not None:
        count = next(iter(found.measurements.values())).settings.num_inputs
        found = with_clusters(found, request, read_clusters(cluster, count))
    return found if labels is None else with_certainty(found, request, models, inputs, labels)
