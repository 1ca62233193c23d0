"""A backup store in memory that can be killed before any of its steps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from columnar.backup.backup_store import ObjectFacts, ObjectMissing


class Killed(BaseException):
    """The process ended here; no handler of an error runs in it."""


class MemoryBackupStore:
    address = "memory"

    def __init__(self) -> None:
        self.objects: dict[str, tuple[bytes, int]] = {}  # data and time of each
        self.half: list[bytes] = []
        self.now_ms = 1_000_000
        self.steps_left: int | None = None  # until the process is killed
        self.is_dead = False
        self.steps = 0
        self.ever_put: list[str] = []

    def step(self) -> None:
        self.steps += 1
        if self.is_dead or self.steps_left == 0:
            self.is_dead = True
            raise Killed
        if self.steps_left is not None:
            self.steps_left -= 1

    def revive(self, steps_left: int | None = None) -> None:
        """Let another process use the store, which is killed after so many steps."""
        self.is_dead, self.steps_left, self.steps = False, steps_left, 0

    def put_bytes(self, name: str, data: bytes) -> None:
        self.step()
        self.objects[name] = bytes(data), self.now_ms
        self.ever_put.append(name)

    def put_pieces(self, name: str, pieces: Iterator[bytes], size_bytes: int) -> None:
        held = b""
        for piece in pieces:
            self.half.append(piece)
            self.step()
            held += piece
        assert len(held) == size_bytes, name
        self.put_bytes(name, held)

    def sync_objects(self) -> None:
        self.step()

    def read_bytes(self, name: str) -> bytes | None:
        self.step()
        return self.objects[name][0] if name in self.objects else None

    def read_pieces(self, name: str) -> Iterator[bytes]:
        self.step()
        if name not in self.objects:
            raise ObjectMissing(self.address, name)
        data = self.objects[name][0]
        yield from (data[at : at + 1_000] for at in range(0, len(data), 1_000))

    def list_objects(self, folder: str) -> Iterator[ObjectFacts]:
        self.step()
        prefix = f"{folder}/" if folder else ""
        found = sorted(name for name in self.objects if name.startswith(prefix))
        return iter([ObjectFacts(name, len(self.objects[name][0]), self.objects[name][1]) for name in found])

    def remove_objects(self, names: Sequence[str]) -> None:
        for name in names:
            self.step()
            self.objects.pop(name, None)

    def remove_unfinished(self) -> None:
        self.step()
        self.half.clear()
