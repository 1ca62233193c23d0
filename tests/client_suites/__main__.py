"""Test suites of others against our server, over the wire.

    python -m tests.client_suites python [--cache FOLDER] [--servers N | --nodes N]    happybase and aiohappybase
    python -m tests.client_suites java [--cache FOLDER] [--servers N | --nodes N]      HBase's tests of its gateways

``--nodes`` starts nodes of a cluster on this machine, which need an installed etcd.

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
    store = parser.add_mutually_exclusive_group()
    store.add_argument("--servers", type=int, default=1, help="1: one process")
    store.add_argument("--nodes", type=int, default=0, help="nodes over an etcd, with one server each")
    given = parser.parse_args()
    servers = ["--nodes", str(given.nodes)] if given.nodes else ["--servers", str(given.servers)]
    if given.suites == "python":
        cache = [] if given.cache is None else ["--cache", str(given.cache)]
        return subprocess.call([sys.executable, str(Path(__file__).with_name("run")), *servers, *cache])
    return 1 if java_tests.run((given.cache or java_tests.CACHE).resolve(), given.servers, given.nodes) else 0


if __name__ == "__main__":
    sys.exit(main())
