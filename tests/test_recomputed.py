"""Findings of the committed studies, recomputed from raw records without jostle's statistics."""

import runpy
from pathlib import Path

import numpy as np
import pytest

TOOL = runpy.run_path(str(Path(__file__).parents[1] / "tools" / "recompute.py"))
FINDINGS = list(TOOL["findings"]())


def test_there_are_ten_and_more():
    assert len(FINDINGS) >= 10


@pytest.mark.parametrize(
    ("study", "statement", "again"), FINDINGS, ids=lambda part: part if isinstance(part, str) else ""
)
def test_the_summary_has_what_the_records_give(study, statement, again):
    finding = TOOL["said"](study, statement)
    shown = [finding[key] for key in ("value", "low", "high")]
    assert np.allclose(again(finding["level"]), shown, rtol=1e-6, atol=1e-9)
    assert not np.allclose(again(0.5), shown, rtol=1e-6, atol=1e-9)
