"""(pure) Bounds of the wiki by name: the cost of one page, one difference and one list of pages.

A text over a bound of a page is refused when somebody saves it; the answer says what to do.  A page that was imported,
or saved before the bound existed, keeps its text whole: it is parsed and indexed up to the bound, and the rest is shown
as it was typed.
"""

from __future__ import annotations

from typing import Final

# --- one page ----------------------------------------------------------------------------------

LINKS_MAX: Final = 5_000  # different pages that it links to; each is a cell in two or three rows of the indexes
CELLS_MAX: Final = 20_000  # of its tables
ACTION_CELLS_MAX: Final = 2_000  # of a table that an action makes
# Actions run for each view, and some read much; those beyond are not run.
ACTIONS_MAX: Final = 50
FILES_MAX: Final = 2_000  # files that it shows or links to; those beyond are words, or links to pages
FILE_PAGES_MAX: Final = 30  # other pages whose files are read for one page
INCLUDE_DEPTH_MAX: Final = 4  # pages within pages
INCLUDE_CHARS_MAX: Final = 50_000  # of an included page, as it is and with what the call gives
INCLUDES_MAX: Final = 30  # of one view, in all pages that are included
# Of HTML, wherever it is shown: the same call is run once, and may stand often on pages that are included often.
INCLUDED_CHARS_MAX: Final = 3_000_000
ACTIONS_S: Final = 2.0  # that they may take together; those after it say so in their places
# Rendering time: each mark that is read, each token made, and what expensive tokens cost beside; about 5 µs each.
STEPS_MAX: Final = 100_000
MARKDOWN_MARKS_MAX: Final = 32_000  # of a page in Markdown: line ends, signs of items and the like, and of words
# All links and pictures of a page in Markdown have so many, and as many more as the text has characters: a reference of
# three characters stands for an address of two thousand.
ADDRESSES_MAX: Final = 100_000
MARKDOWN_STEPS: Final = 3  # of each of them: its parser is slower
HTML_STEPS: Final = 5  # of each piece of embedded HTML, and of each "<" in it
LINK_STEPS: Final = 4  # of a link, which is looked up too

# --- what a page costs in the serving process -----------------------------------------------------

QUICK_STEPS: Final = 8_000  # a page that costs more is expensive: the slow lane answers (``request_queues``)
QUICK_CHARS: Final = 20_000  # a text up to this is never expensive to parse or to compare
SLOW_WAITING_MAX: Final = 100  # expensive requests that wait in one process; the next ones get 503

DOCUMENT_CACHE_CHARS: Final = 32_000_000  # of parsed pages, in each process; at least as many bytes

# --- transfers: uploads that are read as they arrive, and large answers (``request_queues``) --------

TRANSFERS_AT_ONCE: Final = 8  # in one process, each in a thread of its own
TRANSFERS_OF_NETWORK: Final = 4  # of them; further ones of the network wait, and others pass them
TRANSFERS_WAITING_MAX: Final = 32  # in one process; the next ones get 503
TRANSFERS_WAITING_OF_NETWORK: Final = 16
# A larger answer is a transfer.  A smaller one waits for a slow reader in a file, and no thread waits: but a page with
# thirty photographs, fetched at once through a proxy that speaks HTTP/2, must not be too many transfers of a network.
TRANSFER_FROM_BYTES: Final = 4 << 20
TRANSFER_OUTPUT_BYTES: Final = 2 << 20  # of an answer that its client has not read; then the thread waits
TRANSFER_STALLED_S: Final = 60.0  # a client of which fewer bytes than the next line says came or went is cut off
TRANSFER_STALLED_BYTES: Final = 16_384
PIPE_BYTES: Final = 262_144  # of a body that its thread has not read; then the socket is not read
RECEIVED_BYTES: Final = 65_536  # in one call, of a transfer
UNREAD_TIMES: Final = 8  # times ``max_request_bytes``: so much of a body is read and dropped after its answer

# --- lists that read a whole table    -------------------------------------------------------------

WANTED_MAX: Final = 5_000  # of the most wanted pages, which are ranked by how many pages link there
MEMORY_TIMES: Final = 20.0  # such a list is kept for this multiple of the time it took (``caches``)

# --- lists that leave out what their reader may not see -------------------------------------------

LISTED_STEP: Final = 200  # names whose rights are read together
LISTED_QUICK: Final = 2_000  # names read for one list; with more it is expensive
LISTED_SCANNED: Final = 5_000  # names or changes read for one part of a list, unless the part itself has more
RANDOM_TRIES: Final = 20  # places tried for some page that may be read
SEARCHED_NAMES: Final = 5_000  # of the names that a search finds, at most this many are read

OWNED_MAX: Final = 1_000  # pages of one owner that are listed and counted

# --- editing --------------------------------------------------------------------------------------

TEMPLATES_MAX: Final = 50  # offered for a new page
SUGGESTED_BY_ONE: Final = 3  # changes of a page that wait, by one person
SUGGESTED_OF_PAGE: Final = 50
REFUSED_BY_ONE: Final = 10  # refused suggestions of a page that are kept, of one person
REFUSED_OF_PAGE: Final = 100
SUGGESTIONS_S: Final = 30 * 24 * 3600
MINOR_STEPS: Final = 10  # pages of a list of changes that are searched for edits that are not minor

# --- the tables ----------------------------------------------------------------------------------

ROWS_PER_CALL: Final = 500  # of the indexes, written or read in one call of the store

# --- imports --------------------------------------------------------------------------------------

# Characters of one page's revisions that are sorted by time on disk before they are stored; more are sorted in runs.
SPOOLED_CHARS: Final = 4_000_000_000
SPOOLED_REVISIONS: Final = 1_000_000
DUMP_TEMPLATES_MAX: Final = 20_000  # simple templates of a dump that are kept for the calls in its pages
DUMP_TEMPLATES_CHARS: Final = 20_000_000  # of all of them
DUMP_TITLES_MAX: Final = 2_000_000  # of a dump's pages, for functions that ask for one; 8 bytes each
IMPORTED_INCLUDES_MAX: Final = 10  # of a page of a dump; each costs a view a read, so further calls are expanded
MERGED_ROWS: Final = 64  # revisions in one call, when new ones are inserted between stored ones
MERGED_CHARS: Final = 1_000_000
MERGED_LEFT: Final = 100_000  # superfluous rows of merges; with more an import waits for the triggers and removes them
FOLDER_ENTRIES_MAX: Final = 1_000_000  # files and folders of a folder that is imported; more are left out
FOLDER_DEPTH_MAX: Final = 64
FRONT_CHARS_MAX: Final = 20_000  # of a text in which its front matter is searched for a date
CHANGES_BYTES_MAX: Final = 64 << 20  # of a list of changes of a page of DokuWiki; later lines are not read
REFERENCES_MAX: Final = 20_000  # links and pictures of a text that are compared with the files of its folder
NAMED_MISMATCHES: Final = 100  # texts whose size differs from the dump's, reported by name; all are counted

# --- exports --------------------------------------------------------------------------------------

EXPORTED_ROWS: Final = 8  # revisions with their texts that are read in one call; each may have some megabytes
STATIC_NAMES: Final = 1_000  # names of pages in one file of the index of a static site
STATIC_LETTERS: Final = 200  # initials in its head; a wiki with more has the first letters of its files there
STATIC_BACKLINKS: Final = 500  # pages that link to a page, at its foot; the others are counted
RECORD_LINE_BYTES: Final = 128 << 20  # of a file of JSON lines; a text of 4 MiB may be six times as long in JSON
HIDDEN_RUN_CHARS: Final = 4_000_000  # of a page's hidden revisions in memory; more lie in a temporary file

# --- limits of networks ---------------------------------------------------------------------------

RATE_TABLE_ADDRESSES: Final = 10_000  # remembered at once, 32 bytes each; long idle ones are forgotten first

# --- drafts and previews of one network ------------------------------------------------------------
# A class behind one address writes at once.

KEPT_PER_PAGE: Final = 5  # drafts of one owner; one more displaces the oldest
PRESENT_MS: Final = 10 * 60 * 1000  # a person who kept a draft within it is writing
PRESENT_DRAFTS_SCANNED: Final = 100  # drafts of a page searched for who is writing
DRAFTS_PER_MINUTE: Final = 120.0
DRAFT_BURST: Final = 120
NEW_DRAFTS_PER_MINUTE: Final = 4.0  # without an account; each is a row that stays for 30 days
NEW_DRAFT_BURST: Final = 40
PREVIEWS_PER_MINUTE: Final = 600.0
PREVIEW_BURST: Final = 200

# --- files of one network --------------------------------------------------------------------------

UPLOADS_PER_MINUTE: Final = 60.0
UPLOAD_BURST: Final = 200
FORM_FILES_MAX: Final = 100  # of one form

# --- comments ---------------------------------------------------------------------------------------

COMMENT_CHARS_MAX: Final = 20_000
COMMENTS_SCANNED: Final = 5_000  # rows of a list of comments that are read for one part of it
COMMENTED_PAGES_COUNTED: Final = 5_000  # pages whose comments are counted together; "more than" stands for the rest
COMMENTS_RANKED: Final = 1_000  # the newest comments, of which authors are counted
COMMENTS_PER_MINUTE: Final = 20.0  # of one network, and of one account
COMMENT_BURST: Final = 40

# --- watches and notices ------------------------------------------------------------------------------

WATCHES_MAX: Final = 2_000  # of one account
WATCHED_ABOVE: Final = 16  # names above a page whose watchers are notified, the topmost first
FAN_OUT_STEP: Final = 100  # watchers read together; what a crash repeats of a fan-out at most
FAN_OUT_SLICE: Final = 25  # watchers whose rows are made in one slice of the worker, some 2 ms; others run in between
NOTICED_MOVES: Final = 50  # pages of a job that a notice counts; it says "50+" of so many
WATCHERS_AT_ONCE: Final = 1_000  # accounts whose notices of a job are in memory, three times as many at most
NOTICES_LISTED: Final = 50  # of a part of the inbox
NOTICES_SCANNED: Final = 1_000  # rows of an inbox that are read for one part of it
NOTICES_COUNTED: Final = 99  # unread notices; more are shown as "99+"
UNREAD_KEPT_MS: Final = 20_000  # how long a process keeps an account's unread notices; their rights are read each time
UNREAD_ACCOUNTS: Final = 1_000  # accounts whose unread notices a process keeps
TARGETS_KEPT: Final = 100_000  # watched pages and names that a process keeps, of all accounts; 100 bytes each
WATCHES_KEPT_MS: Final = 600_000  # what a crash between a watch and its stamp leaves unnoticed at most
MENTIONS_MAX: Final = 20  # people whom one change notifies by their names
MAILS_AT_ONCE: Final = 100  # notices that one run mails; a run begins every ten seconds
DIGEST_NOTICES: Final = 50  # of one daily mail; further ones go into a second mail

# --- moves ----------------------------------------------------------------------------------------

JOB_PAGES_MAX: Final = 20_000  # pages of one job: links of other pages, subpages, many pages at once
JOB_STEP: Final = 25  # pages between two checks whether the job must stop
JOB_LEASE_MS: Final = 60_000  # after this silence of its process, another process may continue a job
MAX_REVERTED_REVISIONS: Final = 500  # revisions of a page searched for the newest one of somebody else
HIDDEN_MAX: Final = 1_000  # revisions of one page that are hidden
DELETED_PAGES_SCANNED: Final = 20  # deleted pages of a name tried before a 404 offers to bring one back
REASON_CHARS_MAX: Final = 500
# The former rights of a page that a job changes, kept in the job's row for its undo; longer ones are not kept.
FORMER_RIGHTS_BYTES: Final = 1_000

# --- administration --------------------------------------------------------------------------------

ACCOUNTS_LISTED: Final = 50  # of a part of the list of accounts
ACCOUNTS_SCANNED: Final = 2_000  # rows read for one part
GROUPS_LISTED: Final = 200
PAGES_LISTED: Final = 50  # of a part of the list of pages
PAGES_SCANNED: Final = 2_000  # names read for one part
LISTS_SCANNED: Final = 5_000  # pages with lists of their own that are searched for names of groups
AUDIT_LISTED: Final = 50  # entries of a part of the audit
AUDIT_SCANNED: Final = 2_000  # entries read for one part
LETTERS_LISTED: Final = 100  # dead letters of the wiki's triggers
SIZES_READ: Final = 5_000  # rows of a table that are read to say how many it has
ACCOUNTS_COUNTED: Final = 10_000
SITE_NAME_CHARS: Final = 60
MENU_ITEMS_MAX: Final = 12
MENU_CHARS: Final = 300  # of an entry, and of other settings of the site
MEMBERS_LISTED: Final = 50  # of a group, by name

# --- antispam ---------------------------------------------------------------------------------------

ANTISPAM_ENTRIES_MAX: Final = 2_000  # of a list of words or of sites
ANTISPAM_ANSWERS_MAX: Final = 20  # to the site's question
ANTISPAM_ENTRY_CHARS: Final = 200
SAME_TEXT_PAGES: Final = 3  # edits that may add the same text in a row, of everybody together
SAME_TEXT_PER_MINUTE: Final = 0.05
SAME_TEXT_CHARS_MIN: Final = 40  # a shorter text is a common phrase
REVIEWS_MAX: Final = 1_000  # edits and comments that wait for an administrator, in all; each for 30 days
REVIEWS_OF_NETWORK: Final = 50
REVIEWS_LISTED: Final = 200  # of one author, decided or not
REVIEWS_AT_ONCE: Final = 50  # of one author that are accepted together
