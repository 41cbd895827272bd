"""The choices that define a worst case, as text and numbers."""

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class WorstSettings:
    """What was searched, on what, how hard.

    Arguments:
        tokens, response: specs.
        radii: of the balls, increasing.
        relative: whether radii are in units of the token's own norm.
        positions: ``each``, ``worst``, or the positions that were searched, with slashes between them.
        draws: random changes of each token and radius.
        starts, steps: of the ascent.
        candidates: for ``worst``, at how many positions of an input it ascended; 0 otherwise.
        level: coverage of the intervals.
        seed: of the draws.
        num_inputs, num_tokens: N and T; T counts masked positions too.
    """

    tokens: str
    response: str
    radii: tuple[float, ...]
    relative: bool
    positions: str
    draws: int
    starts: int
    steps: int
    candidates: int
    level: float
    seed: int
    num_inputs: int
    num_tokens: int

    @property
    def is_flip(self) -> bool:
        """Whether the response is a flip."""
        return self.response.split(":")[0] == "flip"

    def to_dict(self) -> dict[str, Any]:
        """A plain dictionary, for JSON."""
        return {**asdict(self), "radii": list(self.radii)}

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> "WorstSettings":
        """The settings that ``to_dict`` wrote."""
        return cls(**{**record, "radii": tuple(record["radii"])})
