#!/usr/bin/env bash
# Runs the tests that the native libraries registered with CTest, if any.
set -euo pipefail
build=build/Release
if [ ! -f "$build/CTestTestfile.cmake" ]; then
  echo "native tests: none registered"
  exit 0
fi
log=$(mktemp)
trap 'rm -f "$log"' EXIT
if ctest --test-dir "$build" --output-on-failure >"$log" 2>&1; then
  # CTest exits 0 when it found nothing to run.
  summary=$(grep 'tests passed' "$log" || echo "none registered")
  echo "native tests: $summary"
else
  cat "$log"
  exit 1
fi
