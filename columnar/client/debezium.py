"""(pure) Events of a change stream as messages of Debezium's JSON form (``model.debezium``).

Knows nothing of streams and links.
"""

from __future__ import annotations

from typing import Final

from columnar.client.changes import Change, Forget, Row, StreamEvent
from columnar.model import debezium
from columnar.model.debezium import ChangeImages, Message, NotDeclared, ValueForms

FORMS: Final = debezium.FORMS


class Debezium:
    """Makes the messages of one stream, whose events it gets in their order."""

    def __init__(self, table: str, forms: ValueForms) -> None:
        self._messages = debezium.Debezium(table, forms)

    def messages_of(self, event: StreamEvent, now_ms: int) -> list[Message]:
        """Return the messages of an event: none, one, or a delete and its tombstone.

        Raises NotDeclared; then the stream may be read on from the event's position with other forms.
        """
        if isinstance(event, Row):
            cells = {column: value for column, (value, _) in event.cells.items()}
            return [self._messages.message_of_row(event.row, cells, event.sequence, now_ms)]
        if isinstance(event, Forget):
            raise NotDeclared("Debezium's form cannot say which rows to forget: begin anew, with --from beginning")
        if not isinstance(event, Change):
            return []
        if event.before is None or event.after is None:
            self._messages.transaction_of(event.sequence, more=event.more)
            raise NotDeclared(
                f"the change {event.sequence} of row {event.row!r} has no images, because it is older than the "
                "attribute CHANGE_LOG_IMAGES, or they were not requested: begin with --from beginning, or later"
            )
        images = ChangeImages(event.row, event.before, event.after, event.stamp, event.sequence, event.more)
        return self._messages.messages_of_change(images, now_ms)
