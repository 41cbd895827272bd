"""When a network has learnt, when each measure has risen, and which of them rises first.

Every measure goes from its value for a constant answer to its value for chi_S itself:

    measure                  constant or linear    chi_S
    test_accuracy            1/2                   1
    sensitivity              0                     p / d
    relevant_sensitivity     0                     1
    output_sensitivity       1 / d, of a linear f  p / d
    output_correlation       0                     1

It has *risen* by a share r of that way at the first look from which on it stays at or above from + r (to - from), up to
the look at which the network has *learnt*: the first with a test accuracy of 99 %. A rise that falls back does not
count: before a network has learnt anything, its output is nearly constant, and sensitivity goes up and down with the
mean output, which wanders around 0. Changes after the network has learnt do not count either. A network that has not
learnt has no onsets.
"""

from jostle.base import checks
from jostle_papers.p2403_06925.parity.task import SparseParity
from jostle_papers.stacked.trajectory import Trajectory

LEARNT = 0.99  # test accuracy
HALF = 0.5  # share of the way that counts as risen
ACCURACY = "test_accuracy"
_ROUNDING = 1e-12


def ways(task: SparseParity) -> dict[str, tuple[float, float]]:
    """The values between which each measure goes.

    >>> ways(SparseParity())["sensitivity"]
    (0.0, 0.1)
    """
    return {
        ACCURACY: (0.5, 1.0),
        "sensitivity": (0.0, task.sensitivity),
        "relevant_sensitivity": (0.0, 1.0),
        "output_sensitivity": (1 / task.num_bits, task.sensitivity),
        "output_correlation": (0.0, 1.0),
    }


def learning_step(course: Trajectory) -> int | None:
    """The first step with a test accuracy of 99 %; None if there is none."""
    return course.first(ACCURACY, LEARNT)


def rise(course: Trajectory, name: str, task: SparseParity, share: float = HALF) -> int | None:
    """The step at which a measure has risen by this share of its way; None if there is none.

    There is none if the network has not learnt, or if the measure is below that share when the network has learnt.

    Arguments:
        course: measures along training; what it calls epochs are steps here.
        name: one of ``ways``.
        task: what the network learns.
        share: of the way, above 0 and up to 1.
    """
    checks.number("share of the way", share, above=0, most=1)
    known = ways(task)
    checks.choice("measure that rises", name, known)
    end = learning_step(course)
    if end is None:
        return None
    start, goal = known[name]
    least = start + share * (goal - start)
    risen = None
    for step, value in zip(course.epochs, course.curve(name), strict=True):
        if step > end:
            break
        if value < least - _ROUNDING:
            risen = None
        elif risen is None:
            risen = step
    return risen


def lead(course: Trajectory, name: str, task: SparseParity, share: float = HALF) -> int | None:
    """By how many steps a measure has risen before test accuracy has, by the same share; negative if after.

    0 says that both rise between the same two looks. None if one of the two has not risen.
    """
    mine, accuracy = rise(course, name, task, share), rise(course, ACCURACY, task, share)
    return None if mine is None or accuracy is None else accuracy - mine


def relative_lead(course: Trajectory, name: str, task: SparseParity, share: float = HALF) -> float | None:
    """``lead`` as a share of the steps until test accuracy has risen; None where there is no lead, or no step."""
    ahead, began = lead(course, name, task, share), rise(course, ACCURACY, task, share)
    return ahead / began if ahead is not None and began else None


def value_before_learning(course: Trajectory, name: str, task: SparseParity, share: float = 0.1) -> float | None:
    """A measure at the last look before test accuracy has risen by ``share``; by a tenth means while it is below 55 %.

    None if the network has not learnt, or if accuracy has risen at the first look.
    """
    began = rise(course, ACCURACY, task, share)
    if began is None or began == course.epochs[0]:
        return None
    return course.curve(name)[course.epochs.index(began) - 1]
