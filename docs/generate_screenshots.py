"""Writes docs/images/page/*.png, pictures of the pages of `grouplake dashboard`, from a real server and Chromium.

PYTHONPATH=tests/support python docs/generate_screenshots.py [--tables DIR] [NAME …]

The tables are those of `grouplake example --history DIR --until 2026-03-04T14:00:00Z`, written first without `--tables`. Pictures
of polls and of states of the job have tables of their own.
Tables and fonts are the same on every machine. A picture has one pixel per CSS pixel and at most 256 colours.
"""

import os
import subprocess
import sys
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from collections.abc import Collection, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest import mock

from browser_pages import DESKTOP, PHONE, View, launched, opened
from dashboards import Dashboard
from debian_packages import clock_from, debian_files_with_dependencies, library_path
from first_hour import first_hour_tables
from playwright.sync_api import Browser
from polled_shop import PolledShop
from shop_history import UNTIL

from pipelines.cli.dashboard_option import dashboard_of_job
from pipelines.examples.history import incidents
from pipelines.examples.history.history import write_history
from pipelines.examples.history.topics import MINUTE
from pipelines.runtime.configuration import load_configuration
from pipelines.runtime.progress import RecentProgress, no_progress

CLUSTER, POLLED_CLUSTER = "shop", "cloud"
IMAGES = Path(__file__).parent / "images" / "page"
#: A longer page is cut here.
HEIGHT_LIMIT = 2_000
#: A reader of docs loads several pictures at once.
BYTES_LIMIT = 150_000
_LOWEST_QUALITY = 85


@dataclass(frozen=True)
class Picture:
    """A picture: the name of its file, the path of its page below the cluster, the theme and the width of the window."""

    name: str
    path: str
    theme: str = "light"
    width: int = DESKTOP
    status: int = HTTPStatus.OK

    @property
    def file(self) -> str:
        return f"{self.name}.png"


#: Name → path below the cluster. Each page is pictured in both themes and on a phone.
SHOWN = {
    "overview": "",
    "groups": "groups",
    "group": "groups/billing",
    "topics": "topics",
    "topic": "topics/orders",
    "clients": "clients",
    "client": "clients/billing-1?span=24h",
    "offsets-topic": "offsets-topic",
    "alerts": "alerts",
    "changes": "changes?from=2026-03-04T08:00:00Z",
}
#: Pictures of the tutorial.
TUTORIAL = {
    "tutorial-storm": "groups/search-indexer?as_of=2026-03-04T06:00:00Z&span=3h",
    "tutorial-reset": "groups/recommendations?as_of=2026-03-03T14:00:00Z&span=6h&tab=resets",
    "tutorial-expiry": "groups/report-monthly?span=30h",
    "tutorial-transaction": "groups/ledger-export?tab=transactions",
}
#: Pictures of tables that polls of one group have made: name → group, and first and last poll in ms before the end.
POLLED = {
    "polls-stuck": ("billing", incidents.STUCK_AT - 30 * MINUTE, incidents.STUCK_AT + 30 * MINUTE),
    "polls-storm": ("search-indexer", incidents.STORM_AT - 20 * MINUTE, incidents.STORM_AT + 21 * MINUTE),
}
#: State of the job → path of the picture below the cluster of that name.
STATES = {"started": "groups/billing", "one": "", "stopped": "", "catching_up": "groups/billing", "many": ""}
#: After all batches of these tables, of which one expects the next one.
STATES_AT = datetime(2026, 11, 22, 12, 5, tzinfo=UTC)
OF_STATES = {name: Picture(f"state-{name.replace('_', '-')}", path) for name, path in STATES.items()}
WAITING = Picture("state-waiting", "", status=HTTPStatus.SERVICE_UNAVAILABLE)
#: What a job has said until then.
PROGRESS = "starting Spark"
OF_SHOP = (
    *(
        Picture(f"{name}{suffix}", path, theme, width)
        for name, path in SHOWN.items()
        for suffix, theme, width in (("", "light", DESKTOP), ("-dark", "dark", DESKTOP), ("-phone", "light", PHONE))
    ),
    *(Picture(name, path) for name, path in TUTORIAL.items()),
)
OF_POLLS = tuple(
    Picture(name, f"groups/{group}?as_of={UNTIL + timedelta(milliseconds=end, seconds=1):%Y-%m-%dT%H:%M:%SZ}&span=1h")
    for name, (group, _, end) in POLLED.items()
)
PICTURES = (*OF_SHOP, *OF_POLLS, WAITING, *OF_STATES.values())


def draw(browser: Browser, cluster: str, picture: Picture, folder: Path) -> Path:
    """Write a picture below `folder`; `cluster` is the URL of its cluster. Raises RuntimeError for a page that reports errors."""
    view = View(picture.theme, picture.width, reduced_motion=True)
    with opened(browser, view, f"{cluster}/{picture.path}", picture.status) as visit:
        height = visit.page.evaluate("document.documentElement.scrollHeight")
        visit.page.set_viewport_size({"width": picture.width, "height": min(height, HEIGHT_LIMIT)})
        visit.page.evaluate("document.fonts.ready")
        png = visit.page.screenshot(animations="disabled")
        if visit.errors:
            raise RuntimeError(f"{picture.path}: {visit.errors}")
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / picture.file
    file.write_bytes(_with_palette(png))
    return file


def _with_palette(png: bytes) -> bytes:
    """The picture with at most 256 colours, or as it is if they do not suffice."""
    files = debian_files_with_dependencies("pngquant")
    command = [str(files / "usr/bin/pngquant"), "--speed", "1", "--nofs", f"--quality={_LOWEST_QUALITY}-100", "-"]
    environment = {**os.environ, "LD_LIBRARY_PATH": library_path(files)}
    done = subprocess.run(command, input=png, capture_output=True, env=environment, timeout=120, check=False)
    # 99: the result would be worse than the lowest quality
    if done.returncode not in (0, 99):
        raise RuntimeError(f"pngquant failed with exit code {done.returncode}: {done.stderr.decode()}")
    return done.stdout or png


def main(arguments: Sequence[str]) -> None:
    parser = ArgumentParser(description=__doc__, formatter_class=RawDescriptionHelpFormatter)
    parser.add_argument("--tables", type=Path, help="folder with the tables (default: written first)")
    parser.add_argument("names", nargs="*", metavar="NAME", help="pictures (default: all)")
    options = parser.parse_args(arguments)
    with TemporaryDirectory(prefix="grouplake-pictures-") as scratch, launched() as browser:
        for cluster, tables, pictures in _tables(options.names, options.tables, Path(scratch)):
            with closing(Dashboard(f"{cluster}={tables}")) as server:
                server.wait_until_loaded()
                for picture in pictures:
                    _report(draw(browser, f"{server.url}/c/{cluster}", picture, IMAGES))
        if _wanted([WAITING], options.names):
            _draw_waiting(browser, str(Path(scratch) / "waiting"))
        if states := [name for name, picture in OF_STATES.items() if _wanted([picture], options.names)]:
            _draw_states(browser, states, Path(scratch))


def _draw_waiting(browser: Browser, tables: str) -> None:
    """Draw the page of a job that has not written a batch."""
    lines, job = list[str](), RecentProgress(no_progress)
    with dashboard_of_job("grouplake run", "127.0.0.1:0", tables, load_configuration(None), lines.append, job):
        job(PROGRESS)
        _report(draw(browser, f"{lines[0].removeprefix('dashboard: ')}c/waiting", WAITING, IMAGES))


def _draw_states(browser: Browser, states: Sequence[str], scratch: Path) -> None:
    tables = first_hour_tables(scratch, states)
    with mock.patch.dict(os.environ, clock_from(STATES_AT)), closing(Dashboard(*tables)) as server:
        server.wait_until_loaded()
        for name in states:
            _report(draw(browser, f"{server.url}/c/{name}", OF_STATES[name], IMAGES))


def _wanted(pictures: Sequence[Picture], names: Collection[str]) -> list[Picture]:
    """The pictures with one of the names; all of them without names."""
    return [picture for picture in pictures if not names or picture.name in names]


def _report(file: Path) -> None:
    print(f"{file.name}: {file.stat().st_size / 1000:.0f} kB")


def _tables(names: Collection[str], given: Path | None, scratch: Path) -> Iterator[tuple[str, Path, list[Picture]]]:
    """Each folder of tables that pictures need, with the name of its cluster and the pictures; `given` are those of the shop."""
    if of_shop := _wanted(OF_SHOP, names):
        if given is None:
            write_history(str(scratch / CLUSTER), UNTIL, print)
        yield CLUSTER, given or scratch / CLUSTER, of_shop
    for picture in _wanted(OF_POLLS, names):
        group, begin, end = POLLED[picture.name]
        PolledShop(str(scratch / picture.name), [group]).poll_during(begin, end)
        yield POLLED_CLUSTER, scratch / picture.name, [picture]


if __name__ == "__main__":
    main(sys.argv[1:])
