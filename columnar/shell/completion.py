"""``columnar completion``: the script that lets a shell complete our commands with Tab."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print the script that completes commands with Tab.

    \b
      columnar completion bash > ~/.local/share/bash-completion/completions/columnar
      columnar completion zsh > ~/.zfunc/_columnar
      columnar completion fish > ~/.config/fish/completions/columnar.fish
    """
    found = get_completion_class(shell)
    assert found is not None, "click knows these three"
    click.echo(found(ctx.find_root().command, {}, "columnar", "_COLUMNAR_COMPLETE").source())
