"""Test suites of others against our server, over the wire.

    python -m tests.client_suites python [--cache FOLDER] [--servers N]    happybase and aiohappybase
    python -m tests.client_suites java [--cache FOLDER] [--servers N]      HBase's tests of its Thrift gateways

They are fetched when they are run, and kept in the cache.  The exit status is 0 when every test passed.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

from tests.client_suites import java_tests


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.client_suites", description="client suites over the wire")
    parser.add_argument("suites", choices=("python", "java"))
    parser.add_argument("--cache", type=Path)
    parser.add_argument("--servers", type=int, default=1, help="1: one process")
    given = parser.parse_args()
    servers = ["--servers", str(given.servers)]
    if given.suites == "python":
        cache = [] if given.cache is None else ["--cache", str(given.cache)]
        return subprocess.call([sys.executable, str(Path(__file__).with_name("run")), *servers, *cache])
    return 1 if java_tests.run((given.cache or java_tests.CACHE).resolve(), given.servers) else 0


if __name__ == "__main__":
    sys.exit(main())
