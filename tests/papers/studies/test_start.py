"""What is imported to get at one study: its own module, one that it builds on, and nothing that only drawing needs."""

import json
import subprocess
import sys

from jostle import studies

# A fresh process imports the framework, and torch, which all of them need, and then becomes a child for each study.
PROGRAM = """
import json, os, sys
import torch
from importlib.metadata import entry_points
from jostle import studies
modules = {point.module for point in entry_points(group="jostle.studies")}
for name in studies.names():
    reader, writer = os.pipe()
    if os.fork() == 0:
        studies.get(name)
        heavy = {"matplotlib", "scipy.stats", "jinja2", "transformers"} & set(sys.modules)
        found = {"studies": sorted(modules & set(sys.modules)), "heavy": sorted(heavy)}
        os.write(writer, json.dumps(found).encode())
        os._exit(0)
    os.wait()
    print(json.dumps([name, json.loads(os.read(reader, 10_000))]))
"""


# Studies that ask about the networks, or by the rule, of another study, whose module they import.
BUILT_ON = {
    "2402.09963/figure-14": "2402.09963/figure-3",
    "2402.09963/figure-15": "2402.09963/figure-4",
    "2403.06925/table-3": "2403.06925/table-1",
    "2403.06925/table-4-language": "2403.06925/table-4",
    "2602.08287/parity": "2602.08287/grokking",
}


def test_a_study_imports_its_own_module_and_nothing_that_only_drawing_needs():
    found = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True).stdout
    loaded = dict(json.loads(line) for line in found.splitlines())
    assert sorted(loaded) == studies.names()
    homes = {name: type(studies.get(name)).__module__ for name in loaded}
    needed = {name: {homes[name], homes[BUILT_ON.get(name, name)]} for name in loaded}
    assert {name: set(one["studies"]) for name, one in loaded.items()} == needed
    assert {name: one["heavy"] for name, one in loaded.items() if one["heavy"]} == {}
