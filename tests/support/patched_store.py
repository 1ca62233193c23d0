"""A store's process that a test patches: import this module before any other of Columnar, patch, then ``serve``."""

from __future__ import annotations

import argparse
import os
import sys
from typing import NoReturn

os.environ["COLUMNAR_COMPILED"] = "no"  # before the first import: machine code cannot be patched

from columnar.config import StandaloneConfig
from columnar.roles.store_process import run
from columnar.runtime.log_settings import LogSettings


def serve() -> NoReturn:
    """Serve in this process as ``columnar standalone`` with --data, --port, --web-port and --trigger-modules."""
    options = argparse.ArgumentParser()
    options.add_argument("--data")
    options.add_argument("--port", type=int)
    options.add_argument("--web-port", type=int)
    options.add_argument("--trigger-modules", default="")
    given = options.parse_args()
    modules = tuple(given.trigger_modules.split(",")) if given.trigger_modules else ()
    config = StandaloneConfig(given.data, port=given.port, web_port=given.web_port, trigger_modules=modules)
    sys.exit(run(config, LogSettings("WARNING")))
