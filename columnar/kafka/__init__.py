"""Topics by the protocol of Kafka: the port, its messages, and groups of consumers.

Reading order: ``schemas`` and ``codec`` (bytes to values and back), ``group_state`` (events in, answers out).
"""
