"""``python -m benchmarks``: the commands by name."""

from __future__ import annotations

import click

from benchmarks.cluster_commands import forwarding, scale
from benchmarks.compare_command import compare
from benchmarks.flows_command import flows
from benchmarks.growth import growth


@click.group(
    commands=[compare, growth, forwarding, scale, flows], context_settings={"help_option_names": ["-h", "--help"]}
)
def benchmarks() -> None:
    """Measure stores, and HBase beside them; see docs/performance.md.

    \b
      python -m benchmarks compare 127.0.0.1:9090 127.0.0.1:9191
      python -m benchmarks compare 127.0.0.1:9090 -w ycsb --open 0.5
      python -m benchmarks compare tls://127.0.0.1:9092 127.0.0.1:9090 --tls-ca ca.crt
      python -m benchmarks growth 127.0.0.1:9090
      python -m benchmarks forwarding
    """


if __name__ == "__main__":
    benchmarks(prog_name="python -m benchmarks")
