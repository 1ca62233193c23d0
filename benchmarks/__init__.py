"""Benchmarks of the store that a checkout has beside those of ``columnar bench``: ``python -m benchmarks``.

Two endpoints in turn, open loop and YCSB (``compare_command``); how cost grows (``growth``); what more servers cost and
bring (``cluster_commands``); and the ETH experiment, a trigger beside doing it oneself (``flows_command``).  The load
comes from the generator of ``columnar.bench``.
"""
