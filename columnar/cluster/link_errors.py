"""Errors of an ask over a link.  They stand apart for who has no links: a store of one process."""


class NotSent(Exception):
    """Nothing of the ask has left this process."""


class LinkBroke(Exception):
    """The link ended after the ask was written: the peer may have carried it out."""
