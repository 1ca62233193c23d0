"""Measure any HBase Thrift 1 endpoint: ours, or Apache HBase's gateway, or both in turn.

``dataset``, ``workloads`` and ``ycsb`` (with ``zipf``) say what is asked, made of ``sessions``; ``calls``
packs it beforehand in one of the ``protocols``; ``generator`` asks and takes the times in processes of its
own, ``open_loop`` too, as ``arrivals`` say, over ``connections`` or ``tls_connections``; ``measuring`` decides
who is asked when; ``report`` and ``open_report`` show it, with percentiles from ``latencies``.
"""
