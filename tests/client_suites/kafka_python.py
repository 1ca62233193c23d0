"""``python -m tests.client_suites.kafka_python``: kafka-python's own integration tests against the Kafka port.

pip fetches the package's sources, with the tests in them, when they are run; nothing of them is kept in the repository.
The module ``test.service``, which starts brokers and is in no package, is replaced by one that has an address.

What fails needs what the port does not have, and is left out by name: see ``WITHOUT``.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Final

from tests.support.cluster_process import ClusterProcess

PACKAGE: Final = "kafka-python==3.0.12"
VERSION: Final = "2.3.0"  # of Kafka, that the tests are told
FILES: Final = [f"test/integration/test_{name}_integration.py" for name in ("consumer", "producer", "admin")]
WITHOUT: Final = {
    "test_kafka_version_infer": "expects the versions of a Kafka 2.3",
    "test_transactional": "transactions",
    "test_create_describe_delete_acls": "ACLs",
    "test_describe_configs_broker": "a broker has no settings that clients see",
    "test_describe_configs_mixed": "the same",
    "test_delete_groups_with_errors": "a group is listed from its first commit on",
    "test_delete_records": "records are deleted by retention alone",
    "test_elect_leaders": "there are no leaders to elect",
    "test_describe_log_dirs": "a broker has no folders that clients see",
    "test_alter_replica_log_dirs": "the same",
}
_SERVICE: Final = """class ExternalService:
    def __init__(self, host, port):
        self.host, self.port = host, port
    def open(self): pass
    def close(self): pass
class SpawnedService: pass
"""


def main() -> int:
    folder = Path(tempfile.mkdtemp(prefix="columnar-kafka-python-"))
    fetch = ["download", "-q", "--no-binary", ":all:", "--no-deps", "--no-build-isolation", "-d", str(folder), PACKAGE]
    subprocess.run([sys.executable, "-m", "pip", *fetch], check=True)
    with tarfile.open(next(folder.glob("*.tar.gz"))) as packed:
        packed.extractall(folder, filter="data")
    sources = next(one for one in folder.iterdir() if one.is_dir())
    (sources / "test" / "__init__.py").touch()
    (sources / "test" / "service.py").write_text(_SERVICE)
    (sources / "servers" / VERSION / "kafka-bin").mkdir(parents=True)
    plugins = [word for name in ("cacheprovider", "xdist", "hypothesispytest") for word in ("-p", f"no:{name}")]
    chosen = ["-k", " and ".join(f"not {name}" for name in WITHOUT)]
    options = [
        *plugins,
        *chosen,
        "-c",
        os.devnull,
        "--rootdir",
        ".",
        "--import-mode=importlib",
        "--timeout=60",
        "--tb=native",
    ]
    with ClusterProcess(folder / "data", 1, "--kafka-port", "0", "--kafka-partitions", "4") as store:
        address = {"KAFKA_URI": f"PLAINTEXT://127.0.0.1:{store.kafka_port}", "KAFKA_VERSION": VERSION}
        run = [sys.executable, "-W", "ignore", "-m", "pytest", *FILES, "-q", "-rs", *options]
        return subprocess.run(
            run, cwd=sources, env={**os.environ, **address, "PYTHONPATH": "."}, check=False
        ).returncode


if __name__ == "__main__":
    sys.exit(main())
