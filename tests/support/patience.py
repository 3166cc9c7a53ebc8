"""How long tests wait for progress. The limits end tests that hang; they do not judge speed.

`$GROUPLAKE_TEST_PATIENCE` multiplies the patience: `tools/gate.py` sets it to repeat a failed test.
"""

import os

#: Factor of this run.
FACTOR = float(os.environ.get("GROUPLAKE_TEST_PATIENCE", "1"))

#: A wait fails when nothing has changed for this time.
PATIENCE_SECONDS = 120 * FACTOR

#: A wait fails after this time in any case: before `timeout` in pyproject.toml, so that the message of the wait is printed.
LIMIT_SECONDS = min(600 * FACTOR, 1_100)

#: Patience of assertions and actions in a browser.
BROWSER_SECONDS = 60 * FACTOR
