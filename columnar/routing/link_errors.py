"""What may become of an ask over a link, beside its answer.  Apart, for who has no links: one process."""


class NotSent(Exception):
    """Nothing of the ask has left this process."""


class LinkBroke(Exception):
    """The link ended after the ask was written: the peer may have carried it out."""
