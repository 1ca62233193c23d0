"""Errors of a request over a link.  A module of their own for processes without links: a standalone store."""


class NotSent(Exception):
    """Nothing of the request has left this process."""


class LinkBroke(Exception):
    """The link ended after the request was written: the peer may have carried it out."""
