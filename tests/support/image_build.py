"""A build of a Dockerfile without a container engine: each step in a root folder of its own, on Debian's packages."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from apt_downloads import download_package, is_apt_here

from pipelines.runtime.progress import Progress

#: The image that `new_base` makes; `minbase` has what the image of Docker Hub has.
BASE_IMAGE = "debian:bookworm-slim"
_SUITE, _MIRROR = "bookworm", "http://deb.debian.org/debian"
_TOOLS = ("unshare", "chroot", "mount", "wget")
_STEP_SECONDS = 1_800

#: Certificate authorities of the machine, which its package registries may need, and the variables that name them.
_AUTHORITIES = Path("/etc/ssl/certs/ca-certificates.crt")
_OWN_AUTHORITIES = Path("/usr/local/share/ca-certificates")
_PASSED = ("PIP_CERT", "PIP_INDEX_URL", "PIP_DEFAULT_TIMEOUT", "http_proxy", "https_proxy", "no_proxy")

#: Mounts what programs expect, and becomes the step. Arguments: root, user and group, folder of the volume /data for a container
#: or nothing, working folder, command.
_ENTER = """
set -eu
root=$1 user=$2 volume=$3 folder=$4
shift 4
mount --make-rprivate /
mount --bind "$root" "$root"
mount -t proc proc "$root/proc"
for device in null zero full random urandom; do
  touch "$root/dev/$device"
  mount --bind "/dev/$device" "$root/dev/$device"
done
if [ -n "$volume" ]; then
  mount -t tmpfs -o mode=1777 tmpfs "$root/tmp"
  mount --bind "$volume" "$root/data"
  mount -o remount,bind,ro "$root"
fi
exec chroot --userspec="$user" "$root" /bin/sh -c 'cd "$0" && exec "$@"' "$folder" "$@"
"""
#: Starts the loopback interface of a new network namespace: SIOCSIFFLAGS with IFF_UP and IFF_RUNNING.
_LOOPBACK = (
    "import fcntl, os, socket, struct, sys; "
    "fcntl.ioctl(socket.socket(), 0x8914, struct.pack('16sh', b'lo', 0x41)); os.execvp(sys.argv[1], sys.argv[1:])"
)


def new_base(folder: Path, progress: Progress | None = None) -> Path:
    """A root with Debian's minimal system. Skips the test where it cannot be made."""
    if os.geteuid() != 0 or not is_apt_here() or not all(shutil.which(tool) for tool in _TOOLS):
        pytest.skip("the build of a root needs root, apt, util-linux and wget")
    folder.mkdir()
    (package,) = download_package("debootstrap", folder, progress)
    subprocess.run(["dpkg-deb", "--extract", str(package), str(folder / "debootstrap")], check=True)
    root = folder / "root"
    command = [str(folder / "debootstrap/usr/sbin/debootstrap"), "--variant=minbase", _SUITE, str(root), _MIRROR]
    environment = {**os.environ, "DEBOOTSTRAP_DIR": str(folder / "debootstrap/usr/share/debootstrap")}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=_STEP_SECONDS, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return root


@dataclass
class Stage:
    """A root and the settings of the instructions so far."""

    root: Path
    environment: dict[str, str] = field(default_factory=dict)
    user: str = "0:0"
    folder: str = "/"
    entrypoint: list[str] = field(default_factory=list)

    def run(self, command: Sequence[str], volume: Path | None = None) -> subprocess.CompletedProcess[str]:
        """Run a command as the instructions say; with a volume as a container: read-only root, no network, `/data`."""
        variables = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", **self.environment}
        if volume is None:
            variables |= {name: os.environ[name] for name in _PASSED if name in os.environ}
        enter = ["sh", "-c", _ENTER, "sh", str(self.root), self.user, str(volume or ""), self.folder, *command]
        namespaces = ["unshare", "--mount", "--pid", "--fork", "--kill-child"]
        if volume is not None:
            namespaces.append("--net")
            enter = [sys.executable, "-c", _LOOPBACK, *enter]
        return subprocess.run(
            [*namespaces, *enter], env=variables, capture_output=True, text=True, timeout=_STEP_SECONDS, check=False
        )


def instructions(dockerfile: Path) -> Iterator[tuple[str, str]]:
    """Instructions and their arguments, without comments and continued lines."""
    lines = [line for line in dockerfile.read_text(encoding="utf-8").splitlines() if line.strip() and not line.startswith("#")]
    for line in re.sub(r"\\\n\s*", "", "\n".join(lines)).splitlines():
        name, _, arguments = line.partition(" ")
        yield name, arguments.strip()


def build(dockerfile: Path, context: Path, base: Path, folder: Path) -> Stage:
    """Run every instruction; return the last stage. `context` is the folder that COPY copies from."""
    stages: dict[str, Stage] = {}
    stage = Stage(base)
    for name, arguments in instructions(dockerfile):
        match name:
            case "FROM":
                image, _, alias = arguments.partition(" AS ")
                assert image == BASE_IMAGE, f"{image} is not {BASE_IMAGE}, which this build can make"
                stage = stages[alias] = Stage(_copied(base, folder / f"stage-{len(stages)}"))
            case "RUN":
                done = stage.run(["/bin/sh", "-c", arguments])
                assert done.returncode == 0, f"RUN {arguments}\n{done.stdout[-3000:]}{done.stderr[-3000:]}"
            case "COPY":
                _copy(stage, shlex.split(arguments), context, stages)
            case "ENV":
                stage.environment |= dict(word.split("=", 1) for word in shlex.split(arguments))
            case "USER":
                stage.user = arguments
            case "WORKDIR":
                stage.folder = arguments
                _inside(stage, arguments).mkdir(parents=True, exist_ok=True)
            case "ENTRYPOINT":
                stage.entrypoint = json.loads(arguments)
            case "ARG" | "LABEL" | "VOLUME" | "CMD":
                pass
            case _:
                raise AssertionError(f"unknown instruction {name}")
    return stage


def _copied(base: Path, root: Path) -> Path:
    subprocess.run(["cp", "-a", str(base), str(root)], check=True)
    # an engine adds the name of the container
    (root / "etc/hosts").write_text("127.0.0.1 localhost\n")
    if _AUTHORITIES.exists():
        (root / "etc/ssl/certs").mkdir(parents=True, exist_ok=True)
        shutil.copy(_AUTHORITIES, root / "etc/ssl/certs")
    if _OWN_AUTHORITIES.is_dir():
        shutil.copytree(_OWN_AUTHORITIES, root / "usr/local/share/ca-certificates", dirs_exist_ok=True)
    return root


def _copy(stage: Stage, words: list[str], context: Path, stages: dict[str, Stage]) -> None:
    source = context
    if words[0].startswith("--from="):
        source = stages[words.pop(0).removeprefix("--from=")].root
    *names, target = words
    destination = _inside(stage, target)
    if target.endswith("/") or target == "." or len(names) > 1:
        destination.mkdir(parents=True, exist_ok=True)
    for name in names:
        found = source / name.strip("/")
        # of a folder the content is copied
        subprocess.run(["cp", "-a", f"{found}/." if found.is_dir() else str(found), str(destination)], check=True)


def _inside(stage: Stage, path: str) -> Path:
    return stage.root / (Path(stage.folder) / path).relative_to("/")
