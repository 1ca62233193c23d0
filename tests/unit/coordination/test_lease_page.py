"""The page of a lease's end: between processes, while it is written, and against the clock."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from columnar.coordination import lease_page
from columnar.coordination.lease_page import LeasePage, boot_ms


@pytest.fixture
def page() -> Iterator[LeasePage]:
    made = LeasePage.create()
    yield made
    made.close()


def test_a_new_page_holds_nothing(page: LeasePage) -> None:
    assert not page.is_valid()


def test_a_page_has_the_time_of_the_cluster(page: LeasePage) -> None:
    page.write_end(5_000)
    reader = LeasePage.open_inherited(os.dup(page.descriptor))
    assert reader.read_cluster_ms() == 0
    page.write_time_base(1_790_000_000_000)
    assert 0 <= reader.read_cluster_ms() - 1_790_000_000_000 - boot_ms() + 1_000 <= 1_000
    page.write_end(0)
    assert reader.read_end_ns() == 0
    assert reader.read_cluster_ms() > 1_790_000_000_000
    page._memory[16:17] = b"\xff"
    assert reader.read_cluster_ms() == 0, "it is being written"
    reader.close()


def test_a_page_holds_until_its_end_by_the_clock(page: LeasePage, monkeypatch: pytest.MonkeyPatch) -> None:
    page.write_end(5_000)
    for now_ns, holds in ((4_999_999_999, True), (5_000_000_000, False)):
        monkeypatch.setattr(lease_page.time, "clock_gettime_ns", lambda _clock, now_ns=now_ns: now_ns)
        assert page.is_valid() == holds
    monkeypatch.setattr(lease_page.time, "clock_gettime_ns", lambda _clock: 4_000)
    page.write_end(0)
    assert not page.is_valid()


def test_another_process_reads_what_is_written_later(page: LeasePage) -> None:
    reads = (
        "import sys; from columnar.coordination.lease_page import LeasePage\n"
        "page = LeasePage.open_inherited(int(sys.argv[1]))\n"
        "for line in sys.stdin: print(page.is_valid(), flush=True)\n"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", reads, str(page.descriptor)],
        pass_fds=[page.descriptor],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert child.stdin is not None
    assert child.stdout is not None
    with child:
        for end_ms, holds in ((boot_ms() + 600_000, "True"), (0, "False"), (boot_ms() + 600_000, "True")):
            page.write_end(end_ms)
            child.stdin.write("\n")
            child.stdin.flush()
            assert child.stdout.readline().strip() == holds


def test_a_page_that_is_half_written_holds_nothing(page: LeasePage) -> None:
    reader = LeasePage.open_inherited(page.descriptor)
    page.write_end(boot_ms() + 600_000)
    assert reader.is_valid()
    page._memory[:8] = b"\xff" * 8
    assert not reader.is_valid()


def test_a_reader_cannot_write(page: LeasePage) -> None:
    with pytest.raises(TypeError):
        LeasePage.open_inherited(page.descriptor).write_end(1)
