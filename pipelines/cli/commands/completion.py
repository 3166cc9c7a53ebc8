"""`grouplake completion`: print a completion script."""

from argparse import ArgumentParser, Namespace

from pipelines.cli.command import Command

_EXAMPLES = """examples:
  source <(grouplake completion bash)
  grouplake completion zsh > ~/.zfunc/_grouplake
"""


def _add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("shell", choices=("bash", "zsh", "tcsh"))


def _run(options: Namespace) -> int:
    import shtab

    print(shtab.complete(options.parser, shell=options.shell))
    return 0


COMMAND = Command("completion", "print a completion script for a shell", _EXAMPLES, _add_arguments, _run)
