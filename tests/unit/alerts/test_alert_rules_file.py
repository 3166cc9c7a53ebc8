"""Files of rules: the example, and one line for every mistake."""

import re
import tomllib
from pathlib import Path

import pytest

from coordinator_core.health.durations import duration_text, parse_duration_ms
from pipelines.alerts.rule_kinds import KINDS
from pipelines.alerts.rules_file import EXAMPLE, AboveExpected, AlertRules, load_owners, load_rules
from pipelines.alerts.states import Below, OneOf
from pipelines.runtime.errors import UsageError

DOCS = Path(__file__).parents[3] / "docs" / "alerts.md"
GENERAL = '[alerts]\nreceivers = ["ops"]\n'
RECEIVER = '[receivers.ops]\nkind = "command"\ncommand = ["true"]\n'
RULE = '[[rules]]\nname = "Behind"\non = "lag"\nabove = 5\n'


def loaded(tmp_path: Path, text: str, **environment: str) -> AlertRules:
    path = tmp_path / "alerts.toml"
    path.write_text(text)
    return load_rules(str(path), environment)


def test_the_example_has_a_rule_of_every_kind(tmp_path: Path) -> None:
    rules = load_rules(str(EXAMPLE), {})
    assert {rule.on for rule in rules.rules} == set(KINDS)
    assert rules.rules[0].rule.name == "JobStopped"
    conditions = {rule.rule.name: rule.condition for rule in rules.rules}
    assert isinstance(conditions["JobStopped"], AboveExpected)
    assert conditions["RetentionNear"] == Below(7_200)
    assert isinstance(conditions["GroupUnhealthy"], OneOf)
    # with everything that is commented out
    text = re.sub(r"(?m)^# (\[|[a-z_]+ = )", r"\1", EXAMPLE.read_text(encoding="utf-8"))
    every = loaded(tmp_path, text, PAYMENTS_WEBHOOK="https://chat.example.org/x", PAYMENTS_TOKEN="t", SMTP_PASSWORD="hunter2")
    assert {receiver.kind for receiver in every.receivers.values()} == {"command", "webhook", "alertmanager", "smtp"}
    assert every.owners[0].labels == (("team", "payments"),)
    assert "hunter2" not in repr(every)
    assert "chat.example.org" not in repr(every)


def test_owners_are_read_without_the_secrets_of_receivers(tmp_path: Path) -> None:
    text = re.sub(r"(?m)^# (\[|[a-z_]+ = )", r"\1", EXAMPLE.read_text(encoding="utf-8"))
    path = tmp_path / "alerts.toml"
    path.write_text(text)
    assert (
        load_owners(str(path))
        == loaded(tmp_path, text, PAYMENTS_WEBHOOK="https://x.example.org", PAYMENTS_TOKEN="t", SMTP_PASSWORD="p").owners
    )
    path.write_text('[[owners]]\ngroups = ".*"\nreceivers = ["pager"]\n')
    with pytest.raises(UsageError, match="owner 1: receivers names the receiver 'pager', which the file does not define"):
        load_owners(str(path))


def test_defaults_are_those_of_the_example(tmp_path: Path) -> None:
    """So that the example documents the defaults."""
    given = tomllib.loads(EXAMPLE.read_text(encoding="utf-8"))["alerts"]
    example, default = load_rules(str(EXAMPLE), {}), loaded(tmp_path, GENERAL + RULE + RECEIVER)
    assert example.receivers["ops"].grouping == default.receivers["ops"].grouping
    for name in ("every_ms", "stale_after_ms", "history_days", "external_url", "probes"):
        assert getattr(example, name) == getattr(default, name)
    assert example.rules[0].rule.unknown_for_ms == default.rules[0].rule.unknown_for_ms
    assert set(given) - {"receivers", "labels"} == {
        "every", "stale_after", "unknown_for", "group_by", "group_wait", "group_interval", "repeat_interval", "external_url",
        "history_days", "listen", "allow_remote",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (GENERAL + RULE + "fro = 1\n" + RECEIVER, 'rule "Behind": unknown key fro (known: name, on, per, '),
        (GENERAL + RULE.replace('"lag"', '"lagg"') + RECEIVER, "rule \"Behind\": on is 'lagg': must be one of status, lag, "),
        (GENERAL + RULE.replace("above = 5", "") + RECEIVER, "condition needs exactly one of above, below, in, not 0"),
        (GENERAL + RULE + "below = 3\n" + RECEIVER, "condition needs exactly one of above, below, in, not 2"),
        (GENERAL + RULE.replace("5", '"5m"') + RECEIVER, "above is '5m': must be a number"),
        (GENERAL + RULE.replace("5", "nan") + RECEIVER, "above is nan: must be a number"),
        (GENERAL + RULE.replace("above = 5", 'in = ["OK"]') + RECEIVER, 'in does not fit on = "lag": use above or below'),
        (GENERAL + RULE + 'for = "5 minutes"\n' + RECEIVER, "for is '5 minutes': must be a duration such as 90s, 5m or 1h30m"),
        (GENERAL + RULE + 'groups = "("\n' + RECEIVER, "groups is '(', not a regular expression: missing )"),
        (GENERAL + RULE + 'per = "cluster"\n' + RECEIVER, "per is 'cluster': must be one of group, topic, partition"),
        (GENERAL + RULE + 'receivers = ["oops"]\n' + RECEIVER, "names the receiver 'oops', which the file does not define"),
        (
            GENERAL + RULE + 'annotations = { summary = "{topic}" }\n' + RECEIVER,
            "annotations.summary has the placeholder {topic}",
        ),
        (GENERAL + RULE + 'labels = { "a-b" = "c" }\n' + RECEIVER, "has the label 'a-b'"),
        (GENERAL + RULE + RULE + RECEIVER, 'rule "Behind": name is the name of two rules'),
        (GENERAL + RECEIVER, "no rules: begin each with [[rules]]"),
        (RULE + RECEIVER, 'rule "Behind": receivers is missing, and [alerts] receivers has no default'),
        ("[alert]\n" + RULE + RECEIVER, 'rule "Behind": receivers is missing'),
        (GENERAL + "evry = 3\n" + RULE + RECEIVER, "[alerts]: unknown key evry"),
        (GENERAL + 'every = "0s"\n' + RULE + RECEIVER, "[alerts]: every must be above 0"),
        ("rules = 3\n" + GENERAL + RECEIVER, "rules is a list of sections: begin each with [[rules]]"),
        (GENERAL + '[[rules]]\non = "lag"\nabove = 5\n' + RECEIVER, "rule 1: name is missing"),
        (GENERAL + RULE + '[[owners]]\nteam = "a"\n' + RECEIVER, "owner 1: groups is missing"),
        (GENERAL + RULE + RECEIVER.replace("command", "pigeon", 1), "receiver \"ops\": kind is 'pigeon': must be one of webhook"),
        (GENERAL + RULE + RECEIVER.replace('["true"]', '"true"'), "command is 'true': must be a list of texts"),
        (GENERAL + RULE + RECEIVER.replace('["true"]', '["no-such-program"]'), "'no-such-program', which is not an executable"),
        (GENERAL + RULE + '[receivers.ops]\nkind = "webhook"\nurl = "ftp://x"\n', "url must begin with http:// or https://"),
        (GENERAL + RULE + '[receivers.ops]\nkind = "webhook"\nurl = "http://u:p@x"\n', "url contains a user name"),
        (GENERAL + RULE + '[receivers.ops]\nkind = "webhook"\nurl = "env:NO"\n', "environment variable NO is not set"),
        (
            GENERAL + RULE + '[receivers.ops]\nkind = "smtp"\nhost = "x"\nfrom = "a"\nto = ["b@c"]\n',
            "must be mail addresses such as ops@example.org, not 'a'",
        ),
        (
            GENERAL
            + RULE
            + '[receivers.ops]\nkind = "smtp"\nhost = "x"\ntls = "none"\nfrom = "a@b"\nto = ["b@c"]\n'
            + 'username = "u"\npassword = "p"\n',
            'tls is "none": a password is only sent over TLS',
        ),
        (
            GENERAL + RULE.replace('"lag"', '"sql"') + 'sql = "DELETE FROM groups"\n' + RECEIVER,
            "sql must be one SELECT statement",
        ),
        (GENERAL + RULE.replace('"lag"', '"status"') + RECEIVER, 'above does not fit on = "status": use in'),
        (
            GENERAL + '[[rules]]\nname = "S"\non = "status"\nin = ["BAD"]\n' + RECEIVER,
            "in has 'BAD': must be one of NOTFOUND, OK",
        ),
        (
            GENERAL + '[[rules]]\nname = "S"\non = "status"\nfindings = ["skewed"]\n' + RECEIVER,
            "findings has 'skewed': must be one of data_lost, ",
        ),
        ("[alerts\n", "cannot read rules"),
    ],
)
def test_a_mistake_is_one_line_that_names_it(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError) as raised:
        loaded(tmp_path, text)
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)
    assert str(tmp_path / "alerts.toml") in str(raised.value)


_SMTP = 'kind = "smtp"\nhost = "x"\nfrom = "a@b"\nto = ["b@c"]\n'


@pytest.mark.parametrize(
    ("text", "heading"),
    [
        (GENERAL + "wrong = 1\n" + RULE + RECEIVER, "## General settings"),
        (GENERAL + RULE.replace('"lag"', '"sql"') + 'sql = "SELECT 1 AS value"\nwrong = 1\n' + RECEIVER, "## Rules"),
        (GENERAL + RULE + "wrong = 1\n" + RECEIVER, "## Rules"),
        (GENERAL + RULE.replace('"lag"', '"quarantine"') + "wrong = 1\n" + RECEIVER, "## Rules"),
        (GENERAL + RULE + '[[owners]]\ngroups = ".*"\nwrong = 1\n' + RECEIVER, "## Owners"),
        (GENERAL + RULE + RECEIVER + "wrong = 1\n", "## Receivers"),
        (GENERAL + RULE + '[receivers.ops]\nkind = "webhook"\nurl = "http://x"\nwrong = 1\n', "## Receivers"),
        (GENERAL + RULE + '[receivers.ops]\nkind = "alertmanager"\nurl = "http://x"\nwrong = 1\n', "## Receivers"),
        (GENERAL + RULE + f"[receivers.ops]\n{_SMTP}wrong = 1\n", "## Receivers"),
    ],
)
def test_the_docs_have_every_key(text: str, heading: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="unknown key wrong") as raised:
        loaded(tmp_path, text)
    (known,) = re.findall(r"\(known: (.*)\)", str(raised.value))
    section = DOCS.read_text(encoding="utf-8").partition(f"\n{heading}\n")[2].partition("\n## ")[0]
    missing = [key for key in known.split(", ") if f"`{key}`" not in section]
    assert missing == []


def test_the_docs_have_every_kind_of_rule() -> None:
    section = DOCS.read_text(encoding="utf-8").partition("\n## Rules\n")[2].partition("\n## ")[0]
    assert re.findall(r"(?m)^\| `(\w+)` \| (?!`)[^|]+ \| (?:text|count|seconds|count or text) \|", section) == list(KINDS)


@pytest.mark.parametrize(("text", "ms"), [("90s", 90_000), ("1h30m", 5_400_000), ("250ms", 250), ("2d", 172_800_000)])
def test_durations(text: str, ms: int) -> None:
    assert parse_duration_ms(text) == ms


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "0s"), (59.6, "1m"), (3_900, "1h5m"), (90_061, "1d1h"), (-5, "-5s"), (400, "6m40s")]
)
def test_durations_for_people(seconds: float, text: str) -> None:
    assert duration_text(seconds) == text
