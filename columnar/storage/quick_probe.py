"""The check of a shared folder at the start of each node: its file system, and the calls that a node needs.

A single mount shows no stale cache.  So a file system that nobody has measured with this store is refused until a probe
between two mounts has passed in the folder (``probe_record``).
"""

from __future__ import annotations

import secrets
import threading
from contextlib import closing
from shlex import quote
from typing import Final

from columnar.errors import HostError
from columnar.storage.durable_files import make_private
from columnar.storage.file_systems import name_of
from columnar.storage.probe_mount import MountOperations, MountStalls
from columnar.storage.probe_record import PROBED, read_passed
from columnar.storage.probe_root import (
    Finding,
    Pair,
    check_contents,
    check_links,
    check_locks,
    check_names,
    check_rename,
    file_system_of,
    run_checks,
)

QUICK_S: Final = 30.0  # of the whole quick probe: it waits as long for a mount whose server changes over
QUICK_CHECKS: Final = (check_names, check_contents, check_rename, check_links, check_locks)
UNPROBED: Final = "--folder-unprobed"  # the flag of a node that starts without the quick probe


class UnsuitableFolder(HostError):
    """A cluster would lose acknowledged writes in the folder, or cannot use it at all."""

    def __init__(self, folder: str, faults: list[str]) -> None:
        super().__init__(
            f"the nodes of a cluster cannot share the data folder {folder}: {'; '.join(faults)}; "
            f"'columnar probe-root' shows more, {UNPROBED} starts all the same"
        )
        self.faults = faults


class UnprovedFolder(HostError):
    """The folder's file system may answer from old caches, and no probe between two mounts has passed in the folder."""

    def __init__(self, folder: str, kind: str) -> None:
        super().__init__(
            f"the data folder {folder} is on {name_of(kind)}, which nobody has measured with this store, and no probe "
            "between two machines has passed there. A file system that answers from old caches loses acknowledged "
            f"writes. Run 'columnar probe-root {quote(folder)} --listen' on this machine, and on another one the line "
            f"that it prints; once its last line is 'suitable', start the node again. {UNPROBED} starts it unproved"
        )
        self.kind = kind


def probe_quickly(data: str) -> tuple[str, ...]:
    """Check the folder of a node at its start: the type and the options of its mount, and the calls a node needs.

    Makes the folder if it is missing.  Returns remarks for the log.  Blocks for some 30 fsyncs, QUICK_S at most.
    Raises HostError, UnsuitableFolder if the nodes of a cluster cannot share the folder, and UnprovedFolder.
    """
    answers: list[list[Finding] | Exception] = []
    thread = threading.Thread(target=_quick_findings, args=(data, answers), name="quick probe", daemon=True)
    thread.start()  # the thread of a folder that does not answer ends with the process
    thread.join(QUICK_S)
    if not answers:
        raise MountStalls(data, QUICK_S)
    found = answers[0]
    if isinstance(found, OSError):
        raise HostError(f"cannot use the data folder {data}: {found}; repair it or choose another with --data")
    if isinstance(found, Exception):
        raise found
    return tuple(one.text for one in found if one.outcome == "note")


def _quick_findings(data: str, answers: list[list[Finding] | Exception]) -> None:
    """Append the findings, or the exception that ended the probe.  Runs in its own thread."""
    try:
        answers.append(_findings(data))
    except Exception as error:  # noqa: BLE001 - the thread that waits raises it
        answers.append(error)


def _findings(data: str) -> list[Finding]:
    make_private(data, {PROBED})
    token = secrets.token_hex(8)
    with closing(MountOperations(data, token)) as one, closing(MountOperations(data, token)) as other:
        found = list(file_system_of(one))
        if all(finding.outcome != "fault" for finding in found):
            one.run_operation("make")
            found += run_checks(Pair(one, other, 1), QUICK_CHECKS)
        faults = [f"{finding.name}: {finding.text}" for finding in found if finding.outcome == "fault"]
        if faults:
            raise UnsuitableFolder(data, faults)
        verdict = one.run_operation("verdict")
    if verdict["needs_proof"] and verdict["kind"] not in read_passed(data):
        raise UnprovedFolder(data, verdict["kind"])
    return found
