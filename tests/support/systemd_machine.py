"""A machine on which every unit of `deploy/systemd` is installed as docs/deploy.md describes, run by a real systemd."""

from pathlib import Path

from secured_dashboards import TEAM, Access
from systemd_namespace import SystemdNamespace
from systemd_units import FOLDER, example_files, unit_files

from pipelines.examples.private.kafka.ports import PortReservation

COORDINATOR, JOB, ALERTS = "grouplake-coordinator.service", "grouplake-job@east.service", "grouplake-alerts@east.service"
DASHBOARD, RUN, TIMER = "grouplake-dashboard.service", "grouplake-run@east.service", "grouplake-run@east.timer"
TABLES = "/var/lib/grouplake/east"
COMMAND = "/opt/grouplake/bin/grouplake"


class Machine:
    """The machine, with files of configuration for the log of its own coordinator or for a broker without authentication.

    `units` are additional units and drop-ins by path, `rules` the file of alert rules.
    """

    def __init__(self, folder: Path, rules: str, *, bootstrap: str | None = None, units: dict[str, str] | None = None) -> None:
        (folder / "tls").mkdir()
        self.access = Access(folder / "tls")
        self.ports = [PortReservation() for _ in range(3)]
        coordinator, admin, dashboard = (each.port for each in self.ports)
        self.coordinator, self.dashboard = f"127.0.0.1:{coordinator}", f"https://127.0.0.1:{dashboard}"
        examples = example_files()
        if bootstrap is None:
            source, job_conf = "segments:/var/lib/grouplake-coordinator", examples["east.toml"]
        else:
            source, job_conf = f"kafka://{bootstrap}/__consumer_offsets", examples["east.toml"].partition("[kafka]")[0]
        # the role of a user in the file of credentials
        dashboard_conf = f'{examples["dashboard.toml"]}[dashboard.roles]\n{TEAM} = ".*"\n'
        secrets = {
            "east/username": "reader\n",
            "east/password": "hunter2\n",
            "alerts/password": "hunter2\n",
            "dashboard/users": self.access.file.read_text(),
        }
        etc = {
            **examples,
            "east.env": f"SOURCE={source}\n",
            "east.toml": job_conf,
            "coordinator.env": f"LISTEN={self.coordinator}\n",
            "coordinator.toml": examples["coordinator.toml"].replace("9404", str(admin)),
            "dashboard.toml": dashboard_conf.replace("0.0.0.0:8443", f"127.0.0.1:{dashboard}"),
            "alerts.toml": rules,
            "tls/tls.crt": self.access.certificate.read_text(),
            "tls/tls.key": self.access.key.read_text(),
            **{f"secrets/{name}": text for name, text in secrets.items()},
        }
        users = (FOLDER / "grouplake.sysusers").read_text()
        files = {"sysusers.d/grouplake.conf": users, **{f"grouplake/{name}": text for name, text in etc.items()}}
        (folder / "systemd").mkdir()
        self.systemd = SystemdNamespace(folder / "systemd", {**unit_files(), **(units or {})}, files)

    def prepare(self) -> None:
        """Create the user, protect the secrets, and fill the cache with what is downloaded on a machine of a user."""
        self.systemd.run("systemd-sysusers", check=True)
        self.systemd.run("chmod", "-R", "go=", "/etc/grouplake/secrets", check=True)
        self.systemd.run("chgrp", "-R", "grouplake-tls", "/etc/grouplake/tls", check=True)
        self.systemd.run("chmod", "-R", "u=rwX,g=rX,o=", "/etc/grouplake/tls", check=True)
        self.systemd.run("cp", "-a", "/run/cache", "/var/cache/grouplake", check=True)

    def close(self) -> None:
        """End everything."""
        self.systemd.close()
        for port in self.ports:
            port.release()

    def start(self, unit: str) -> None:
        """Start a unit; a service of `Type=notify` is ready then, and a oneshot done."""
        started = self.systemd.run("systemctl", "start", unit)
        assert started.returncode == 0, f"{unit}: {started.stderr}\n{self.systemd.output(unit)}"

    def kill(self, unit: str) -> str:
        """Kill the main process of a unit with SIGKILL; return its process id."""
        pid = self.systemd.property(unit, "MainPID")
        self.systemd.run("kill", "-9", pid, check=True)
        return pid

    def query(self, sql: str) -> list[str]:
        """Lines of a query on the tables, in CSV without the header; none while there are no tables."""
        return self.systemd.run(COMMAND, "sql", "--tables", TABLES, "--format", "csv", sql).stdout.splitlines()[1:]
