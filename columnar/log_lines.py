"""Log lines of a process that serves: on stderr, one line each."""

from __future__ import annotations

import logging

from columnar.log_rate import ClientLineRate


class OneLine(logging.Formatter):
    """Time, level, who, what: one line each, a traceback within it."""

    def __init__(self, process: str = "") -> None:
        """``process``: its name, where several write to one stderr."""
        super().__init__(f"%(asctime)s %(levelname)s {process and process + ' '}%(name)s: %(message)s")

    def format(self, record: logging.LogRecord) -> str:
        return " | ".join(line for line in super().format(record).splitlines() if line)


def log_to_stderr(level: str, process: str = "") -> None:
    handler = logging.StreamHandler()
    handler.setFormatter(OneLine(process))
    handler.addFilter(ClientLineRate())
    logging.basicConfig(level=level, handlers=[handler])
