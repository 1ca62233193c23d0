"""Antispam: what is judged before an edit, a comment or a suggestion is saved, and what waits for an administrator.

``judging`` decides on one submission, ``additions`` finds what it adds, ``policy`` has the site's settings.
"""
