"""Queues by the protocol of Amazon SQS (AWS JSON 1.0), for its clients unchanged.

The values of the protocol are pure: ``errors``, ``fields``, ``queue_addresses``, ``queue_attributes``, ``move_tasks``,
``message_attributes``, ``message_origin``, ``sent_message``, ``received_message``.  ``store_queues`` has the store's
queues as the actions call them; ``message_actions``, ``queue_actions`` and ``move_actions`` are what each action does;
``endpoint`` makes actions of requests and bytes of answers.
"""
