"""Errors that end a command."""


class GrouplakeError(Exception):
    """Root of what the command line turns into one line and an exit code."""

    exit_code = 1


class UsageError(GrouplakeError):
    """Bad usage or configuration: exit code 2."""

    exit_code = 2


class TablesError(GrouplakeError):
    """The tables are not what the command needs: of another era, written by somebody else, incomplete."""


class AnotherWriter(TablesError):
    """Another job writes the tables, or has taken them over. Trying again would take them from it in turn."""
