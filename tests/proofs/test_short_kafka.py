"""A few kills under Kafka's clients; ``python -m tests.proofs.kafka_kills --kills 50`` is the long form."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.proofs.kafka_kills import prove
from tests.support.deep import IS_DEEP
from tests.support.seeds import seed

pytest.importorskip("kafka", reason="kafka-python is not installed: make dev")
pytest.importorskip("confluent_kafka", reason="confluent-kafka is not installed: make dev")
pytest.importorskip("aiokafka", reason="aiokafka is not installed: make dev")


@pytest.mark.skipif(not IS_DEEP, reason="a minute of kills: with COLUMNAR_DEEP")
@pytest.mark.lasts(90)
@pytest.mark.timeout(400)
def test_kills_lose_and_double_no_record(tmp_path: Path) -> None:
    found = prove(tmp_path, 8, seed(1), print)
    print(dict(found.counts))
    assert found.wrong == []
