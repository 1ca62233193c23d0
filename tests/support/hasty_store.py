"""A store that acknowledges before its fsync, to see that those who look for that notice: takes --data, --port."""

from __future__ import annotations

import argparse
import os
import sys

os.environ["COLUMNAR_COMPILED"] = "no"  # before the first import: machine code cannot be patched

from columnar.config import StandaloneConfig
from columnar.standalone_process import run
from columnar.storage import server_log_files
from columnar.storage.rocks_store import RocksStore

if __name__ == "__main__":
    options = argparse.ArgumentParser()
    options.add_argument("--data")
    options.add_argument("--port", type=int)
    options.add_argument("--web-port", type=int)
    given = options.parse_args()
    RocksStore.sync = lambda _: None  # type: ignore[method-assign]
    server_log_files.force = lambda _: None  # type: ignore[assignment]
    sys.exit(run(StandaloneConfig(given.data, port=given.port, web_port=given.web_port), "WARNING"))
