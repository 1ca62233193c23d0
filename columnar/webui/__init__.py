"""The status page, the metrics and the health of one server, over HTTP."""
