"""Download, compile and build what tests need, once per machine: `PYTHONPATH=tests/support tools/prepare.py [--slow]`.

`--slow` adds what only tests marked `slow` need. Exit code 1 if a step fails three times; its output is printed.
"""

import argparse
import sys
import traceback

from first_use import prepare

#: The markers of pyproject.toml whose tests need preparations.
_MARKERS = {"spark", "debian", "deployment", "browser", "store", "broker"}


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
    return 0


if __name__ == "__main__":
    sys.exit(main())
