"""Errors of a request over a link, in a module that a process without links (a standalone) can import by itself."""


class NotSent(Exception):
    """Nothing of the request has left this process."""


class LinkBroke(Exception):
    """The link ended after the request was written: the peer may have carried it out."""
