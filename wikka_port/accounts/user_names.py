"""(pure) Checks of names, passwords and mail addresses of accounts, with a sentence for a person whose choice fails.

A name is in Unicode's composed form with single blanks, like the name of a page.  It must not look like a different
name, like the address of a machine or like a visitor without an account.  It has none of the characters with a meaning
in a list of rights, in a link or in an address of a page or a mail.

Knows nothing of taken names.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final, Literal

from wikka_port.confusable_names import find_signature_confusable, plain
from wikka_port.names import InvalidName, is_camel_case, normalise
from wikka_port.schema import folded
from wikka_port.security import is_address
from wikka_port.texts import _
from wikka_port.visitors import OLD_COMMANDS, is_like_visitor

Allowed = Literal["any", "wikiwords"]

NAME_CHARS_MIN: Final = 2
NAME_CHARS_MAX: Final = 75
PASSWORD_CHARS_MIN: Final = 10
PASSWORD_CHARS_MAX: Final = 256  # each character costs time to hash
TYPED_CHARS_MAX: Final = 4 * PASSWORD_CHARS_MAX  # of a password before its letters are composed
ADDRESS_CHARS_MAX: Final = 254  # of a mail, by RFC 5321
_PASSWORD_DIFFERENT_MIN: Final = 5
_REFUSED: Final = re.compile(r"""[\[\]{}%+|?=<>"/\\,;:*!#@~^`&()]""")
_RESERVED: Final = frozenset(
    {"visitor", "anonymous", "nobody", "public", "wikisetup", "everyone", "admin", "administrator", *OLD_COMMANDS}
)
_VISITOR: Final = re.compile(r"(visitor|former user)\b")
ENCODED: Final = "=?"  # begins an encoded word (RFC 2047), which the header of a mail would decode
_ADDRESS: Final = re.compile(r"[^\s@<>,;:\"()\[\]\\]{1,64}@[^\s@<>,;:\"()\[\]\\.]+(\.[^\s@<>,;:\"()\[\]\\.]+)*")


class Unsuitable(ValueError):
    """The typed value cannot be taken; ``str()`` is a sentence for the person who typed it."""


def checked_name(text: str, allowed: Allowed = "any") -> str:
    """Return the name as it is shown.  Raises Unsuitable."""
    try:
        name = normalise(text)
    except InvalidName as problem:
        raise Unsuitable(_("This cannot be the name of a user: {reason}.", reason=problem.reason)) from None
    if not NAME_CHARS_MIN <= len(name) <= NAME_CHARS_MAX:
        raise Unsuitable(
            _(
                "A name has {least} to {most} characters; this one has {count}.",
                least=NAME_CHARS_MIN,
                most=NAME_CHARS_MAX,
                count=len(name),
            )
        )
    refused = _REFUSED.search(name)
    if refused:
        raise Unsuitable(_("A name cannot have the character {character} in it.", character=refused.group()))
    like = find_signature_confusable(name)
    if like is not None:
        raise Unsuitable(f"{_('Nobody can have this name.')} {like}")
    if is_address(plain(name)):
        raise Unsuitable(_("Please choose a name; a number of that form is the address of a machine."))
    if not any(character.isalpha() for character in name):
        raise Unsuitable(_("A name has at least one letter."))
    if folded(name) in _RESERVED or _VISITOR.match(folded(name)) or is_like_visitor(name):
        raise Unsuitable(_("This name is kept for the wiki itself. Please choose another."))
    if allowed == "wikiwords" and not is_camel_case(name):
        raise Unsuitable(_("Names here are WikiWords: two words or more, each with a capital letter, without blanks."))
    return name


def checked_password(password: str, *, name: str, address: str = "") -> str:
    """Return the password in the form that is hashed.  Raises Unsuitable.

    The form is the same for keyboards that compose letters differently.
    """
    composed = usual_password(password[: TYPED_CHARS_MAX + 1])
    if len(composed) < PASSWORD_CHARS_MIN:
        raise Unsuitable(
            _("A password has at least {count} characters; a few words make a good one.", count=PASSWORD_CHARS_MIN)
        )
    if len(composed) > PASSWORD_CHARS_MAX:
        raise Unsuitable(_("A password has at most {count} characters.", count=PASSWORD_CHARS_MAX))
    if len(set(composed)) < _PASSWORD_DIFFERENT_MIN:
        raise Unsuitable(_("This password repeats a few characters. Please choose one that is harder to guess."))
    known = folded(composed)
    if folded(name) in known or (address and known in (folded(address), folded(address.partition("@")[0]))):
        raise Unsuitable(_("A password cannot be made of the name or the mail address."))
    return composed


def usual_password(password: str) -> str:
    return unicodedata.normalize("NFKC", password)


def checked_address(text: str) -> str:
    """Return the mail address as it was typed, without blanks around it.  Raises Unsuitable."""
    address = text.strip()
    is_one = _ADDRESS.fullmatch(address) is not None and address.isprintable() and ENCODED not in address
    if len(address) > ADDRESS_CHARS_MAX or not is_one:
        raise Unsuitable(_("This is no mail address. It looks like name@example.org."))
    return address
