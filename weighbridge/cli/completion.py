from __future__ import annotations

import click

VARIABLE = "_WEIGHBRIDGE_COMPLETE"


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def command(context: click.Context, shell: str) -> None:
    """Print the completion script of SHELL.

    bash, in ~/.bashrc: eval "$(weighbridge completion bash)"; zsh, in ~/.zshrc: eval "$(weighbridge
    completion zsh)"; fish: weighbridge completion fish >~/.config/fish/completions/weighbridge.fish
    """
    from click.shell_completion import get_completion_class

    kind = get_completion_class(shell)
    root = context.find_root().command
    if kind is None:  # another program may have taken click's own away
        raise click.UsageError(f"no completion for {shell}")
    source = kind(root, {}, "weighbridge", VARIABLE).source()
    # click's script for fish takes no values with commas, which lists of names have.
    click.echo(source.replace('string split ","', 'string split -m 1 ","'))
