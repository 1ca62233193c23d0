"""``--rewrite`` records the answers of the scenarios anew; what was not run is said at the end.

In the test's own process the sources run, so that a test can put something in a method's place.  The
stores, wikis and workers that tests start as processes run compiled, as at a user's.

Bytecode is cached, also where PYTHONDONTWRITEBYTECODE is set: tests start some hundred processes, and without a cache
each of them compiles every source that it imports, 0.3 s for a store.
"""

from __future__ import annotations

import gc
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from time import monotonic
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, settings

# The same examples each time, and none is too slow: a loaded machine is no fault of the code.
settings.register_profile("always", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("always")

_BEGAN_S: Final = monotonic()

sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
os.environ["COLUMNAR_CONFIG"] = os.environ["WIKKA_CONFIG"] = os.devnull  # whatever settings this machine's user has
_asked = os.environ.get("COLUMNAR_COMPILED")
os.environ["COLUMNAR_COMPILED"] = "no"
import columnar  # noqa: E402, F401 - now, while the sources are asked for
from columnar.runtime.faults import FAULTS  # noqa: E402
from tests.support.deep import SHARES  # noqa: E402

if _asked is None:
    del os.environ["COLUMNAR_COMPILED"]


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """The tests and all that they import are no garbage: no garbage collection looks at them, a tenth of the time.

    Nor does one run meanwhile, a sixth of the time until the first test, in each process.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.collect()
        gc.freeze()


LOG_LINES: Final = 60  # of a store's log, beside a failure
OVERRUN_S: Final = 60.0  # that the last tests of --within may take more


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--rewrite", action="store_true", help="record the answers of tests/scenarios anew")
    parser.addoption("--within", type=float, metavar="SECONDS", help="tests that have not begun by then are not run")


def pytest_runtest_setup(item: pytest.Item) -> None:
    within = item.config.getoption("--within")
    if within is None:
        return
    left_s = _BEGAN_S + within - monotonic()
    if left_s < 0:
        pytest.skip(f"{within:g} s are over")
    lasts = item.get_closest_marker("lasts")
    if lasts is not None and lasts.args[0] > left_s + OVERRUN_S:
        pytest.skip(f"it takes {lasts.args[0]:g} s, and {left_s:.0f} s are left")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "lasts(seconds): it takes minutes, so it is not begun where time is short")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Any:
    """A failure that does not come again is explained by the logs of its stores, or not at all."""
    report: Any = yield
    if report.failed:
        for name, value in getattr(item, "funcargs", {}).items():
            for log in logs_of(value):
                lines = log.read_text(errors="replace").splitlines()[-LOG_LINES:]
                report.sections.append((f"the last lines of {log.name}, of {name}", "\n".join(lines)))
    return report


def logs_of(fixture: object) -> list[Path]:
    """Return the log files of a store, or of each node of a cluster."""
    nodes = getattr(fixture, "nodes", ())  # of a plan it is a number, of a parser of Markdown a method
    logs = [getattr(one, "log", None) for one in [fixture, *(nodes if isinstance(nodes, list | tuple) else ())]]
    return [log for log in logs if isinstance(log, Path) and log.exists()]


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: object) -> None:
    """Called in the process that started the workers; only a worker has collected the tests."""
    SHARES.update(getattr(node, "workeroutput", {}).get("shares", {}))


def pytest_sessionfinish(session: pytest.Session) -> None:
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["shares"] = SHARES


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """A skip is easily overlooked: this is not.  Here, because with several processes only this file is asked."""
    if SHARES:
        terminalreporter.write_sep("-", "make test-deep runs all of these")
        terminalreporter.write_line("; ".join(f"{what}: {share}" for what, share in sorted(SHARES.items())))
    skipped = terminalreporter.stats.get("skipped", [])
    reasons = Counter(str(report.longrepr[2]).removeprefix("Skipped: ") for report in skipped if report.longrepr)
    for reason, count in sorted(reasons.items()):
        terminalreporter.write_sep("!", f"{count} NOT RUN: {reason}", yellow=True, bold=True)


@pytest.fixture(autouse=True)
def _in_english() -> Iterator[None]:
    """A wiki in another language leaves the process, and the thread of its requests, as they were."""
    yield
    if "wikka_port.texts" in sys.modules:
        from wikka_port.texts import speak, speak_as_wiki
        from wikka_port.texts.catalogue import ENGLISH

        speak(None)
        speak_as_wiki(ENGLISH)


@pytest.fixture
def expected_faults() -> Iterator[Callable[[], dict[str, int]]]:
    """The test has unexpected exceptions met on purpose; call it for how many there were by now, by loop."""
    FAULTS.forget()
    yield lambda: dict(FAULTS.counts())
    FAULTS.forget()


@pytest.fixture(autouse=True)
def _no_faults(request: pytest.FixtureRequest) -> Iterator[None]:
    """A loop that met an exception goes on, so that nothing else of a test may notice it."""
    before = FAULTS.counts()
    yield
    if "expected_faults" not in request.fixturenames:
        assert FAULTS.counts() == before, f"unexpected exceptions were met: {FAULTS.recent()}; see the log above"
