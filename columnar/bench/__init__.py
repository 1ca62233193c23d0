"""Measure any HBase Thrift 1 endpoint: ours, or Apache HBase's gateway.

``dataset`` and ``workloads`` define the requests; ``calls`` packs them beforehand in one of the ``protocols``;
``generator`` sends them and takes the times in processes of its own, over ``connections`` or ``tls_connections``;
``measuring`` decides when each endpoint is measured; ``report`` shows the results, with percentiles from ``figures``.
"""
