"""Accounts of people: registration, sign-in, sessions, links by mail, settings, and an audit.

Read ``tables`` first (rows and cells), then ``rows`` (the atomic steps on one row that all else uses), the pure
modules ``user_names``, ``settings`` and ``records``, and last ``directory``, ``sessions`` and ``signing_in``.
"""
