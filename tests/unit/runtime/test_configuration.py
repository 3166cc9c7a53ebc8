"""Configuration: defaults, profiles, files, the environment; unknown keys are rejected."""

from pathlib import Path

import pytest

from coordinator_core.group_coordinator.config import ERA_DEFAULTS, CoordinatorConfig
from coordinator_core.sources.kafka_options import KNOWN_OPTIONS, SECRET_OPTIONS
from pipelines.cli.commands.run import run_options_of as run_options
from pipelines.cli.parser import parser
from pipelines.job.coordinator_process import coordinator_options
from pipelines.runtime.configuration import DEFAULTS, PROFILES, load_configuration
from pipelines.runtime.errors import UsageError


def written(tmp_path: Path, text: str) -> str:
    path = tmp_path / "mine.toml"
    path.write_text(text)
    return str(path)


def test_the_defaults_name_every_connection_option_and_nothing_else() -> None:
    assert set(load_configuration(None).kafka) - {"jvm"} == set(KNOWN_OPTIONS)


def test_defaults_set_no_connection_option() -> None:
    assert load_configuration(None).kafka_options == {}


@pytest.mark.parametrize("profile", sorted(path.stem for path in PROFILES.glob("*.toml")))
def test_every_profile_loads(profile: str) -> None:
    load_configuration(profile, {"KAFKA_USERNAME": "reader", "KAFKA_PASSWORD": "hidden"})


def test_a_file_overrides_only_what_it_names(tmp_path: Path) -> None:
    configuration = load_configuration(written(tmp_path, '[job]\nera = "3"\n[spark.conf]\n"spark.sql.ansi.enabled" = "true"\n'))
    assert configuration.job["era"] == "3"
    assert configuration.job["trigger"] == "available-now"
    assert configuration.spark["conf"] == {"spark.sql.ansi.enabled": "true"}


def test_secrets_are_read_from_the_environment_and_not_shown(tmp_path: Path) -> None:
    text = '[kafka]\nsecurity_protocol = "SASL_SSL"\nsasl_password = "env:SECRET_OF_MINE"\n'
    configuration = load_configuration(written(tmp_path, text), {"SECRET_OF_MINE": "hunter2"})
    assert configuration.kafka_options == {"security_protocol": "SASL_SSL", "sasl_password": "hunter2"}
    assert "hunter2" not in repr(configuration)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[job]\nspeed = 1\n", "unknown key job.speed"),
        ("[jobs]\n", "unknown key jobs"),
        ('[job]\nbulk_rows = "many"\n', "job.bulk_rows must be an integer, not a string"),
        ("job = 1\n", "job is a section"),
        ("[job\n", "cannot read configuration"),
        ('[coordinator]\noffsets_retention_minutes = "soon"\n', "an integer, or \"era\" for the default of the era, not 'soon'"),
        ("[coordinator]\noffsets_retention_minutes = true\n", "the default of the era, not true or false"),
        ("[coordinator]\ngroup_initial_rebalance_delay_ms = -1\n", "group_initial_rebalance_delay_ms is -1: must not be neg"),
        ('[kafka]\nsasl_password = "env:NOT_SET"\n', "kafka.sasl_password: environment variable NOT_SET is not set"),
    ],
)
def test_what_is_wrong_is_named(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=message.replace(".", r"\.")):
        load_configuration(written(tmp_path, text), {})


def test_an_unknown_name_lists_the_profiles() -> None:
    with pytest.raises(UsageError, match="profiles: kafka, local, production"):
        load_configuration("staging")


def test_every_key_of_the_defaults_has_a_comment() -> None:
    lines = [line for line in DEFAULTS.read_text().splitlines() if " = " in line and not line.startswith("#")]
    without = [line for line in lines if "#" not in line and not line.startswith(("sasl_username", "ssl_"))]
    assert without == []


def test_secrets_are_marked_in_the_defaults() -> None:
    text = DEFAULTS.read_text()
    for name in SECRET_OPTIONS:
        (line,) = [line for line in text.splitlines() if line.startswith(f"{name} =")]
        assert "secret" in line


def coordinator_of(name: str) -> CoordinatorConfig:
    """The configuration that `grouplake coordinator --conf NAME` gets."""
    return coordinator_options("127.0.0.1:9092", "log", load_configuration(name).coordinator).config


@pytest.mark.parametrize("era", list(ERA_DEFAULTS))
def test_a_coordinator_of_an_era_has_the_defaults_of_that_era(era: str, tmp_path: Path) -> None:
    config = coordinator_of(written(tmp_path, f'[coordinator]\nera = "{era}"\n'))
    assert {key: getattr(config, key) for key in ERA_DEFAULTS[era]} == ERA_DEFAULTS[era]
    assert config == CoordinatorConfig(era)


def test_a_number_overrides_the_default_of_the_era_and_0_is_a_number(tmp_path: Path) -> None:
    text = '[coordinator]\nera = "2"\ngroup_initial_rebalance_delay_ms = 0\ngroup_max_session_timeout_ms = "era"\n'
    config = coordinator_of(written(tmp_path, text))
    assert (config.group_initial_rebalance_delay_ms, config.group_max_session_timeout_ms) == (0, 1_800_000)


@pytest.mark.parametrize(("given", "minutes"), [("", 24 * 60), ("offsets_retention_minutes = 5", 5)])
def test_a_job_beside_a_coordinator_takes_its_retention(given: str, minutes: int, tmp_path: Path) -> None:
    name = written(tmp_path, f'[job]\nera = "0.10"\n[coordinator]\nera = "0.10"\n{given}\n')
    arguments = ["run", "--source", "segments:log", "--tables", "tables", "--with-coordinator", "--conf", name]
    options = parser().parse_args(arguments)
    assert run_options(options, load_configuration(options.conf)).retention_ms == minutes * 60_000
