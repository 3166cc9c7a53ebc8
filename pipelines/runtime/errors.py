"""Errors that end a command."""


class GrouplakeError(Exception):
    """Base class of errors that the command line prints as one line, with an exit code."""

    exit_code = 1


class UsageError(GrouplakeError):
    """Bad usage or configuration: exit code 2."""

    exit_code = 2


class RemovedState(UsageError):
    """A past state of the tables whose files were removed."""


class ForeignFeature(UsageError):
    """Another program has raised the protocol of a table to one that Grouplake or delta-rs cannot handle."""


class ReplacedTables(UsageError):
    """The tables at this place were replaced by `grouplake rebuild`."""


class TablesError(GrouplakeError):
    """The tables do not fit the command: another era, changed by another program, or incomplete."""


class AnotherWriter(TablesError):
    """Another job writes the tables, or has taken them over. A retry would take them back from that job."""
