"""(pure) SASLprep (RFC 4013): the form of a password that is hashed, the same for each client's spelling of a text."""

from __future__ import annotations

import stringprep
import unicodedata
from typing import Final

from columnar.errors import IllegalArgument

PASSWORD_BYTES: Final = 1_024
_PROHIBITED: Final = (
    stringprep.in_table_c12,
    stringprep.in_table_c21_c22,
    stringprep.in_table_c3,
    stringprep.in_table_c4,
    stringprep.in_table_c5,
    stringprep.in_table_c6,
    stringprep.in_table_c7,
    stringprep.in_table_c8,
    stringprep.in_table_c9,
)


def prepared(password: str) -> str:
    """Return the password as it is hashed.  Raises IllegalArgument, without the password, if it can be none."""
    if len(password.encode(errors="replace")) > PASSWORD_BYTES:
        raise IllegalArgument(f"a password has at most {PASSWORD_BYTES} bytes")
    if not password.isascii():
        mapped = [" " if stringprep.in_table_c12(one) else one for one in password if not stringprep.in_table_b1(one)]
        password = unicodedata.normalize("NFKC", "".join(mapped))
    if not password:
        raise IllegalArgument("the password is empty")
    if any(is_prohibited(one) for one in password for is_prohibited in _PROHIBITED):
        raise IllegalArgument("the password has a control character, or one that RFC 4013 does not allow")
    return password
