"""``python -m columnar``: the same as the command ``columnar``."""

from columnar.cli import main

main(prog_name="columnar")
