"""Chromium for Playwright: the one in PATH, or Debian's, unpacked into the cache folder with the libraries that it needs."""

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from apt_downloads import is_apt_here
from debian_packages import debian_files, debian_files_with_dependencies, library_path

from pipelines.runtime.cache.folder import cache_root
from pipelines.runtime.progress import Progress

_NAMES = ("chromium", "chromium-browser", "google-chrome")
_FONTS = "fonts-dejavu-core"
#: Every machine draws text with the same fonts, so that widths of texts and pictures do not depend on it.
_FONT_CONFIGURATION = """<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "urn:fontconfig:fonts.dtd">
<fontconfig>
  <dir>{fonts}</dir>
  <cachedir>{cache}</cachedir>
  <alias><family>serif</family><prefer><family>DejaVu Serif</family></prefer></alias>
  <alias><family>sans-serif</family><prefer><family>DejaVu Sans</family></prefer></alias>
  <alias><family>system-ui</family><prefer><family>DejaVu Sans</family></prefer></alias>
  <alias><family>monospace</family><prefer><family>DejaVu Sans Mono</family></prefer></alias>
</fontconfig>
"""


@dataclass(frozen=True)
class Chromium:
    """The program, and the variables that its environment needs besides those of this process."""

    program: Path
    environment: Mapping[str, str]


def chromium(progress: Progress | None = None) -> Chromium:
    """Chromium with the fonts of `fonts-dejavu-core`, where apt can provide them."""
    fonts = {"FONTCONFIG_FILE": str(_font_configuration(progress))} if is_apt_here() else {}
    for name in _NAMES:
        if found := shutil.which(name):
            return Chromium(Path(found), fonts)
    files = debian_files_with_dependencies("chromium", progress)
    return Chromium(files / "usr/lib/chromium/chromium", {**fonts, "LD_LIBRARY_PATH": library_path(files)})


def _font_configuration(progress: Progress | None) -> Path:
    fonts = debian_files(_FONTS, progress) / "usr/share/fonts/truetype/dejavu"
    folder = cache_root() / "debian"
    text = _FONT_CONFIGURATION.format(fonts=fonts, cache=folder / "fontconfig-cache")
    file = folder / "fonts.conf"
    if not file.exists() or file.read_text() != text:
        file.write_text(text)
    return file
