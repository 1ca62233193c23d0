"""``python -m wikka_port`` is the command ``wikka``."""

from wikka_port.cli import main

main()
