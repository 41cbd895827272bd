"""``jostle completion``: what a shell needs to complete commands and options."""

from typing import Annotated, Literal

from cyclopts import Parameter

from jostle.cli.output import say

INSTALL_HELP = "Write the script to where the shell looks for it, and tell where; by default it is printed."


def completion(
    shell: Annotated[Literal["bash", "zsh", "fish"], Parameter(help="The shell.")],
    /,
    *,
    install: Annotated[bool, Parameter(negative="", show_default=False, help=INSTALL_HELP)] = False,
) -> None:
    """Print a script with which a shell completes commands, options and names.

    source <(jostle completion bash)             in ~/.bashrc
    jostle completion zsh --install
    jostle completion fish > ~/.config/fish/completions/jostle.fish
    """
    from jostle.cli.app import app

    if install:
        say(f"completion of {shell} written to {app.install_completion(shell=shell, add_to_startup=False)}")
    else:
        say(app.generate_completion(shell=shell).rstrip("\n"))
