"""Measure any HBase Thrift 1 endpoint: ours, or Apache HBase's gateway, or both in turn.

``dataset``, ``workloads`` and ``ycsb`` (with ``zipf``) define the requests, made of ``sessions``; ``calls``
packs them beforehand in one of the ``protocols``; ``generator`` sends them and takes the times in processes of its
own, ``open_loop`` too, as ``arrivals`` say, over ``connections`` or ``tls_connections``; ``measuring`` decides
which endpoint is measured when; ``report`` and ``open_report`` show it, with percentiles from ``latencies``.
"""
