"""`grouplake alerts`: evaluate rules on the tables, and notify receivers."""

from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING

from pipelines.cli.command import Command
from pipelines.cli.options import add_format, folder
from pipelines.runtime.errors import UsageError

if TYPE_CHECKING:
    from pipelines.alerts.rules_file import AlertRules

_EXAMPLES = """examples:
  grouplake alerts --example > alerts.toml
  grouplake alerts --rules alerts.toml --tables /data/groups --check
  grouplake alerts --rules alerts.toml --test ops
  grouplake alerts --rules alerts.toml --tables /data/groups
  grouplake alerts --rules alerts.toml --tables /data/groups --once

Without --once, --check and --test it evaluates the rules every 30 s (`every` in the file) until SIGTERM. It runs beside the
job and only reads its tables, so it also notices that the job has ended. Exit codes: 0 done; 1 a rule could not be evaluated,
a receiver did not accept a notification (--once, --check, --test), or another process evaluates alerts; 2 bad usage or file.
"""


def _add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--rules", metavar="FILE", help="file of rules, owners and receivers (docs/alerts.md)")
    parser.add_argument("--tables", type=folder, metavar="DIR", help="folder (or object-store URI) of the tables")
    parser.add_argument("--state", type=folder, metavar="DIR", help="folder of the tables of alerts (default: that of --tables)")
    parser.add_argument("--every", metavar="DURATION", help="interval between evaluations, such as 30s")
    parser.add_argument("--listen", metavar="HOST:PORT", help="answer probes at /health on this address (default: alerts.listen)")
    mode = parser.add_mutually_exclusive_group()
    mode.add_argument("--once", action="store_true", help="evaluate once and end, for cron")
    mode.add_argument("--check", action="store_true", help="check the file, and print what the rules would do now")
    mode.add_argument("--test", metavar="RECEIVER", help="send a test notification to one receiver")
    mode.add_argument("--example", action="store_true", help="print a commented file of rules")
    add_format(parser)


def _run(options: Namespace) -> int:
    from pipelines.alerts.rules_file import EXAMPLE, load_rules
    from pipelines.runtime.timestamps import now_ms

    if options.example:
        print(EXAMPLE.read_text(encoding="utf-8"), end="")
        return 0
    if options.rules is None:
        raise UsageError("name the file of rules with --rules (see grouplake alerts --help)")
    rules = load_rules(options.rules)
    if options.test is not None:
        from pipelines.alerts.run import send_test

        send_test(rules, options.test, now_ms())
        print(f"receiver {options.test} accepted a test notification")
        return 0
    if options.check:
        return _check(options, rules, now_ms())
    if options.tables is None:
        raise UsageError("name the folder of the tables with --tables (see grouplake alerts --help)")
    return _evaluate(options, rules)


def _check(options: Namespace, rules: "AlertRules", now_ms: int) -> int:
    from pipelines.alerts.run import check_rules
    from pipelines.query.output import to_stdout

    if options.tables is None:
        print(f"{options.rules}: {len(rules.rules)} rules, {len(rules.receivers)} receivers, no mistakes")
        return 0
    report, is_complete = check_rules(options.tables, rules, now_ms)
    to_stdout(report, options.format)
    return 0 if is_complete else 1


def _evaluate(options: Namespace, rules: "AlertRules") -> int:
    from coordinator_core.health.durations import parse_duration_ms
    from pipelines.alerts.run import alert_evaluator, alerts_health, evaluate_until_stopped, wait_for_tables
    from pipelines.runtime.progress import print_progress
    from pipelines.runtime.service_manager import notify_ready
    from pipelines.runtime.stop_request import stop_on_signals
    from pipelines.runtime.timestamps import now_ms

    every_ms = rules.every_ms
    if options.every is not None:
        try:
            every_ms = parse_duration_ms(options.every)
        except ValueError:
            every_ms = 0
        if not every_ms:
            raise UsageError(f"--every is {options.every!r}: must be a duration above 0, such as 30s")
    state = options.state or options.tables
    if options.once:
        with alert_evaluator(options.tables, state, rules, now_ms, print_progress) as evaluator:
            return 0 if evaluator.evaluate().is_complete else 1
    listen = rules.probes.address(options.listen)
    with stop_on_signals() as stop, alerts_health(listen, every_ms, print_progress) as watchdog:
        print_progress(f"ready: {len(rules.rules)} rules every {every_ms / 1000:g} s")
        notify_ready()
        if wait_for_tables(options.tables, stop, print_progress, watchdog.alive):
            with alert_evaluator(options.tables, state, rules, now_ms, print_progress) as evaluator:
                evaluate_until_stopped(evaluator, every_ms, stop, watchdog.alive)
    return 0


COMMAND = Command(
    "alerts",
    "evaluate alert rules on the tables, and notify receivers",
    _EXAMPLES,
    _add_arguments,
    _run,
    compiles=False,
    writes=("state", "tables"),
)
