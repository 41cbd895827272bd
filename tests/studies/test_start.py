"""What is imported before any work: seconds that every command and every worker process pays."""

import json
import subprocess
import sys


def loaded_by(code):
    """The modules that a fresh process has after ``code``."""
    program = f"import sys\n{code}\nimport json\nprint(json.dumps(sorted(sys.modules)))"
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return set(json.loads(found.stdout))


def test_the_framework_waits_for_neither_figures_nor_statistics_it_does_not_need():
    assert not {"matplotlib", "scipy.stats", "jinja2"} & loaded_by("import jostle.studies, jostle.studies.scoreboard")
