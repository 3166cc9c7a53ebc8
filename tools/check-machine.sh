#!/usr/bin/env bash
# Checks that the machine has Python and Java for `make setup`; prints one line if not. Argument: the Python to use.
set -eu
python=${1:-python3}
if ! command -v "$python" >/dev/null; then
  echo "grouplake needs Python 3.11 or newer, but $python was not found: install it, or use another with PYTHON=…" >&2
  exit 2
fi
if ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
  echo "grouplake needs Python 3.11 or newer, but $python is $("$python" -V 2>&1): use another with PYTHON=…" >&2
  exit 2
fi
java=java
[ -n "${JAVA_HOME:-}" ] && java=$JAVA_HOME/bin/java
if ! command -v "$java" >/dev/null; then
  echo "grouplake needs Java 17 or newer for Spark, but $java was not found: install a Java runtime, or set JAVA_HOME" >&2
  exit 2
fi
version=$("$java" -version 2>&1 | sed -n '1s/.*version "\([0-9]*\).*/\1/p')
if [ "${version:-0}" -lt 17 ]; then
  echo "grouplake needs Java 17 or newer for Spark, but $java is version ${version:-unknown}: set JAVA_HOME" >&2
  exit 2
fi
