"""``python -m tests.support.many_machines ceph|gluster|ext4 [FOLDER]``: bring it up, print the mounts, until Ctrl-C."""

from __future__ import annotations

import signal
import sys
import tempfile
import time
from pathlib import Path

from tests.support.many_machines import KINDS, missing


def main() -> None:
    if len(sys.argv) not in (2, 3) or sys.argv[1] not in KINDS:
        raise SystemExit(__doc__)
    kind = sys.argv[1]
    if lacking := missing(kind):
        raise SystemExit(f"{kind} needs {', '.join(lacking)}")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    begun_s = time.monotonic()
    place = sys.argv[2] if len(sys.argv) == 3 else None
    with tempfile.TemporaryDirectory(prefix="mm-", dir=place) as folder, KINDS[kind](Path(folder) / "fs") as shared:
        one, other = shared.mounts
        print(f"{kind} ready mounts={one},{other} seconds={time.monotonic() - begun_s:.1f}", flush=True)
        try:
            signal.pause()
        except KeyboardInterrupt:
            print()


if __name__ == "__main__":
    main()
