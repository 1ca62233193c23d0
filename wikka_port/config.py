"""Configuration of the wiki's web side: read once at the edge, passed down, never changed."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from columnar.client import ClientTls
from wikka_port.files.content_types import DEFAULT_ENDINGS
from wikka_port.files.picture_sources import PictureSources
from wikka_port.limits import FORM_FILES_MAX


@dataclass(frozen=True, slots=True)
class MailConfig:
    """A server that takes the wiki's mail."""

    host: str
    port: int = 587
    tls: Literal["starttls", "tls", "none"] = "starttls"  # "none": everybody on the network path can read the links
    user: str = ""  # "": no sign-in at the server
    password: str = field(default="", repr=False)
    sender: str = "wiki@localhost"  # many servers refuse a sender that is not theirs


@dataclass(frozen=True, slots=True)
class FileConfig:
    """The bounds of files, and the pictures that pages may show."""

    bytes_max: int = 100_000_000  # of one file; 1 GB is tested.  A low one keeps films out
    types: frozenset[str] = DEFAULT_ENDINGS  # endings that are taken, or {ALL}; HTML with script is among the others
    per_page: int = 500  # a page's row has 130 bytes and the name of each, read at each view
    # Pictures of other sites; "all" tells them who reads.  None: "none", or "all" for a folder older than files
    foreign_pictures: Literal["none", "listed", "all"] | None = None
    picture_hosts: tuple[str, ...] = ()  # whose pictures are shown where ``foreign_pictures`` is "listed"
    renderers: tuple[tuple[str, str], ...] = ()  # language of code, address that draws it (``markup.code_blocks``)
    shared_page: str = "Files"  # the page whose files all pages can name; "": none
    origin: str = ""  # at which files that everybody may read are served, as https://files.example; "": the wiki's own

    @property
    def pictures(self) -> PictureSources:
        return PictureSources(self.foreign_pictures or "none", self.picture_hosts, self.origin)


@dataclass(frozen=True, slots=True)
class SignOnConfig:
    """Sign-on by a proxy."""

    header: str = ""  # in which a proxy names the signed-in user; "": no header is believed
    proxies: tuple[str, ...] = ("127.0.0.1", "::1")  # their addresses; one too many lets anybody in


@dataclass(frozen=True, slots=True)
class WikiConfig:
    # where the pages are
    store_host: str = "127.0.0.1"
    store_port: int = 9090
    store_tls: ClientTls | None = None  # None: plain text, which everybody on the network path can read
    indexes: Literal["triggers", "application"] = "triggers"  # "application" on a plain HBase gateway
    # where the wiki listens
    host: str = "127.0.0.1"
    port: int = 8080
    workers: int = 2  # processes; one interpreter serves from one core, the store needs one too
    threads: int = 4  # of each process; more take the interpreter from each other
    proxies: int = 0  # reverse proxies before us whose X-Forwarded-For is believed; one too many lets visitors lie
    allow_host: tuple[str, ...] = ()  # names answered on loopback beside localhost; a foreign one opens it to its pages
    # its appearance
    site_name: str | None = None  # None: that of ``site_settings``, which these four win over
    root_page: str = "HomePage"
    public_url: str = ""  # where people reach the wiki, for links in mails; "": from the address it listens on
    markup: Literal["wikka", "markdown"] | None = None  # the format of new pages; each page keeps its own
    camel_case: Literal["wikka", "all", "none"] | None = None  # formats in which such words are links, on new pages
    language: str = "en"  # of the wiki's own texts; each user may choose a different one of those installed
    languages: Path | None = None  # a folder with files of further languages
    backup_report: Path | None = None  # written by ``columnar backup --report``, shown to administrators
    edit_notes: Literal[0, 1, 2] = 0  # as in WikkaWiki: 0 a note may be given, 1 it must be, 2 there is none
    # accounts
    registration: Literal["open", "approval", "invitation", "closed"] | None = None
    user_names: Literal["any", "wikiwords"] = "any"
    mail: MailConfig | None = None  # None: no address is requested, and links are shown by commands
    password_memory_kib: int = 19_456  # of each hash, by OWASP; fewer make guessing cheap for a thief of the store
    sign_on: SignOnConfig = SignOnConfig()
    # who may do what
    secret: bytes = field(default=b"", repr=False)  # signs form tokens; b"" = a new one each start: open forms go stale
    edits_per_minute: int = 60  # by one address, in all processes; 0: no limit.  Too low hurts schools behind one
    edit_burst: int = 20  # edits in a row before that rate applies
    # bounds
    max_text_bytes: int = 2_000_000  # of one page; a larger one is refused with the text kept
    max_note_chars: int = 200
    files: FileConfig = FileConfig()
    list_rows: int = 200  # of one page of an index
    count_age_s: float = 10.0  # how old the number of pages may be: counting reads every name
    settle_s: float = 2.0  # how long an editor waits at most until the indexes know of the edit
    token_max_age_s: int = 24 * 3600  # how long an edit form may stay open before it must be sent again

    @property
    def max_request_bytes(self) -> int:
        """The largest request in bytes: a browser may encode each byte of the text as ``%XX``."""
        return 3 * self.max_text_bytes + 65_536

    @property
    def max_upload_bytes(self) -> int:
        """The largest form with files in bytes; each file has its own bound."""
        return FORM_FILES_MAX * self.files.bytes_max + self.max_request_bytes
