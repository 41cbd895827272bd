"""Every block of code in README and docs runs, in the order of its page, and prints what the page says it prints.

``documents.py`` has the rule by which blocks are found, and the marks of those that are not run. ``sandbox.py`` makes
the files that the commands name: small random models and a few inputs.
"""

import itertools
import re
import shlex
import tomllib

import pytest
import torch

from jostle.cli import main
from jostle.cli.app import app
from jostle.data import DATASETS
from jostle.models import MODELS
from jostle.perturbations import PERTURBATIONS
from jostle.responses import RESPONSES
from jostle.studies import STUDIES
from tests.documents import LANGUAGES, MARKS, ROOT, Block, blocks, commands, pages
from tests.sandbox import fill

ALL = [block for page in pages() for block in blocks(page)]
NAME = "a page of the docs"  # of the module in which blocks run
NUMBER = re.compile(r"[-+]?\d[\d,]*\.?\d*(?:e[-+]?\d+)?")

# Commands whose words are checked and which are not run, and why.
PARSED = {
    "jostle run": "minutes to hours; tests/papers/studies run every study at smoke scale",
    "jostle try": "tests/cli/test_play.py runs it",
    "jostle demo": "minutes; tests/papers/demo runs a small one",
    "jostle play": "serves until it is stopped; tests/play asks the server",
    "jostle data": "looks at the user's files, or downloads; tests/cli/test_data.py runs it on others",
    "make": "installs from the network; the target must exist",
    "pip install": "installs from the network; the extras must exist",
    "python -m venv": "makes an environment",
    "python tools": "writes records or pages; the file must exist",
    "git clone": "needs a network",
    "cd": "of a shell",
    "export": "of a shell",
    "source": "of a shell",
}


def by_page(language: str, slow: bool = False) -> list:
    """The pages with such blocks, each with those of its blocks that are run."""
    found: dict[str, list[Block]] = {}
    for block in ALL:
        if block.language == language and block.mark != "not run" and (slow or block.mark != "slow"):
            found.setdefault(block.page, []).append(block)
    kept = {page: own for page, own in found.items() if not slow or any(block.mark == "slow" for block in own)}
    return [pytest.param(own, id=page.removeprefix("docs/"), marks=_marks(own)) for page, own in kept.items()]


def _marks(own: list[Block]) -> list:
    """Warnings are errors, but for Lightning and its packages, which warn about each other."""
    warns = any("import lightning" in block.code for block in own)
    return [pytest.mark.filterwarnings("ignore")] if warns else []


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with the files that commands name."""
    place = tmp_path_factory.mktemp("sandbox")
    fill(place)
    return place


@pytest.fixture
def inside(folder, monkeypatch):
    """As a reader: float32, in a folder with the files, in a wide window."""
    torch.set_default_dtype(torch.float32)
    monkeypatch.chdir(folder)
    monkeypatch.syspath_prepend(folder)
    monkeypatch.setenv("COLUMNS", "200")
    yield
    for registry in (PERTURBATIONS, RESPONSES, MODELS, DATASETS, STUDIES):  # what a page registers is its own
        for name in [name for name, thing in registry._things.items() if thing.__module__ == NAME]:
            del registry._things[name]


def numbers(text: str) -> list[float]:
    """All numbers in a text."""
    return [float(number.replace(",", "")) for number in NUMBER.findall(text)]


def same(shown: str, printed: str) -> bool:
    """Whether a page shows what was printed: the same words, and numbers that are close, since machines differ.

    Times do not count.

    >>> same("S 0.272 after 16,078 passes", "S  0.2719 after 16,091 passes")
    True
    >>> same("S 0.272", "S 0.41"), same("S 0.272", "T 0.272")
    (False, False)
    """
    shown, printed = (re.sub(r"\b\d+\.\d s\b", "some seconds", text) for text in (shown, printed))
    if " ".join(NUMBER.sub("#", shown).split()) != " ".join(NUMBER.sub("#", printed).split()):
        return False
    pairs = zip(numbers(shown), numbers(printed), strict=True)
    return all(abs(one - other) <= 0.02 + 0.2 * abs(other) for one, other in pairs)


def run_python(own: list[Block], capsys: pytest.CaptureFixture[str]) -> None:
    """Run the blocks of a page in one namespace."""
    names: dict[str, object] = {"__name__": NAME}
    for block in own:
        capsys.readouterr()
        exec(compile("\n" * (block.line - 1) + block.code, block.page, "exec"), names)
        printed = capsys.readouterr().out
        assert not block.printed or same(block.printed, printed), f"{block.page}:{block.line} prints\n{printed}"


def run_commands(own: list[Block], capsys: pytest.CaptureFixture[str]) -> None:
    """Parse the commands of a page, and run those that can be run."""
    for block in own:
        capsys.readouterr()
        for command in commands(block.code):
            parse(command)
            if not only_parsed(command) and block.mark != "parsed":
                run_command(command)
        printed = capsys.readouterr().out
        assert not block.printed or same(block.printed, printed), f"{block.page}:{block.line} prints\n{printed}"


def run_command(command: str) -> None:
    """Run a command of jostle; one that ends with an error, which is on stderr, fails."""
    _, name, *words = shlex.split(command)
    quiet = ["--quiet"] if "--quiet" in options(name) else []
    code = None
    try:
        main([name, *words, *quiet])
    except SystemExit as ended:
        code = ended.code
    assert not code, command


@pytest.mark.parametrize("own", by_page("python"))
@pytest.mark.usefixtures("inside")
def test_python_runs(own, capsys):
    run_python(own, capsys)


@pytest.mark.slow
@pytest.mark.parametrize("own", by_page("python", slow=True))
@pytest.mark.usefixtures("inside")
def test_slow_python_runs(own, capsys):
    run_python(own, capsys)


@pytest.mark.parametrize("own", by_page("sh"))
@pytest.mark.usefixtures("inside")
def test_commands_run(own, capsys):
    run_commands(own, capsys)


@pytest.mark.slow
@pytest.mark.parametrize("own", by_page("sh", slow=True))
@pytest.mark.usefixtures("inside")
def test_slow_commands_run(own, capsys):
    run_commands(own, capsys)


def only_parsed(command: str) -> bool:
    """Whether a command is one of those that are not run."""
    command = re.sub(r"^([A-Z_]+=\S* )+", "", command)  # variables of the environment
    return any(re.match(rf"{re.escape(known)}(?![\w-])", command) for known in PARSED)


def parse(command: str) -> None:
    """Fail unless a command and its options exist."""
    words = shlex.split(command)
    while re.match(r"[A-Z_]+=", words[0]):
        del words[0]  # a variable of the environment
    if words[0] == "jostle":
        app.parse_args(words[1:], print_error=False, exit_on_error=False)
        if words[1] == "run":
            assert words[2] in STUDIES.names(), command
    elif words[0] == "make":
        assert re.search(rf"^{words[1]}:", (ROOT / "Makefile").read_text(), re.MULTILINE), command
    elif words[:2] == ["pip", "install"]:
        extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
        named = {extra for wanted in re.findall(r"\[([\w,]+)\]", command) for extra in wanted.split(",")}
        assert named <= set(extras), command
    elif words[:1] == ["python"] and words[1] != "-m":
        assert (ROOT / words[1]).is_file(), command
    else:
        assert only_parsed(command), f"say in PARSED what becomes of: {command}"


def options(command: str) -> set[str]:
    """The options of a command of jostle, and of its own commands, if it has any."""
    here = app[command]
    parts = [here] if here.default_command is not None else [here[name] for name in here if not name.startswith("-")]
    return {name for part in parts for argument in part.assemble_argument_collection() for name in argument.names}


def test_a_wrong_command_is_found():
    """An unknown option, study, target or extra."""
    for command in ("jostle measure --modle x", "jostle run 2403.06925/figure-99", "make tea", 'pip install ".[tea]"'):
        with pytest.raises(Exception, match=r"modle|figure-99|tea"):
            parse(command)
    with pytest.raises(AssertionError, match="say in PARSED"):
        parse("rm -rf runs")
    with pytest.raises(AssertionError, match="no-such-file"):
        run_command("jostle measure --model py:no-such-file.py:make --data inputs.npy --tokens patches:4")


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.relative_to(ROOT).as_posix())
def test_commands_in_a_sentence_exist(page):
    """`jostle run NAME --scale small` within a line: the command and its options exist."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    for command in re.findall(r"`jostle ([a-z][^`\n]*)`", text):
        name, *words = command.split()
        assert name in app, command
        known = options(name) | {"--help", "--debug"}
        unknown = [word for word in words if word.startswith("--") and word.split("=")[0] not in known]
        assert not unknown, f"{page.name}: {command}"


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.relative_to(ROOT).as_posix())
def test_blocks_are_of_known_kinds(page):
    """So that no command or program escapes: nothing in another language, and no command merely indented."""
    for block in blocks(page):
        assert block.language in LANGUAGES, f"{block.page}:{block.line}"
        assert block.mark in ("", *MARKS), f"{block.page}:{block.line}"
        if block.language == "toml":
            tomllib.loads(block.code)
    text = page.read_text(encoding="utf-8")
    assert len(re.findall(r"^ *```", text, re.MULTILINE)) == 2 * len(blocks(page))
    assert not re.search(r"\n\n(?: {4}|\t)(?:jostle|make|pip|python|import|from) ", text)


def test_blocks_that_are_not_run_are_listed():
    """In SKIPS.md, so that they are few and known."""
    listed = (ROOT / "tests" / "SKIPS.md").read_text(encoding="utf-8").partition("## Blocks of the docs")[2]
    rows = set(re.findall(r"^\| (\S+) \| (not run|parsed) \| (.*?) \|$", listed, re.MULTILINE))
    assert rows == {(block.page, block.mark, block.reason) for block in ALL if block.mark in ("not run", "parsed")}


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.relative_to(ROOT).as_posix())
def test_lists_are_lists_for_every_reader_of_markdown(page):
    """A blank line before a list, and four spaces before a list within a list: one reader of Markdown needs both."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    assert re.findall(r"^ {1,3}(?:[*-]|\d+\.) .*$", text, re.MULTILINE) == []
    lines = text.splitlines()
    glued = [
        line
        for before, line in itertools.pairwise(lines)
        if re.match(r"(?:[*-]|\d+\.) ", line) and re.match(r"(?!<!--)[^\s*\d-]", before)
    ]
    assert glued == []
