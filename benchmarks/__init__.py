"""Benchmarks of the store that come only with a checkout, beside ``columnar bench``: ``python -m benchmarks``.

Two endpoints in turn, open loop and YCSB (``compare_command``); how cost grows (``growth``); what more servers cost and
bring (``cluster_commands``); and the ETH experiment, which compares a trigger with an application that does the work
itself (``flows_command``).  The load comes from the generator of ``columnar.bench``.
"""
