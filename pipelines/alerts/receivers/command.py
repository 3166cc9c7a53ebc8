"""A program that gets notifications as JSON on its standard input."""

import json
import os
import shutil
import signal
import subprocess
import tempfile
from dataclasses import dataclass, field

from pipelines.alerts.receivers.message import webhook_message
from pipelines.alerts.receivers.receiver import Context, DeliveryError
from pipelines.alerts.section import Section
from pipelines.alerts.states import Grouping, Notification

_STDERR_BYTES = 2_000


@dataclass(frozen=True)
class CommandReceiver:
    """A program with arguments, started without a shell; exit code 0 means that it accepted the notification."""

    name: str
    grouping: Grouping
    timeout_seconds: float
    arguments: tuple[str, ...] = field(repr=False)
    secrets: tuple[str, ...] = field(repr=False)
    kind: str = "command"

    @classmethod
    def of(cls, name: str, grouping: Grouping, timeout_seconds: float, section: Section) -> "CommandReceiver":
        """Read the keys of a command."""
        arguments = section.names("command")
        if arguments is None:
            raise section.fail("command", "is missing")
        if shutil.which(arguments[0]) is None:
            raise section.fail("command", f"starts {arguments[0]!r}, which is not an executable program")
        return cls(name, grouping, timeout_seconds, arguments, tuple(section.secrets))

    def send(self, notification: Notification, context: Context) -> str:
        """Run the program to its end, or kill it with its children after the time limit."""
        body = json.dumps(webhook_message(notification, context), ensure_ascii=False).encode()
        # files instead of pipes: a child of the program that keeps a pipe open could outlive the limit
        with tempfile.TemporaryFile() as stdin, tempfile.TemporaryFile() as stderr:
            stdin.write(body)
            stdin.seek(0)
            try:
                started = subprocess.Popen(
                    self.arguments, stdin=stdin, stdout=subprocess.DEVNULL, stderr=stderr, start_new_session=True
                )
            except OSError as error:
                raise DeliveryError(f"cannot be started: {error.strerror}") from error
            try:
                code = started.wait(self.timeout_seconds)
            except subprocess.TimeoutExpired as error:
                raise DeliveryError(f"did not end within {self.timeout_seconds:g} s") from error
            finally:
                if started.returncode is None:
                    os.killpg(started.pid, signal.SIGKILL)
                    started.wait()
            stderr.seek(0)
            excerpt = stderr.read(_STDERR_BYTES).decode(errors="replace")
        if code != 0:
            raise DeliveryError(f"exit code {code}: {excerpt}".rstrip(": "))
        return ""
