"""The entry point of ``python -m wikka_port``, which is the command ``wikka``."""

from wikka_port.cli import main

main()
