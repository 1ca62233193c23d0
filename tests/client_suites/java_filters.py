"""Write ``tests/golden/java_filters.txt`` anew: python -m tests.client_suites.java_filters [CACHE]."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.client_suites.java_tests import CACHE, prepare

GOLDEN = Path(__file__).parents[1] / "golden"


def main() -> None:
    cache = Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else CACHE
    command = ["java", "-cp", prepare(cache), "columnar.SerializedFilters", GOLDEN / "filter_strings.txt"]
    made = subprocess.run(command, check=True, capture_output=True)
    (GOLDEN / "java_filters.txt").write_bytes(made.stdout)


if __name__ == "__main__":
    main()
