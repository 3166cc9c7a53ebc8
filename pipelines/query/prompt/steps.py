"""Execution of a text: its statements and commands, one after the other."""

from pipelines.query.prompt.commands import run_command, runs_statement
from pipelines.query.prompt.shell import Shell
from pipelines.query.script import StepKind, split
from pipelines.runtime.errors import GrouplakeError, UsageError


def run_text(shell: Shell, text: str) -> None:
    """Run the steps of a complete text, up to the first error or `\\q`.

    Raises:
        GrouplakeError: a step failed; its last note is the line on which the step begins. The steps after it did not run.
    """
    steps = split(text).all_steps
    for number, step in enumerate(steps):
        try:
            if step.kind is StepKind.COMMAND:
                run_command(shell, step.text)
            elif step.kind is StepKind.STATEMENT:
                shell.run_statement(step.text)
            else:
                command = steps[number + 1].text
                if not runs_statement(command):
                    raise UsageError(f"no ';' between the statement {step.text!r} and the command {command!r}")
                shell.last = step.text
        except GrouplakeError as error:
            error.add_note(str(step.line))
            raise
        if shell.has_quit:
            return
