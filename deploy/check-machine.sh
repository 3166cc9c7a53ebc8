#!/usr/bin/env bash
# Says in one line what a machine lacks for `make setup`. Argument: the Python to use.
set -eu
python=${1:-python3}
if ! command -v "$python" >/dev/null; then
  echo "grouplake needs Python 3.11 or newer, and there is no $python: install it, or name one with PYTHON=" >&2
  exit 2
fi
if ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
  echo "grouplake needs Python 3.11 or newer, and $python is $("$python" -V 2>&1): name another with PYTHON=" >&2
  exit 2
fi
java=java
[ -n "${JAVA_HOME:-}" ] && java=$JAVA_HOME/bin/java
if ! command -v "$java" >/dev/null; then
  echo "grouplake needs Java 17 or newer for Spark, and there is none: install a JRE, or set JAVA_HOME" >&2
  exit 2
fi
version=$("$java" -version 2>&1 | sed -n '1s/.*version "\([0-9]*\).*/\1/p')
if [ "${version:-0}" -lt 17 ]; then
  echo "grouplake needs Java 17 or newer for Spark, and $java is version ${version:-unknown}: set JAVA_HOME" >&2
  exit 2
fi
