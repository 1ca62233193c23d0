"""Accounts of people: registration, sign-in, sessions, links by mail, and what is kept of each.

Read ``tables`` first (rows and cells), then ``rows`` (the steps on one row that everything is made of), the pure
modules ``user_names``, ``settings`` and ``records``, and last ``directory``, ``sessions`` and ``signing_in``.
"""
