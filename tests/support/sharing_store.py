"""A store whose fsyncs are those of the server's log, in small segments, for recordings."""

from __future__ import annotations

import argparse
import os
import sys

os.environ["COLUMNAR_COMPILED"] = "no"  # before the first import: machine code cannot be patched

from columnar.config import StandaloneConfig
from columnar.standalone_process import run
from columnar.storage import commit, server_log_files

if __name__ == "__main__":
    options = argparse.ArgumentParser()
    options.add_argument("--data")
    options.add_argument("--port", type=int)
    options.add_argument("--web-port", type=int)
    options.add_argument("--trigger-modules", default="")
    given = options.parse_args()
    commit.SHARED_FROM = 0  # type: ignore[misc]
    server_log_files.SEGMENT_BYTES = 64 * 1024  # type: ignore[misc]
    modules = tuple(given.trigger_modules.split(",")) if given.trigger_modules else ()
    config = StandaloneConfig(given.data, port=given.port, web_port=given.web_port, trigger_modules=modules)
    sys.exit(run(config, "WARNING"))
