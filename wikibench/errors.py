"""The errors that a user of the benchmark can meet, grouped by who must act (pure).

Each exception carries fields and makes its one line of text from them.
"""

from __future__ import annotations

from .secrets import without_login

EXCERPT_CHARS = 120  # of an offending line: enough to find it, short enough for a terminal


class WikibenchError(Exception):
    """The root of all errors here; its text is one line fit for a terminal."""


class TraceError(WikibenchError):
    """The caller must repair the trace file (or pass --skip-bad-lines)."""

    def __init__(self, line_number: int, text: str, why: str) -> None:
        self.line_number = line_number
        self.text = text
        self.why = why
        shown = text if len(text) <= EXCERPT_CHARS else text[:EXCERPT_CHARS] + "…"
        super().__init__(f"trace line {line_number}: {why}: {shown!r}")


class TraceFileError(WikibenchError):
    """The caller's file cannot be read as a trace, or as page names."""

    def __init__(self, path: str, why: str) -> None:
        self.path = path
        self.why = why
        super().__init__(f"{path}: {why}")


class RequirementError(WikibenchError):
    """The caller wrote a --require that cannot be read."""

    def __init__(self, clause: str, why: str) -> None:
        self.clause = clause
        self.why = why
        super().__init__(f"requirement {clause!r}: {why}")


class UnsafeTargetError(WikibenchError):
    """The caller aimed a load at a machine that is not this one."""

    def __init__(self, host: str, addresses: tuple[str, ...]) -> None:
        self.host = host
        self.addresses = addresses
        where = f"{host} ({', '.join(addresses)})" if addresses else host
        super().__init__(
            f"{where} is not this machine: a replay is a load that can take a site down for its visitors, "
            "so only loopback is allowed by default; pass --allow-remote if the site is yours to load"
        )


class CrewError(WikibenchError):
    """The workers cannot begin: one ended, or does not take the load."""


class MissingPlotsError(WikibenchError):
    """The installation cannot draw a report."""

    def __init__(self) -> None:
        super().__init__("plots need the package matplotlib: pip install 'columnar[plots]', or leave --report out")


class SignInError(WikibenchError):
    """The wiki did not accept a name and password of the users' file."""

    def __init__(self, url: str, user: str, status: int) -> None:
        self.url = without_login(url)
        self.user = user
        self.status = status
        super().__init__(
            f"{self.url}: the wiki does not sign in user {user!r} (status {status}): look at the name and the password "
            "in the users' file, and whether the wiki wants more than these two"
        )


class ForeignPagesError(WikibenchError):
    """The caller's trace would overwrite texts that no replay wrote."""

    def __init__(self, url: str, first: str, count: int, looked: int) -> None:
        self.url = url
        self.first = first
        self.count = count
        self.checked = looked
        self.said = (
            f"the trace edits pages of {url} whose text no replay wrote: {count} of {looked} looked at, "
            f"the first is {first!r}"
        )
        super().__init__(
            f"{self.said}; pass --allow-edits if this wiki is yours to overwrite, or make a trace without edits"
        )


class TargetError(WikibenchError):
    """The target's address cannot be used, or nothing there answers as needed."""

    def __init__(self, url: str, why: str) -> None:
        self.url = without_login(url)
        self.why = why
        super().__init__(f"{self.url}: {why}")


class UnresolvedError(TargetError):
    """The name of the target cannot be resolved: its spelling or the resolver is at fault, not the address."""

    def __init__(self, url: str, host: str, why: str) -> None:
        self.host = host
        super().__init__(
            url, f"the name {host} cannot be resolved ({why}): look at its spelling and at the name server"
        )


class PlanError(WikibenchError):
    """The caller's options contradict each other or leave the replay without an end."""


class MapError(WikibenchError):
    """The caller's --map is no map that can be used."""

    def __init__(self, name: str, why: str) -> None:
        self.name = name
        self.why = why
        super().__init__(f"--map {name}: {why}")


class LimitError(WikibenchError):
    """The caller wrote a --fail-if that cannot be read."""

    def __init__(self, clause: str, why: str) -> None:
        self.clause = clause
        self.why = why
        super().__init__(f"limit {clause!r}: {why}")


class ReportError(WikibenchError):
    """The caller's file is no report, or does not fit the others."""

    def __init__(self, name: str, why: str) -> None:
        self.name = name
        self.why = why
        super().__init__(f"{name}: {why}")
