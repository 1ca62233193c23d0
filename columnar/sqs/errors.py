"""(pure) Errors of SQS: their names in JSON, their codes of the older query protocol, and their statuses.

    HTTP/1.1 400 Bad Request
    x-amzn-query-error: AWS.SimpleQueueService.NonExistentQueue;Sender
    {"__type": "com.amazonaws.sqs#QueueDoesNotExist", "message": "..."}

Clients of the JSON protocol read ``__type``; those that were written for the query protocol match the code in the
header, as AWS's own libraries do.  An error that SQS does not name has the type of AWS's common errors.

Knows nothing of requests.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

_SQS: Final = "com.amazonaws.sqs#"
_COMMON: Final = "com.amazon.coral.service#"
_QUERY: Final = "AWS.SimpleQueueService."

# name -> type in JSON, code in the header, status
_KNOWN: Final[dict[str, tuple[str, str, int]]] = {
    **{
        name: (_SQS + name, _QUERY + name, 400)
        for name in (
            "BatchEntryIdsNotDistinct", "BatchRequestTooLong", "EmptyBatchRequest", "InvalidBatchEntryId",
            "MessageNotInflight", "TooManyEntriesInBatchRequest", "UnsupportedOperation", "PurgeQueueInProgress",
            "QueueDeletedRecently",
        )
    },
    **{
        name: (_SQS + name, name, 400)
        for name in (
            "InvalidAttributeName", "InvalidAttributeValue", "InvalidMessageContents", "OverLimit",
            "ReceiptHandleIsInvalid", "ResourceNotFoundException", "InvalidAddress", "RequestThrottled",
        )
    },
    "QueueDoesNotExist": (_SQS + "QueueDoesNotExist", _QUERY + "NonExistentQueue", 400),
    "QueueNameExists": (_SQS + "QueueNameExists", "QueueAlreadyExists", 400),
    "InvalidParameterValue": (_COMMON + "InvalidParameterValueException", "InvalidParameterValue", 400),
    "MissingParameter": (_COMMON + "MissingRequiredParameterException", "MissingParameter", 400),
    "SerializationException": (_COMMON + "SerializationException", "MalformedInput", 400),
    "UnknownOperation": (_COMMON + "UnknownOperationException", "InvalidAction", 400),
    "AccessDenied": (_COMMON + "AccessDeniedException", "AccessDenied", 403),
    "InternalError": (_COMMON + "InternalFailure", "InternalFailure", 500),
    "ServiceUnavailable": (_COMMON + "ServiceUnavailableException", "ServiceUnavailable", 503),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class ErrorForm:
    """An error as it is sent."""

    type: str
    code: str
    status: int

    @property
    def is_senders(self) -> bool:
        return self.status < 500

    @property
    def query_error(self) -> str:
        """Return the value of the header x-amzn-query-error."""
        return f"{self.code};{'Sender' if self.is_senders else 'Receiver'}"


class SqsError(Exception):
    """An error that a client gets; ``name`` is one of ``_KNOWN``."""

    def __init__(self, name: str, text: str) -> None:
        super().__init__(f"{name}: {text}")
        self.name = name
        self.text = text

    @property
    def form(self) -> ErrorForm:
        return ErrorForm(*_KNOWN[self.name])


def invalid_value(text: str) -> SqsError:
    return SqsError("InvalidParameterValue", text)


def missing(name: str) -> SqsError:
    return SqsError("MissingParameter", f"The request must contain the parameter {name}.")


def no_queue() -> SqsError:
    return SqsError("QueueDoesNotExist", "The specified queue does not exist.")
