"""Download, compile and build what tests need, once per machine: `PYTHONPATH=tests/support tools/prepare.py [--slow]`.

The tests of this tree are compiled too. `--slow` adds what only tests marked `slow` need. Exit code 1 if a step fails three
times; its output is printed.
"""

import argparse
import subprocess
import sys
import traceback
from pathlib import Path

from first_use import prepare

#: The markers of pyproject.toml whose tests need preparations.
_MARKERS = {"spark", "debian", "deployment", "browser", "store", "broker"}
_ROOT = Path(__file__).parents[1]


def main() -> int:
    """Prepare this machine, and print one line for each thing that was made."""
    parser = argparse.ArgumentParser(description="Download, compile and build what tests need, once per machine.")
    parser.add_argument("--slow", action="store_true", help="also what only tests marked slow need")
    slow = parser.parse_args().slow
    try:
        prepare(_MARKERS | ({"slow"} if slow else set()))
    except Exception:
        traceback.print_exc()
        print("the machine could not be prepared for the tests; the step that failed is named above", file=sys.stderr)
        return 1
    _compile_tests()
    return 0


def _compile_tests() -> None:
    """Let pytest write the compiled files: in a new tree, every worker would compile all of them at the same time.

    A file that cannot be collected is reported by the run.
    """
    command = [sys.executable, "-m", "pytest", "--collect-only", "--quiet"]
    subprocess.run(command, cwd=_ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)


if __name__ == "__main__":
    sys.exit(main())
