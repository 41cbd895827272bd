"""``--config FILE``: options from a TOML or YAML file, under the names that they have on the command line.

    # experiment.toml
    data = "mnist-5000"            # for any command
    tokens = "patches:7"

    [measure]                      # for this command only
    model = "py:my_model.py:make"
    half-width = 0.005

What is written on the command line wins over the file.
"""

import contextlib
import importlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jostle.base.errors import UsageError
from jostle.base.files import read_text

if TYPE_CHECKING:
    from cyclopts import App

FLAG = "--config"
_FORMATS = (".toml", ".yaml", ".yml")


def take_config(words: list[str]) -> tuple[list[str], Path | None]:
    """The words without ``--config FILE``, and the file.

    >>> take_config(["measure", "--config", "a.toml", "--seed", "1"])
    (['measure', '--seed', '1'], PosixPath('a.toml'))
    """
    rest, found = list[str](), list[str]()
    pending = iter(words)
    for word in pending:
        name, equals, value = word.partition("=")
        if name != FLAG:
            rest.append(word)
        else:
            found.append(value if equals else next(pending, ""))
    if len(found) > 1 or "" in found:
        raise UsageError(f"{FLAG} takes one file, for example {FLAG} experiment.toml")
    return rest, Path(found[0]) if found else None


@contextlib.contextmanager
def configured(app: "App", path: Path | None, command: str) -> Iterator[None]:
    """Inside, options that are not on the command line come from the file.

    Arguments:
        app: the commands.
        path: the file; None for none.
        command: that is run.
    """
    if path is None:
        yield
        return
    from cyclopts.config import Dict

    options = choose(read_config(path), list(app), command)
    before, app.config = app.config, (Dict({command: options}, source=str(path)),)
    try:
        yield
    finally:
        app.config = before


def read_config(path: Path) -> dict[str, Any]:
    """What a file holds; one that cannot be read is an error of one line."""
    suffix = path.suffix.lower()
    if suffix not in _FORMATS:
        raise UsageError(f"{FLAG} {path} must end in {', '.join(_FORMATS)}; its ending decides the format")
    text = read_text(path, "config")
    try:
        held = _toml(text) if suffix == ".toml" else _yaml(text)
    except ValueError as error:
        raise UsageError(f"config file {path} cannot be read: {' '.join(str(error).split())}") from None
    if not isinstance(held, dict) or not all(isinstance(key, str) for key in held):
        raise UsageError(f"config file {path} must hold options by name, as data = 'inputs.npy' or data: inputs.npy")
    return held


def choose(held: dict[str, Any], commands: list[str], command: str) -> dict[str, Any]:
    """The options for one command: those of all commands, and those in its own table, which win.

    >>> choose({"seed": 1, "measure": {"half_width": 0.1}, "sweep": {"stds": [1]}}, ["measure", "sweep"], "measure")
    {'seed': 1, 'half-width': 0.1}
    """
    tables = {key for key, value in held.items() if key in commands and isinstance(value, dict)}
    shared = {_name(key): value for key, value in held.items() if key not in tables}  # data is an option and a command
    own = held[command] if command in tables else {}
    return {**shared, **{_name(key): value for key, value in own.items()}}


def _name(key: str) -> str:
    """An option as the command line writes it."""
    return key.removeprefix("--").replace("_", "-")


def _toml(text: str) -> Any:
    import tomllib

    return tomllib.loads(text)


def _yaml(text: str) -> Any:
    try:
        yaml: Any = importlib.import_module("yaml")
    except ModuleNotFoundError:
        raise UsageError("config files in YAML need pyyaml: pip install pyyaml; or write TOML") from None
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ValueError(error) from None
