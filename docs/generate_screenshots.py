"""Writes docs/images/page/*.png, pictures of the pages of `grouplake dashboard`, from a real server and Chromium.

PYTHONPATH=tests/support python docs/generate_screenshots.py [NAME …]

The tables and the fonts are the same on every machine. A picture has one pixel per CSS pixel and at most 256 colours.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from browser_pages import DESKTOP, PHONE, View, launched, opened
from dashboards import dashboard
from debian_packages import debian_files_with_dependencies, library_path
from page_tables import write_page_tables
from playwright.sync_api import Browser

IMAGES = Path(__file__).parent / "images" / "page"
#: A longer page is cut here.
HEIGHT_LIMIT = 2_000
#: A reader of docs loads several pictures at once.
BYTES_LIMIT = 150_000
_LOWEST_QUALITY = 85


@dataclass(frozen=True)
class Picture:
    """A picture: the name of its file, the path of its page, the theme and the width of the window."""

    name: str
    path: str
    theme: str = "light"
    width: int = DESKTOP

    @property
    def file(self) -> str:
        return f"{self.name}.png"


PICTURES = (
    Picture("clusters", "/"),
    Picture("clusters-dark", "/", "dark"),
    Picture("clusters-phone", "/", width=PHONE),
)


def draw(browser: Browser, server: str, picture: Picture, folder: Path) -> Path:
    """Write a picture below `folder`. Raises RuntimeError for a page that reports errors."""
    with opened(browser, View(picture.theme, picture.width, reduced_motion=True), server + picture.path) as visit:
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


def main(names: Iterable[str]) -> None:
    wanted = set(names) or {picture.name for picture in PICTURES}
    with tempfile.TemporaryDirectory(prefix="grouplake-pictures-") as folder:
        tables = write_page_tables(Path(folder))
        with launched() as browser, dashboard(tables) as server:
            for picture in PICTURES:
                if picture.name in wanted:
                    file = draw(browser, server.url, picture, IMAGES)
                    print(f"{file.name}: {file.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main(sys.argv[1:])
