"""Every bound of the benchmark, with unit and reason (pure)."""

from __future__ import annotations

from typing import Final

OPEN_REQUESTS: Final = 512
"""Requests in the air at once.  More would measure the kernel's accept queue and this
process's descriptors, not the wiki.  When it is reached the next request waits, and
its wait counts in its response time; it is never dropped."""

MOST_WORKERS: Final = 256
"""Of one replay; the controller would need more than one core for more."""

CLOCK_MS: Final = 5.0
"""When a worker's clock may be further than this from the controller's, its requests start at other moments than
planned, and the run is not valid."""

TIMEOUT_S: Final = 20.0
"""From the actual send to the last byte.  What the original WikiBench used; a visitor is long gone by then."""

DRAIN_S: Final = 60.0
"""After the last intended start, how long answers are waited for.  What is unsent or
unanswered by then is counted as failed, with the latency it has reached."""

INTERRUPT_GRACE_S: Final = 2.0
"""After Ctrl-C, how long requests in the air may still finish."""

REDIRECTS: Final = 5
"""Hops of one page view before it counts as broken: browsers stop at 20, wikis never need 3."""

BODY_BYTES: Final = 64 * 1024 * 1024
"""Of one answer; more is a broken answer, and would otherwise be held in memory."""

INTERVALS: Final = 600
"""Points of the latency-over-time plot: a histogram each, and no screen shows more."""

DASHBOARD_CLIENTS: Final = 20
"""Browsers that follow a running replay: each gets 10 KB a second from the controller's process."""

REQUEST_LINES: Final = 10_000_000
"""Lines of a file of ``replay --requests``: some 300 MB packed.  Later requests are counted, and left out."""

FAILURES_KEPT: Final = 50
"""Failed requests shown one by one in the report; all are counted."""

BAD_LINES_KEPT: Final = 20
"""Unreadable trace lines shown one by one; all are counted."""

PATHS_KEPT: Final = 65_536
"""Addresses of the trace whose path is remembered: making one takes 6 us of a view's 30, and most come again."""

MAP_BYTES: Final = 256 * 1024
"""Of the file of a map."""

MOST_USERS: Final = 1_000
"""Users that are signed in before a load: each takes two requests, one after the other."""

LINK_NAMES: Final = 500
"""Page names of the trace that edits link to."""

NAMES_SOUGHT: Final = 20_000
"""Requests at the beginning of the trace among which these names are sought: a replay begins without reading it all."""

TITLES_BYTES: Final = 512 * 1024 * 1024
"""Of the list of titles: the English Wikipedia's is about 350 MB."""

OWN_LATENESS_WARNING_MS: Final = 10.0
"""When the generator's own lateness (p99) is over this, the report says that it, not the wiki, may be the limit."""

OTHERS_CPU: Final = 0.2
"""Share of the machine that other programs than generator and watched processes may take without a warning."""

ROLE_LIMIT_SHARE: Final = 0.9
"""Of one core: a watched process above it has no more to give, and the report says that its role is at its limit."""

LATE_MS: Final = 100.0
"""When the generator's own lateness (p99) is over this, the replay is not valid: it did not offer what was planned.
Below it the response times hold the lateness, and the wiki only looks slower than it is."""

MAX_EDIT_CHECKS: Final = 50
"""Pages whose edit form is looked at before a replay that may not overwrite others' texts."""

EDIT_CHECK_TIMEOUT_S: Final = 10.0
"""For all of these together."""

FORM_BYTES: Final = 4 * 1024 * 1024
"""Of an edit form that is looked at: texts of 2 MB, escaped, and the page around them."""

CPU_WARNING_SHARE: Final = 0.8
"""Of one core: a generator above it cannot be believed to send on time."""

CPU_LIMIT_SHARE: Final = 0.95
"""A generator that takes so much of a core was the limit itself, and the replay is not valid."""

CPU_JUDGED_S: Final = 2.0
"""The shortest replay whose share of a core is judged: first connections and imports are most of a shorter one's."""

HOPELESS_LATENESS_S: Final = 5.0
"""A try of the search is ended when a request could only be sent this late: the backlog will not go down again."""
