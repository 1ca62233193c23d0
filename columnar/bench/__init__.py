"""Measure any HBase Thrift 1 endpoint: ours, or Apache HBase's gateway, or both in turn.

``dataset`` and ``workloads`` say what is asked, ``calls`` packs it beforehand, ``generator`` asks and
takes the times in processes of its own, ``measuring`` decides who is asked when, ``report`` shows it.
"""
