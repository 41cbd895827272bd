"""The numbers of docs/cluster.md are those of its record."""

import json
import runpy
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent


def test_the_page_is_what_the_record_says():
    tool = runpy.run_path(str(ROOT / "tools" / "cluster.py"))
    text = tool["PAGE"].read_text(encoding="utf-8")
    assert tool["page"](json.loads(tool["RECORD"].read_text(encoding="utf-8")), text) == text
    assert "microseconds" in text
