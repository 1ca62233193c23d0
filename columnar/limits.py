"""All bounds by name, each with its unit and the reason for its size.

A request that exceeds a bound gets a typed error, or its writer is slowed down; the server never runs out of memory.  A
deployment changes bounds through ``columnar.config``.
"""

from __future__ import annotations

from typing import Final

KIB: Final = 1024
MIB: Final = 1024 * KIB

# --- what a caller may send ------------------------------------------------------------------------
ROW_KEY_BYTES: Final = 32_767  # HConstants.MAX_ROW_LENGTH
TABLE_NAME_BYTES: Final = 255  # what file systems take, which is HBase's own limit
FAMILY_NAME_BYTES: Final = 127  # as in HBase 2.6
INERT_ATTRIBUTES: Final = 100  # of a table, a family or a namespace: set by HBase clients, without effect here
INERT_TEXT_BYTES: Final = 4 * KIB  # of the name or the value of such an attribute; all are read at each start
FAMILIES: Final = 256  # of one table: each costs every region a file or more, and 1 ms of its opening
HTTP_PROBE_BYTES: Final = 4_096  # of an answer in which a command checks for HTTP, at a wrong port
CELL_BYTES: Final = 10 * MIB  # column and value; hbase.client.keyvalue.maxsize
MESSAGE_BYTES: Final = 64 * MIB  # one Thrift message; larger framed ones are drained and refused
DRAINED_FRAME_BYTES: Final = 1024 * MIB  # if a frame claims more, its connection is closed
MUTATIONS_PER_CALL: Final = 1_000_000  # a list that claims more is refused before it is built
COLUMNS_PER_CALL: Final = 100_000
ROW_OPERATIONS: Final = 20_000  # on one row as one indivisible step, which blocks the loop for some 60 ms
ROW_GROUP_CELLS: Final = 10_000  # of a group of rows, read or written as one step: some 20 ms
ROW_GROUP_BYTES: Final = 16 * MIB  # of the same step
SENDS: Final = 100  # of the changes of one row as one step: messages to queues and topics
SENDS_BYTES: Final = 4 * MIB  # of the same step, in the row's change record
GROUP_DELIMITER_BYTES: Final = 16  # of the table attribute ROW_GROUP
APPENDED_BYTES: Final = 32 * MIB  # of the cells of one row after one call's appends, which are the call's reply
LOG_QUEUE_BYTES: Final = MIB  # of log lines not yet written; more are dropped and counted
LOG_LINE_BYTES: Final = 64 * KIB  # of one line; the rest is cut
LOG_FILE_BYTES: Final = 64 * MIB  # of --log-file; then it is rotated
LOG_FILES: Final = 5  # rotated ones that are kept
LAST_LINES: Final = 20  # of its log that a server leaves for its supervisor
LAST_LINE_BYTES: Final = 500  # of one of them; the rest is cut
FILTER_BYTES: Final = 64 * KIB  # parsing costs 0.4 ms per KiB of the worst kind
SHORT_FILTER_BYTES: Final = 2 * KIB  # a longer string is parsed over several loop iterations
PATTERN_S: Final = 0.1  # all searches of one step by patterns, which Java does not bound: other requests wait meanwhile
PATTERN_S_PER_MIB: Final = 0.05  # added for a long value: a harmless pattern reads some 50 MiB/s
FILTER_RANGES: Final = 8_192  # distinct row ranges of an AND or OR; more are merged, and rows between them are read
FILTER_RANGES_DEEP: Final = 64  # the same for a list above more than FILTER_LEVELS lists: each costs as much
FILTER_LEVELS: Final = 8  # with 5,000 ranges, which FILTER_BYTES can hold, 5 ms each
FILTER_DEPTH: Final = 200  # nested parentheses and SKIP/WHILE; below CPython's recursion limit

# --- settings ----------------------------------------------------------------------------------------
SETTINGS_FILE_BYTES: Final = MIB  # of columnar.toml or wikka.toml; a larger one is no file of settings
SECRET_FILE_BYTES: Final = 4 * KIB  # of a file with a password or a token; a password has 1 KiB at most

# --- what is typed at columnar shell ---------------------------------------------------------------
SHELL_STATEMENT_CHARACTERS: Final = MIB  # a longer one is most often a quote that was not closed
SHELL_NESTING: Final = 20  # brackets within brackets, in the words of HBase's shell
SHELL_HISTORY_BYTES: Final = MIB  # of the file; its older half is removed when a shell starts
COMPLETED_NAMES: Final = 1_000  # of one kind, remembered for completion

# --- what a reply may hold -------------------------------------------------------------------------
REPLY_BYTES: Final = 32 * MIB  # a longer scannerGetList is cut after the row that passes it
ROWS_PER_REPLY: Final = 100_000
GATHERED_BYTES: Final = 64 * MIB  # of all replies together whose making takes several loop iterations
SLICE_CELLS: Final = 10_000  # of columnarRowSlice, read as one step: some 8 ms
ROW_BYTES: Final = 1000 * MIB  # one row in a reply (HBase: hbase.table.max.rowsize); below what a peer's frame may hold
ROWS_BYTES: Final = 64 * MIB  # rows requested by name: more is refused, because such a reply cannot be cut

# --- open things -----------------------------------------------------------------------------------
CONNECTIONS: Final = 10_000
OPEN_SCANNERS: Final = 10_000
CONNECTION_SCANNERS: Final = 1_000  # open scanners of one connection, so that no client takes all of them
SCANNERS_BYTES: Final = 64 * MIB  # rows, columns and filters kept by all open scanners
SCANNER_LEASE_S: Final = 600  # idle; the client's read timeout is usually shorter
ORPHAN_SCANNER_LEASE_S: Final = 60  # once the connection that opened it has closed
# A region takes some 0.5 MB and 11 descriptors, so all take 1 GB; beyond the bound the least recently used regions are
# closed.  The bound is above the number of regions that a server should own: a load over more regions than are open
# spends its time on opening them, 5 ms of a processor and 6 fsyncs each.  After a server's death its regions go to
# others.
OPEN_REGIONS: Final = 2_000
FLUSHED_AT_ONCE: Final = 4  # regions of a table or a server that is closed: each waits for the disk
# The time that one of several servers has to stop before it is killed: STOP_S, and more for each region that it owns,
# of at most OPEN_REGIONS.  A region takes some 4 ms if other work loads the disk.  With over 90 s in all, its default,
# systemd would kill the store.
STOP_S: Final = 30.0
STOP_REGION_S: Final = 0.02
STAGED_FOLDERS: Final = 32  # that commands use at the same time; each prevents the removal of files

REGION_BYTES: Final = 1024 * MIB  # a region that is larger splits by itself; docs/regions.md says why so large
# The time in which a server that stops for a restart transfers its clients; connections open afterwards are closed.
# Scanners of a client that has disconnected end before.
LEAVING_S: Final = 60

HANDSHAKES: Final = 2_000  # TLS handshakes under way; beyond the bound the oldest is closed
HANDSHAKE_S: Final = 10  # bound on a handshake's duration; a client half a world away needs 1 s

# --- buffers ---------------------------------------------------------------------------------------
CONNECTION_INPUT_BYTES: Final = 256 * KIB  # read ahead of the message being served
CONNECTION_OUTPUT_BYTES: Final = 4 * MIB  # unsent replies; over it the connection is not read
SERVER_OUTPUT_BYTES: Final = 256 * MIB  # unsent replies of all connections; over it the fullest is closed
SERVER_INPUT_BYTES: Final = 256 * MIB  # requests of all connections: half received, waiting or being served
SMALL_REQUEST_BYTES: Final = 4 * KIB  # a request of this size may begin beyond that bound; 40 MB for 10,000 connections
BATCH_BYTES: Final = 4 * MIB  # of one write to the engine, which holds the interpreter lock for some 13 ms

# --- between servers -------------------------------------------------------------------------------
PEER_FRAME_BYTES: Final = 1024 * MIB  # a row has no bound of its own, and a reply is forwarded unchanged
PEER_SERVING_BYTES: Final = 256 * MIB  # calls of peers that are being answered, and answers buffered by links
PEER_QUEUED_BYTES: Final = 64 * MIB  # of calls that wait for a link to a peer; further calls are not sent
# All answers to reads of other servers, while they are made.  This bound is separate from that of the gateway's own
# reads: otherwise reads of two gateways could wait for room at each other for ever.
PEER_REPLY_BYTES: Final = 64 * MIB
GREETING_FRAME_BYTES: Final = 4 * KIB  # of each frame of a peer before its link is open; a hello has some 200
GREETING_S: Final = 5.0  # from the connection to the open link
GREETINGS: Final = 256  # accepted links that are not open yet; beyond the bound the oldest is closed
# Replies and frames wait so long for the lease to hold again; then their connections are closed.  An outage of the
# coordination service that is shorter fails no call.
LEASE_WAIT_S: Final = 10.0

# --- change logs -----------------------------------------------------------------------------------
LOG_RECORDS: Final = 1_000_000  # of one region that a trigger still needs; above half of it writers are slowed
LOG_BYTES: Final = 1024 * MIB
LOG_TAIL_BYTES: Final = MIB  # of one region: its last change records in memory, if a follower reads them
LOG_TAILS_BYTES: Final = 64 * MIB  # of all regions
IMAGE_CELLS: Final = 10_000  # of one family of a row, if a follower needs it whole: each write of the row reads them
IMAGE_BYTES: Final = MIB
GUARD_MS: Final = 3_600_000  # a withdrawn member refuses earlier contributions of its source at least this long
KEPT_LOG_BYTES: Final = 256 * MIB  # of one region, kept by CHANGE_LOG without need of a trigger; CHANGE_LOG_BYTES

# --- slices of the loop ----------------------------------------------------------------------------
STEP_CELLS: Final = 2_500  # a read yields to other work after this many cells (about 2 ms if they are read one by one)
STEP_BYTES: Final = 4 * MIB
STEP_S: Final = 0.0005  # a step through a filter ends with the row that passes it

CLIENT_LINES_PER_SECOND: Final = 10  # log lines of one level that malformed requests and broken connections cause
SLOW_REQUESTS_KEPT: Final = 100  # of each process, for its pages
SLOW_REQUEST_MS: Final = 1_000  # logged with table, region and cost
LONGEST_LATER_S: Final = 86_400  # for which a trigger's function may postpone a change
