// What Columnar answers beyond HBase, on the same port.  A server that is a plain HBase gives
// "unknown method" for everything here, and that is how a client tells the two apart.
//
// Field ids are never reused: a field that goes away leaves its number behind.

include "hbase.thrift"

namespace py columnar.thrift.columnar

// --- one atomic step on one row ------------------------------------------------------------------

// How the cell's value stands to the given one, byte by byte; EXISTS, ABSENT and ABSENT_OR_EMPTY need no value.
// An empty cell exists.  A missing cell fulfils ABSENT, ABSENT_OR_EMPTY, NOT_EQUAL and FENCE, and nothing else.
// FENCE takes the token of a lease, 8 bytes, big-endian: the cell is missing, or has 8 bytes that are at most the token.
enum CompareOp {
  LESS = 0,
  LESS_OR_EQUAL = 1,
  EQUAL = 2,
  NOT_EQUAL = 3,
  GREATER_OR_EQUAL = 4,
  GREATER = 5,
  EXISTS = 6,
  ABSENT = 7,
  ABSENT_OR_EMPTY = 8,
  FENCE = 9
}

struct Condition {
  1: binary column,
  2: CompareOp op = CompareOp.EQUAL,
  3: optional binary value
}

enum OperationKind {
  PUT = 0,
  DELETE = 1,
  INCREMENT = 2,
  APPEND = 3,
  CONTRIBUTE = 4,
  SEND = 5
}

// What a source gives to totals of its row, as of a sequence: origin, epoch and n, which compare in this order.  What
// is said again, or late, changes nothing.  amounts: column of each total (an eight-byte counter) and what it gets.
// withdrawn: the source gives nothing any more.  relative: amounts are added to what it gave.  order: its place in
// orderFamily, where a cell holds carry.
struct Contribution {
  1: list<i64> sequence,
  2: map<binary, i64> amounts,
  3: bool withdrawn = 0,
  4: bool relative = 0,
  5: binary orderFamily,
  6: optional binary order,
  7: map<binary, binary> carry
}

// A message that goes out if and only if the change of its row is made.  target: queue:NAME or topic:NAME.  name,
// group, priority and delayMs are of a queue's message, key is of a topic's record.
struct SentMessage {
  1: binary target,
  2: binary body,
  3: binary key,
  4: binary name,
  5: binary group,
  6: i32 priority = 0,
  7: i64 delayMs = 0,
  8: map<binary, binary> headers
}

// value for PUT and APPEND, amount for INCREMENT; a DELETE of a bare family removes it whole.  The column of a
// CONTRIBUTE is the family of the members and, as qualifier, the source.  A SEND has no column; the table needs the
// attribute SENDS.
struct RowOperation {
  1: OperationKind kind = OperationKind.PUT,
  2: binary column,
  3: optional binary value,
  4: optional i64 amount,
  5: optional i64 timestamp,
  6: optional i64 ttlMs,
  7: optional Contribution contribution,
  8: optional SentMessage send
}

// sequence is opaque, "origin-epoch-n"; give it to columnarTriggerWait.  counters holds the new
// values of the increments in their order.  failedCondition counts from 0, -1 where all held.
struct CheckAndMutateResult {
  1: bool applied,
  2: i64 timestamp,
  3: string sequence,
  4: list<hbase.TCell> counters,
  5: i32 failedCondition = -1
}

struct CheckedRow {
  1: binary row,
  2: list<Condition> conditions,
  3: list<RowOperation> operations
}

// No result: nothing was done for the row, and columnarCheckAndMutate says why, or does it.
struct CheckedRowResult {
  1: optional CheckAndMutateResult result
}

// --- queues --------------------------------------------------------------------------------------

// name: at most one message of the name while it is there, and 5 minutes after its commit; empty: no name.
// nameMs: not so, but for this long from the push on; 0: as said.
// Messages of a group take turns with those of others.  The highest priority (0 to 255) goes first.
struct QueueMessage {
  1: binary body,
  2: binary name,
  3: binary group,
  4: i32 priority = 0,
  5: i64 delayMs = 0,
  6: map<binary, binary> headers,
  7: i64 nameMs = 0
}

struct QueuePushed {
  1: string id,
  2: bool isNew
}

// receipt: for columnarQueueSettle; empty if the message was only shown.  untilMs: since 1970, when lease or delay ends.
// firstMs: since 1970, when it was popped for the first time; 0: it was not.
struct QueueFound {
  1: string id,
  2: binary receipt,
  3: binary body,
  4: binary name,
  5: binary group,
  6: i32 priority,
  7: i32 attempts,
  8: i64 pushedMs,
  9: i64 untilMs,
  10: map<binary, binary> headers,
  11: binary error,
  12: i64 firstMs = 0
}

// oldestMs: the age of the oldest ready message, or 0.  pushRate, commitRate: messages a second, over the last minute, or
// since the server that owns the queue first used it.
struct QueueStatistics {
  1: i64 messages,
  2: i64 ready,
  3: i64 inFlight,
  4: i64 delayed,
  5: i64 dead,
  6: i64 pushed,
  7: i64 committed,
  8: i64 oldestMs,
  9: i64 leaseMs,
  10: i32 attempts,
  11: bool fifo,
  12: i64 retentionS = 0,
  13: binary deadTo,
  14: double pushRate = 0,
  15: double commitRate = 0
}

// A field that is not set stays as it is.
struct QueueSettings {
  1: optional i64 leaseMs,
  2: optional i32 attempts,
  3: optional bool fifo,
  4: optional i64 retentionS,
  5: optional binary deadTo
}

// --- topics ---------------------------------------------------------------------------------------
// A partition is named by its key: topic 00 id:u64 partition:u32.  error: the number of Kafka's protocol, 0: none.

// -1: no bound.  A field that is not set stays as it is, and is 7 days or -1 in a new topic.
struct TopicSettings {
  1: optional i64 retentionMs,
  2: optional i64 retentionBytes
}

struct TopicDescription {
  1: binary name,
  2: i64 id,
  3: i32 partitions,
  4: i64 retentionMs,
  5: i64 retentionBytes
}

struct TopicProduced {
  1: i32 error,
  2: i64 baseOffset,
  3: i64 appendMs,
  4: i64 logStart
}

struct TopicFetched {
  1: i32 error,
  2: binary batches,
  3: i64 highWatermark,
  4: i64 logStart
}

struct TopicWaited {
  1: i32 error,
  2: i64 bytes,
  3: i64 highWatermark
}

struct TopicOffset {
  1: i32 error,
  2: i64 offset,
  3: i64 timestampMs
}

struct TopicPartition {
  1: i32 error,
  2: i64 logStart,
  3: i64 highWatermark,
  4: i64 sizeBytes,
  5: i32 producers,
  6: i64 appendMs
}

// --- groups of rows (the table attribute ROW_GROUP) ----------------------------------------------

// What a call has read of a group: these rows, or without any the whole group; no columns: all of them.
struct GroupRead {
  1: list<binary> rows,
  2: list<binary> columns,
  3: binary digest
}

// columns: those that were read, which are fewer than asked for where the user may not read all.
struct GroupRows {
  1: list<hbase.TRowResult> rows,
  2: list<binary> columns,
  3: binary digest
}

// rows: of each row, in order; empty where nothing was done: then failedRead, or failedRow and failedCondition, count
// from 0 what does not hold.
struct GroupResult {
  1: bool applied,
  2: string sequence,
  3: list<CheckAndMutateResult> rows,
  4: i32 failedRead = -1,
  5: i32 failedRow = -1,
  6: i32 failedCondition = -1
}

// --- schema --------------------------------------------------------------------------------------

// Whatever is left out has the default of our own administration, not that of HBase's IDL
// (one version, for ever).
struct FamilyOptions {
  1: binary name,
  2: optional i32 maxVersions,
  3: optional i64 ttlSeconds,
  4: optional string compression,
  5: optional map<string, string> attributes
}

// --- triggers ------------------------------------------------------------------------------------

// A registration is the JSON that the catalogue keeps (docs/formats/triggers.md).  Statuses, dead letters and reports of
// checks are msgpack: a list of maps by the names of the fields of the records in columnar/model (trigger_status,
// view_status, view_check) and columnar/wire (dead_letter).  columnarTriggerList, columnarDeadLetters,
// columnarTriggerDeadShow, columnarViewList and columnarViewCheck, which answered structs of their own to clients of
// earlier versions, refuse.

// --- status --------------------------------------------------------------------------------------

struct TableStatus {
  1: binary name,
  2: bool enabled,
  3: i32 regions,
  4: i64 sizeBytes,
  5: map<string, string> attributes
}

// What is in use of a part of the memory plan, and its bound (docs/memory.md).
struct MemoryPart {
  1: string name,
  2: i64 usedBytes,
  3: i64 limitBytes
}

struct StatusReport {
  1: string version,
  2: string dataFolder,
  3: double uptimeSeconds,
  4: list<TableStatus> tables,
  5: i32 openRegions,
  6: i32 openScanners,
  7: i32 connections,
  8: map<string, i64> requests,
  // of several servers: those that did not answer, whose part is not in the numbers: "s2.1" (not in time) or
  // "s2.1 (cause)"
  9: list<string> silentServers,
  // what is out of the ordinary, as sentences: regions that stay closed
  10: list<string> remarks,
  // the commit that the answering server runs, with "-dirty" if its sources were changed, or "unknown"; its Python
  11: string build,
  12: string python,
  // of all servers together, in the order of the plan
  13: list<MemoryPart> memory
}

// --- administration -------------------------------------------------------------------------------

// Every attribute as it acts, as text (docs/administration.md).
struct FamilyDescription {
  1: binary name,
  2: map<string, string> attributes
}

struct TableDescription {
  1: binary name,
  2: bool enabled,
  3: list<FamilyDescription> families,
  4: map<string, string> attributes,
  5: i32 regions,
  6: list<string> triggers
}

// In changeFamilies only what is set changes; an empty text of an attribute, here and there, means its default.
struct TableChange {
  1: list<FamilyOptions> addFamilies,
  2: list<FamilyOptions> changeFamilies,
  3: list<binary> dropFamilies,
  4: map<string, string> attributes
}

// rows is -1 where a range went whole and nobody counted.
struct DeletedRows {
  1: i64 rows,
  2: bool done,
  3: binary nextRow
}

// reads, writes and logRecords are of open regions, and count from their opening.
struct RegionStatus {
  1: binary name,
  2: binary encodedName,
  3: binary startKey,
  4: binary endKey,
  5: i64 regionId,
  6: bool open,
  7: i64 sizeBytes,
  8: i64 reads,
  9: i64 writes,
  10: i64 logRecords,
  11: i64 logBytes
}

// --- snapshots, staging, loading -----------------------------------------------------------------

struct SnapshotInfo {
  1: string name,
  2: binary table,
  3: i64 createdMs,
  4: i32 regions,
  5: i64 sizeBytes
}

// A folder of the server's machine that a command on the same machine reads from or brings to.
struct Staged {
  1: string token,
  2: string folder
}

// What a loader must know of a table: its schema as in the catalogue (JSON), its regions in
// order, and why its rows cannot come by ingestion (empty: they can, into empty ranges).
struct LoadTarget {
  1: string schemaJson,
  2: list<binary> starts,
  3: list<string> obstacles
}

// Sorted files that hold whole rows from firstRow to lastRow, by key space, as names in the staging folder.
struct SortedFiles {
  1: binary firstRow,
  2: binary lastRow,
  3: i64 highestTimestamp,
  4: i64 rows,
  5: map<string, list<string>> files
}

struct LoadedRow {
  1: binary row,
  2: list<RowOperation> operations
}

// --- the cluster ---------------------------------------------------------------------------------

// state is "starting", "up", "fencing" or "down"; stateMs is how long it has been so, -1: nobody knows.
// incarnation numbers its starts, 0: it was never started.
// lastLines: of the log of its start that died last, the newest last.
struct ServerStatus {
  1: string name,
  2: string state,
  3: i64 incarnation,
  4: bool drained,
  5: i64 stateMs,
  6: i32 regions,
  7: double load,
  8: double requestsPerSecond,
  9: i32 moves,
  10: string version,
  11: string address,
  12: i32 pid,
  13: i32 connections,
  14: list<string> notes,
  15: list<string> lastLines
}

// unassigned: regions without an owner, though they should have one.
// zones: by server, of those whose nodes were given one.
// nodes: by server, the node that had it last.  livingNodes: the leader first.  Both are empty for a store of one machine.
struct ClusterStatus {
  1: list<ServerStatus> servers,
  2: i32 regions,
  3: i32 unassigned,
  4: i32 transitions,
  5: bool balancer,
  6: bool autoSplit,
  7: list<string> remarks,
  8: map<string, string> zones,
  9: map<string, string> nodes,
  10: list<string> livingNodes
}

// state in HBase's words: OPENING, OPEN, CLOSING, SPLITTING, MERGING, OFFLINE, FAILED_OPEN.
// server is empty where nobody owns it, host where its port is not known.
struct RegionLocation {
  1: binary name,
  2: binary encodedName,
  3: binary startKey,
  4: binary endKey,
  5: i64 regionId,
  6: binary table,
  7: string server,
  8: i64 incarnation,
  9: string host,
  10: i32 port,
  11: string state,
  12: i64 stateMs,
  13: i64 epoch,
  14: string comingFrom,
  15: string home,
  16: string why,
  17: double load,
  18: double readsPerSecond,
  19: double writesPerSecond,
  20: double deliveriesPerSecond,
  21: i64 sizeBytes
}

// kind is "open", "move", "close", "split" or "merge"; "waiting" for a server, or "failed" until a person assigns it.
struct RegionTransition {
  1: string kind,
  2: binary name,
  3: binary encodedName,
  4: binary table,
  5: string state,
  6: string fromServer,
  7: string toServer,
  8: i64 stateMs,
  9: string why
}

// kind is "give", "prefer", "close", "split", "merge" or "fence"; regions are encoded names, or ids of those
// that are gone; text says all of it.
struct ClusterDecision {
  1: i64 agoMs,
  2: string kind,
  3: list<string> regions,
  4: string server,
  5: string why,
  6: string text,
  7: optional i64 atMs  // of the Unix epoch
}

// remarks: why a request for the row may wait, with the next step.
struct RowLocation {
  1: RegionLocation region,
  2: optional ServerStatus server,
  3: list<string> remarks,
  4: list<ClusterDecision> decisions
}

struct RegionMove {
  1: binary name,
  2: binary encodedName,
  3: binary table,
  4: string fromServer,
  5: string toServer,
  6: string why
}

// What was done, or (done is false) what a dry run says would be.
// resigning: of a drained node that leads: it resigns when it is empty.
struct ClusterChange {
  1: string text,
  2: bool done,
  3: list<RegionMove> moves,
  4: list<string> remarks,
  5: i32 regionsLeft,
  6: bool resigning
}

// The holder of the maintenance lock, who may empty or end servers.  holder: empty: nobody.  what: the node that is emptied or ended, or empty.
// silentMs: since the leader has seen a renewal; after a minute another may take the lock.
// own: the caller is the holder.
struct MaintenanceStatus {
  1: string holder,
  2: string what,
  3: i64 ageMs,
  4: i64 silentMs,
  5: bool own
}

// --- users and rights ------------------------------------------------------------------------------

// rights: letters of RWXCA.  grantee: a user, or a group as "@name".  Empty fields are wider scopes: no namespace and no
// table means everything; a table's name has its namespace.
struct RightsGrant {
  1: string grantee,
  2: string rights,
  3: string namespaceName,
  4: binary table,
  5: binary family,
  6: optional binary qualifier
}

struct UserInfo {
  1: string name,
  2: bool hasPassword,
  3: list<string> tokens,
  4: list<string> groups
}

// user is empty if nobody signed in; rights are those on everything.
struct WhoAmI {
  1: string user,
  2: list<string> groups,
  3: string rights,
  4: bool superuser,
  5: bool rightsOn
}

// A change stream (docs/changes.md).  position: of the last reply, as it was; empty: begin at start, which is "now",
// "beginning" (the rows that are there, then the changes) or a time in ms since 1970.  columns: families or columns;
// where: conditions on the row after the change; startRow and stopRow: rows, a half-open range; part and parts: rows by
// CRC-32.  maxBytes and waitMs are bounded by the server.  consolidate: changes of a row within the reply become one.
// With a group the call is that of a member: it reads the rows that the group has given to the member, and start counts
// for the group's first call alone.
struct ChangesRequest {
  1: binary position,
  2: string start = "now",
  3: list<binary> columns,
  4: list<string> where,
  5: binary startRow,
  6: binary stopRow,
  7: i32 part = 0,
  8: i32 parts = 1,
  9: bool before = 0,
  10: bool after = 0,
  11: bool beginsAgain = 0,
  12: i32 maxBytes = 0,
  13: i32 waitMs = 0,
  14: string group,
  15: string member,
  16: bool consolidate = 0
}

// upToMs: every change with a lower stamp was sent; 0: not known.  ranges: how many ranges of rows a group's member has;
// hasChanged: the reply is empty because they changed.
struct ChangesReply {
  1: binary events,
  2: binary position,
  3: i64 upToMs,
  4: i32 ranges = 0,
  5: bool hasChanged = 0
}

// position: of the last reply whose events are done; empty: only leave, or renew the lease.  more: later events were handed out and are not
// done.  leaves: the member ends, and others get its rows at once.
struct CommitRequest {
  1: string group,
  2: string member,
  3: binary position,
  4: bool more = 0,
  5: bool leaves = 0
}

// refused: first rows of the ranges that the member does not have any more, so others get their changes again.
struct CommitReply {
  1: list<binary> refused
}

// leftMs: of its lease.
struct ReaderGroupMember {
  1: string member,
  2: i64 leftMs,
  3: i32 ranges
}

// member is empty if nobody has the range.  ageMs: since all that was handed out of it was committed.
struct ReaderGroupRange {
  1: binary startRow,
  2: binary stopRow,
  3: string member,
  4: i64 epoch,
  5: i64 ageMs,
  6: bool moves
}

struct ReaderGroup {
  1: string group,
  2: list<ReaderGroupMember> members,
  3: list<ReaderGroupRange> ranges
}

// held: by the caller.  token: the last one that was given, whoever has it.  holder: empty: nobody.  leftMs: until the
// server regards the lease as free, unless it is renewed.
struct LeaseReply {
  1: bool held,
  2: i64 token,
  3: binary holder,
  4: i64 leftMs
}

service ColumnarStore extends hbase.Hbase {
  // The conditions are looked at and the operations applied, in the order given, as one step.
  CheckAndMutateResult columnarCheckAndMutate(1: binary table, 2: binary row,
    3: list<Condition> conditions, 4: list<RowOperation> operations,
    5: map<binary, binary> attributes)
    throws (1: hbase.IOError io, 2: hbase.IllegalArgument ia)

  // columnarCheckAndMutate of several rows, each named once and a step of its own, with one fsync; a result for each, in
  // order.  Rows of other servers, rows that meet an error and what a call has no time for have none: ask for them alone.
  list<CheckedRowResult> columnarCheckAndMutateRows(1: binary table, 2: list<CheckedRow> rows)
    throws (1: hbase.IOError io, 2: hbase.IllegalArgument ia)

  // Rows of one group, which any of its rows names, as one step: the reads and all conditions are looked at, then all
  // operations are applied or none.  A row may have conditions alone.
  GroupResult columnarMutateGroup(1: binary table, 2: binary group, 3: list<CheckedRow> rows, 4: list<GroupRead> reads)
    throws (1: hbase.IOError io, 2: hbase.IllegalArgument ia)
  // A group as of one moment, or these rows of it.
  GroupRows columnarReadGroup(1: binary table, 2: binary group, 3: list<binary> columns, 4: list<binary> rows)
    throws (1: hbase.IOError io, 2: hbase.IllegalArgument ia)

  // As mutateRows, or with a timestamp as mutateRowsTs; answers the token of the call: the sequence of its change, or if
  // it names several rows, for each region that it wrote into all changes up to the last one, joined by commas.
  string columnarMutateRows(1: binary table, 2: list<hbase.BatchMutation> rowBatches,
    3: map<binary, binary> attributes, 4: i64 timestamp)
    throws (1: hbase.IOError io, 2: hbase.IllegalArgument ia)

  void columnarCreateTable(1: binary table, 2: list<FamilyOptions> families,
    3: map<string, string> tableAttributes, 4: list<binary> splits)
    throws (1: hbase.IOError io, 2: hbase.IllegalArgument ia, 3: hbase.AlreadyExists exist)

  void columnarTriggerAdd(2: binary registration)
    throws (1: hbase.IOError io, 2: hbase.IllegalArgument ia)
  // The triggers of one module (of_module of each) as it declares them: those that are not there are added, others
  // changed where they are; remove names triggers that an earlier sync of the module made.
  void columnarTriggerSync(2: list<string> remove, 3: list<binary> registrations)
    throws (1: hbase.IOError io, 2: hbase.IllegalArgument ia)
  // Workers run the source of all functions as it is on disk now; an error where a function cannot be used any more.
  void columnarTriggerReload()
    throws (1: hbase.IOError io, 2: hbase.IllegalArgument ia)
  void columnarTriggerRemove(1: string trigger)
    throws (1: hbase.IOError io, 2: hbase.IllegalArgument ia)
  // TriggerStatus of each.
  binary columnarTriggers()
    throws (1: hbase.IOError io, 2: hbase.IllegalArgument ia)
  void columnarTriggerList()
    throws (1: hbase.IOError io, 2: hbase.IllegalArgument ia)
  void columnarTriggerPause(1: string trigger)
    throws (1: hbase.IOError io, 2: hbase.IllegalArgument ia)
  void columnarTriggerResume(1: string trigger)
    throws (1: hbase.IOError io, 2: hbase.IllegalArgument ia)
  // Shows the trigger again what was written since fromMs (milliseconds since 1970), or with 0 every row.  Answers when
  // the wish is on disk; a time to which the log does not reach back is an error.
  void columnarTriggerReplay(1: string trigger, 2: i64 fromMs)
    throws (1: hbase.IOError io, 2: hbase.IllegalArgument ia)
  // DeadLetter of each, oldest first; an empty trigger means all of them.  withChanges: of one trigger and row (empty:
  // any), with their changes; 10 at most.
  binary columnarTriggerDead(1: string trigger, 2: binary row, 3: i32 limit, 4: bool withChanges)
    throws (1: hbase.IOError io, 2: hbase.IllegalArgument ia)
  void columnarDeadLetters()
    throws (1: hbase.IOError io, 2: hbase.IllegalArgument ia)
  // Runs the trigger again for a row in the dead letters (an empty row: for all of them) as
  // the row is now; answers how many were taken up.
  i32 columnarTriggerRetry(1: string trigger, 2: binary row)
    throws (1: hbase.IOError io, 2: hbase.IllegalArgument ia)
  void columnarTriggerDeadShow()
    throws (1: hbase.IOError io, 2: hbase.IllegalArgument ia)
  // As columnarTriggerRetry; asItWas: with the change that failed, under a new sequence.
  i32 columnarTriggerDeadRetry(1: string trigger, 2: binary row, 3: bool asItWas)
    throws (1: hbase.IOError io, 2: hbase.IllegalArgument ia)
  // Removes the letters of one row, or all of a trigger, undelivered; answers how many.
  i32 columnarTriggerDeadSkip(1: string trigger, 2: binary row)
    throws (1: hbase.IOError io, 2: hbase.IllegalArgument ia)
  i32 columnarTriggerDeadPurge(1: string trigger)
    throws (1: hbase.IOError io, 2: hbase.IllegalArgument ia)
  // True once all these writes are in each of the triggers, views and feeds, without names in all of them and out of the
  // outbox: tokens are those of writes, and may be joined by commas; none, or *, means everything that was written before
  // the call.  A write reaches one of them through those that feed it; one that gets it only through a queue is refused.
  // downstream: also in all that these feed.  False: not in time, or, before the time is over, the server leaves or stops:
  // call again.
  bool columnarWait(1: list<string> names, 2: list<string> tokens, 3: i64 timeoutMs, 4: bool downstream)
    throws (1: hbase.IOError io, 2: hbase.IllegalArgument ia)
  // True once all changes of the token have been delivered, or without one everything written
  // until now; an empty trigger means all of them; false when the time is over first, or as columnarWait.
  bool columnarTriggerWait(1: string trigger, 2: string token, 3: i64 timeoutMs)
    throws (1: hbase.IOError io, 2: hbase.IllegalArgument ia)

  // The graph of flows as JSON: "flows", each with kind, name, the places that it reads, writes and was seen to write,
  // state, lag, rate, and what else docs/operations.md names; "silent_servers".
  string columnarFlows()
    throws (1: hbase.IOError io, 2: hbase.IllegalArgument ia)

  // --- views -------------------------------------------------------------------------------------
  // The definition is JSON, as docs/formats/views.md says.  Answers when every change from now on is followed; the
  // rows that are there are shown to the view meanwhile, and columnarViewWait waits for them.
  void columnarViewAdd(1: binary definition)
    throws (1: hbase.IOError io, 2: hbase.IllegalArgument ia)
  // Its table goes with it.
  void columnarViewDrop(1: string name)
    throws (1: hbase.IOError io, 2: hbase.IllegalArgument ia)
  // The next generation is built beside the live one, with another definition or (empty) the same; answers its table.
  string columnarViewRebuild(1: string name, 2: binary definition)
    throws (1: hbase.IOError io, 2: hbase.IllegalArgument ia)
  // Readers of the name see the next generation, or the one before; answer the table of it and that which is kept.
  list<string> columnarViewSwap(1: string name)
    throws (1: hbase.IOError io, 2: hbase.IllegalArgument ia)
  list<string> columnarViewRollback(1: string name)
    throws (1: hbase.IOError io, 2: hbase.IllegalArgument ia)
  // ViewStatus of each generation.
  binary columnarViews()
    throws (1: hbase.IOError io, 2: hbase.IllegalArgument ia)
  void columnarViewList()
    throws (1: hbase.IOError io, 2: hbase.IllegalArgument ia)
  // Reads both sides once, and takes as long as that; a view that is not built yet is refused.  A CheckReport.
  binary columnarCheckView(1: string name, 2: bool repair)
    throws (1: hbase.IOError io, 2: hbase.IllegalArgument ia)
  void columnarViewCheck()
    throws (1: hbase.IOError io, 2: hbase.IllegalArgument ia)
  // As columnarTriggerWait, which takes the name of a view too where no trigger has it.
  bool columnarViewWait(1: string name, 2: string token, 3: i64 timeoutMs)
    throws (1: hbase.IOError io, 2: hbase.IllegalArgument ia)

  // --- feeds ---------------------------------------------------------------------------------------
  // The definition is JSON, as docs/topics.md says: the changes of a table go into a topic.  Answers when every change
  // from now on will be there.
  void columnarFeedAdd(1: binary definition)
    throws (1: hbase.IOError io, 2: hbase.IllegalArgument ia)
  // What the feed wrote stays in the topic.
  void columnarFeedDrop(1: string name)
    throws (1: hbase.IOError io, 2: hbase.IllegalArgument ia)
  // A JSON list of the definitions, each with state, number and unusable; columnarFlows has lag and errors.
  binary columnarFeeds()
    throws (1: hbase.IOError io, 2: hbase.IllegalArgument ia)

  // --- change streams ----------------------------------------------------------------------------
  // The next events of a table's changes behind the request's position, as docs/formats/change-events.md says.  The
  // answer is empty if there is none within waitMs.  A position that the log no longer reaches is an error (a message
  // that begins with ChangesGoneException), or with beginsAgain a "forget" and the rows as they are.
  ChangesReply columnarChanges(1: binary table, 2: ChangesRequest request)
    throws (1: hbase.IOError io, 2: hbase.IllegalArgument ia)
  // Commits how far a member of a group has read.  Answers when that is durable.
  CommitReply columnarCommit(1: binary table, 2: CommitRequest request)
    throws (1: hbase.IOError io, 2: hbase.IllegalArgument ia)
  list<ReaderGroup> columnarReaderGroups(1: binary table)
    throws (1: hbase.IOError io, 2: hbase.IllegalArgument ia)
  // Forgets a group with its positions; false if there is none.
  bool columnarDropReaderGroup(1: binary table, 2: string group)
    throws (1: hbase.IOError io, 2: hbase.IllegalArgument ia)

  // --- leases ------------------------------------------------------------------------------------
  // With token 0: acquires the lease for ttlMs, waiting up to waitMs until it is free.  holder: a text that no other
  // holder has; its own lease it gets anew.  Each acquisition has a higher token.  With the holder's token: renews the
  // lease, or releases it (ttlMs 0).  With neither: changes nothing.  A holder counts ttlMs from before it sent the call.
  LeaseReply columnarLease(1: binary name, 2: binary holder, 3: i64 ttlMs, 4: i64 token, 5: i64 waitMs)
    throws (1: hbase.IOError io, 2: hbase.IllegalArgument ia)

  // --- queues --------------------------------------------------------------------------------------
  // Makes the table of queues, if it is not there.  A queue itself needs no creation.
  void columnarQueuePrepare()
    throws (1: hbase.IOError io, 2: hbase.IllegalArgument ia)
  // Answers when the messages are on disk.
  list<QueuePushed> columnarQueuePush(1: binary queue, 2: list<QueueMessage> messages)
    throws (1: hbase.IOError io, 2: hbase.IllegalArgument ia)
  // Up to count messages, each leased for leaseMs (0: as the queue's settings say); waits up to waitMs for the first.
  list<QueueFound> columnarQueuePop(1: binary queue, 2: i32 count, 3: i64 waitMs, 4: i64 leaseMs)
    throws (1: hbase.IOError io, 2: hbase.IllegalArgument ia)
  // what: commit, rollback (ms: delay before the message is given out again), extend (ms: from now on).
  // False for each receipt whose lease was lost: it has ended, or for a commit, another one has begun meanwhile.
  list<bool> columnarQueueSettle(1: binary queue, 2: list<binary> receipts, 3: string what, 4: i64 ms, 5: binary error)
    throws (1: hbase.IOError io, 2: hbase.IllegalArgument ia)
  list<QueueFound> columnarQueuePeek(1: binary queue, 2: i32 count)
    throws (1: hbase.IOError io, 2: hbase.IllegalArgument ia)
  QueueStatistics columnarQueueStats(1: binary queue)
    throws (1: hbase.IOError io, 2: hbase.IllegalArgument ia)
  void columnarQueueConfigure(1: binary queue, 2: QueueSettings settings)
    throws (1: hbase.IOError io, 2: hbase.IllegalArgument ia)
  // Dead messages with ids above after (empty: from the first), ascending; fewer than count if they have many bytes.
  list<QueueFound> columnarQueueDead(1: binary queue, 2: string after, 3: i32 count)
    throws (1: hbase.IOError io, 2: hbase.IllegalArgument ia)
  // Brings dead messages back, without their attempts: those named, or the count oldest (0: 1,000); answers how many,
  // fewer if they have many bytes.
  i32 columnarQueueRedrive(1: binary queue, 2: list<string> ids, 3: i32 count)
    throws (1: hbase.IOError io, 2: hbase.IllegalArgument ia)
  // Removes dead messages for ever; its arguments and answer are as columnarQueueRedrive's.
  i32 columnarQueueRemoveDead(1: binary queue, 2: list<string> ids, 3: i32 count)
    throws (1: hbase.IOError io, 2: hbase.IllegalArgument ia)
  // Removes all messages but the dead ones, also those that somebody has popped; answers how many.
  i64 columnarQueuePurge(1: binary queue)
    throws (1: hbase.IOError io, 2: hbase.IllegalArgument ia)
  // Removes a queue with its messages, dead messages and settings; false if a message was pushed meanwhile.
  bool columnarQueueDrop(1: binary queue)
    throws (1: hbase.IOError io, 2: hbase.IllegalArgument ia)

  // --- topics --------------------------------------------------------------------------------------
  // Makes the table of topics, if it is not there.
  void columnarTopicPrepare()
    throws (1: hbase.IOError io, 2: hbase.IllegalArgument ia)
  // False: there is a topic of the name.
  bool columnarTopicCreate(1: binary topic, 2: i32 partitions, 3: TopicSettings settings)
    throws (1: hbase.IOError io, 2: hbase.IllegalArgument ia)
  // Changes the settings that are set, and adds partitions (0: as many as there are).  False: there is no such topic.
  bool columnarTopicConfigure(1: binary topic, 2: i32 partitions, 3: TopicSettings settings)
    throws (1: hbase.IOError io, 2: hbase.IllegalArgument ia)
  // False: there is no such topic.
  bool columnarTopicDrop(1: binary topic)
    throws (1: hbase.IOError io, 2: hbase.IllegalArgument ia)
  list<TopicDescription> columnarTopicList()
    throws (1: hbase.IOError io, 2: hbase.IllegalArgument ia)
  // Waits until the partitions have leastBytes together from these offsets on, or for waitMs.
  void columnarTopicWait(1: binary topic, 2: map<i32, i64> offsets, 3: i64 leastBytes, 4: i64 waitMs)
    throws (1: hbase.IOError io, 2: hbase.IllegalArgument ia)
  // A number that no producer had before.
  i64 columnarTopicProducer()
    throws (1: hbase.IOError io, 2: hbase.IllegalArgument ia)
  // How far groups are in the topic (empty: in all topics), as a JSON list: group, topic, lag and partitions, each with
  // committed (-1: nothing), first, end and lag.
  binary columnarTopicGroups(1: binary topic)
    throws (1: hbase.IOError io, 2: hbase.IllegalArgument ia)
  // The records produced in each of the last windows and those that the group's commits have passed, as a JSON list:
  // from_ms, to_ms, produced, consumed and partitions.
  binary columnarTopicAudit(1: binary topic, 2: binary group, 3: i64 windowMs, 4: i32 windows)
    throws (1: hbase.IOError io, 2: hbase.IllegalArgument ia)
  // Makes a partition, or changes its settings.
  void columnarPartitionSet(1: binary partition, 2: TopicSettings settings)
    throws (1: hbase.IOError io, 2: hbase.IllegalArgument ia)
  // Ends a partition: it takes and shows nothing more.
  void columnarPartitionDrop(1: binary partition)
    throws (1: hbase.IOError io, 2: hbase.IllegalArgument ia)
  // batches: record batches of Kafka's protocol, version 2.  Answers when they are on disk.
  TopicProduced columnarPartitionProduce(1: binary partition, 2: binary batches)
    throws (1: hbase.IOError io, 2: hbase.IllegalArgument ia)
  // Whole batches from the one with the offset on, at most maxBytes of them, but at least one if there is one.
  TopicFetched columnarPartitionFetch(1: binary partition, 2: i64 offset, 3: i32 maxBytes)
    throws (1: hbase.IOError io, 2: hbase.IllegalArgument ia)
  // Waits until there are leastBytes from the offset on; how many there are, counted up to leastBytes.
  TopicWaited columnarPartitionWait(1: binary partition, 2: i64 offset, 3: i64 leastBytes, 4: i64 waitMs)
    throws (1: hbase.IOError io, 2: hbase.IllegalArgument ia)
  // The first offset at or after a time; -1: the offset after the last record, -2: the first one that is there.
  TopicOffset columnarPartitionOffset(1: binary partition, 2: i64 timestampMs)
    throws (1: hbase.IOError io, 2: hbase.IllegalArgument ia)
  TopicPartition columnarPartitionState(1: binary partition)
    throws (1: hbase.IOError io, 2: hbase.IllegalArgument ia)
  // Asks the coordinator of a group of consumers, which is at the owner of the group's row; between servers alone.
  binary columnarConsumerGroup(1: binary row, 2: binary message)
    throws (1: hbase.IOError io, 2: hbase.IllegalArgument ia)

  // --- splits and merges -------------------------------------------------------------------------
  // Of a region, by its full or encoded name, or of a table: then of its region that holds the row,
  // or without a row of its largest.  An empty row means the middle.  Answers the full names of
  // the two, which serve by then.
  list<binary> columnarSplit(1: binary tableOrRegion, 2: binary row)
    throws (1: hbase.IOError io, 2: hbase.IllegalArgument ia)
  // Two neighbours, by their full or encoded names, in any order; answers the full name of the one.
  binary columnarMerge(1: binary region, 2: binary other)
    throws (1: hbase.IOError io, 2: hbase.IllegalArgument ia)

  // Cells of one family of a row, from the column start up to stop and not with it (family left out; empty: where the
  // family begins or ends), in the order of columns or, reversed, from the last on.  At most limit cells, and fewer where
  // they have over 4 MiB: only an answer without a row says that there are none left.  Costs what it answers, however
  // many cells the row has.
  list<hbase.TRowResult> columnarRowSlice(1: binary table, 2: binary row, 3: binary family, 4: binary start,
    5: binary stop, 6: i32 limit, 7: bool reversed)
    throws (1: hbase.IOError io, 2: hbase.IllegalArgument ia)

  StatusReport columnarStatus() throws (1: hbase.IOError io, 2: hbase.IllegalArgument ia)

  // Administration (structs above, "administration").

  TableDescription columnarDescribeTable(1: binary table)
    throws (1: hbase.IOError io, 2: hbase.IllegalArgument ia)
  bool columnarTableExists(1: binary table)
    throws (1: hbase.IOError io, 2: hbase.IllegalArgument ia)
  // All of the change or nothing, while the table serves.
  void columnarAlterTable(1: binary table, 2: TableChange change)
    throws (1: hbase.IOError io, 2: hbase.IllegalArgument ia)
  // Drops the table with its rows and triggers, enabled or disabled; a refusal changes nothing.
  void columnarDropTable(1: binary table)
    throws (1: hbase.IOError io, 2: hbase.IllegalArgument ia)
  // Answers how many regions there were.  enable: a disabled table is enabled by the same step.
  i32 columnarTruncateTable(1: binary table, 2: bool preserveSplits, 3: bool enable)
    throws (1: hbase.IOError io, 2: hbase.IllegalArgument ia)
  // Rows from start to stop, not with it; empty is the table's end.  Call it again from nextRow until done.
  DeletedRows columnarDeleteRows(1: binary table, 2: binary start, 3: binary stop)
    throws (1: hbase.IOError io, 2: hbase.IllegalArgument ia)
  list<RegionStatus> columnarRegions(1: binary table)
    throws (1: hbase.IOError io, 2: hbase.IllegalArgument ia)
  // Of a table or a region, by its full or its encoded name; answer when it is done.
  void columnarFlush(1: binary tableOrRegion)
    throws (1: hbase.IOError io, 2: hbase.IllegalArgument ia)
  void columnarCompact(1: binary tableOrRegion, 2: bool major)
    throws (1: hbase.IOError io, 2: hbase.IllegalArgument ia)
  void columnarCreateNamespace(1: binary name, 2: map<string, string> configuration)
    throws (1: hbase.IOError io, 2: hbase.IllegalArgument ia)
  // An empty text takes the key away; what is not named stays.
  void columnarAlterNamespace(1: binary name, 2: map<string, string> change)
    throws (1: hbase.IOError io, 2: hbase.IllegalArgument ia)
  map<string, string> columnarDescribeNamespace(1: binary name)
    throws (1: hbase.IOError io, 2: hbase.IllegalArgument ia)
  void columnarDropNamespace(1: binary name)
    throws (1: hbase.IOError io, 2: hbase.IllegalArgument ia)
  list<binary> columnarListNamespaces()
    throws (1: hbase.IOError io, 2: hbase.IllegalArgument ia)
  list<binary> columnarListNamespaceTables(1: binary name)
    throws (1: hbase.IOError io, 2: hbase.IllegalArgument ia)

  // --- snapshots, staging, loading ---
  SnapshotInfo columnarSnapshotTake(1: string name, 2: binary table)
    throws (1: hbase.IOError io, 2: hbase.IllegalArgument ia)
  list<SnapshotInfo> columnarSnapshotList()
    throws (1: hbase.IOError io, 2: hbase.IllegalArgument ia)
  void columnarSnapshotClone(1: string name, 2: binary table)
    throws (1: hbase.IOError io, 2: hbase.IllegalArgument ia, 3: hbase.AlreadyExists exist)
  void columnarSnapshotRestore(1: string name)
    throws (1: hbase.IOError io, 2: hbase.IllegalArgument ia)
  void columnarSnapshotDelete(1: string name)
    throws (1: hbase.IOError io, 2: hbase.IllegalArgument ia)
  // what is "copy" (of a table's regions), "everything" or "empty"; the caller locks LOCK in the
  // folder, and releases the folder when he is done.
  Staged columnarStage(1: string what, 2: binary table)
    throws (1: hbase.IOError io, 2: hbase.IllegalArgument ia)
  void columnarStageRelease(1: string token)
    throws (1: hbase.IOError io, 2: hbase.IllegalArgument ia)
  // Makes a table of the regions, and the manifest, that were brought to a staging folder.
  void columnarStageAdopt(1: string token, 2: binary table)
    throws (1: hbase.IOError io, 2: hbase.IllegalArgument ia, 3: hbase.AlreadyExists exist)
  LoadTarget columnarLoadTarget(1: binary table)
    throws (1: hbase.IOError io, 2: hbase.IllegalArgument ia)
  // True: they are in, all or none; false: the range of rows is not empty, or not in one region.
  bool columnarIngest(1: binary table, 2: string token, 3: SortedFiles files)
    throws (1: hbase.IOError io, 2: hbase.IllegalArgument ia)
  // Ordinary writes, each row one step; returns after the fsync.
  void columnarLoadRows(1: binary table, 2: list<LoadedRow> rows)
    throws (1: hbase.IOError io, 2: hbase.IllegalArgument ia)

  // --- clients that call the owners of regions directly: answered by any server ---
  // Location of each region of the table in the order of keys, msgpack (columnar/model/region_location), as the server
  // knows it; one process that serves everything names itself.
  binary columnarRegionOwners(1: binary table)
    throws (1: hbase.IOError io, 2: hbase.IllegalArgument ia)
  // On: calls of a single row over this connection are not forwarded to the owner of the row's region, but refused with
  // IOError "RegionMovedException: Region moved to: hostname=H port=P startCode=S. As of locationSeqNum=E.", and nothing
  // was done.  Calls whose owner the server does not know are forwarded still.
  void columnarRoute(1: bool on)
    throws (1: hbase.IOError io, 2: hbase.IllegalArgument ia)

  // --- the cluster: all answered by the master ---
  ClusterStatus columnarServers()
    throws (1: hbase.IOError io, 2: hbase.IllegalArgument ia)
  // In the order of their keys.
  list<RegionLocation> columnarLocations(1: binary table)
    throws (1: hbase.IOError io, 2: hbase.IllegalArgument ia)
  RowLocation columnarLocate(1: binary table, 2: binary row)
    throws (1: hbase.IOError io, 2: hbase.IllegalArgument ia)
  // Longest first.
  list<RegionTransition> columnarTransitions()
    throws (1: hbase.IOError io, 2: hbase.IllegalArgument ia)
  // The last 200, newest first.
  list<ClusterDecision> columnarDecisions()
    throws (1: hbase.IOError io, 2: hbase.IllegalArgument ia)
  // Regions by their full or encoded names.  An empty server: the master chooses.  Answers when the region serves.
  ClusterChange columnarMove(1: binary region, 2: string server, 3: bool dryRun)
    throws (1: hbase.IOError io, 2: hbase.IllegalArgument ia)
  ClusterChange columnarAssign(1: binary region, 2: bool dryRun)
    throws (1: hbase.IOError io, 2: hbase.IllegalArgument ia)
  // Closes the region until it is assigned.
  ClusterChange columnarUnassign(1: binary region, 2: bool dryRun)
    throws (1: hbase.IOError io, 2: hbase.IllegalArgument ia)
  // Keeps a server empty (on) or no longer; answers when it is, or after waitMs with what is left.
  ClusterChange columnarDrain(1: string server, 2: bool on, 3: i64 waitMs, 4: bool dryRun)
    throws (1: hbase.IOError io, 2: hbase.IllegalArgument ia)
  // Keeps all servers of a node empty (on) or no longer; a node that leads resigns then.  node: with or without its
  // incarnation.  untilRestart: each server until its next start.  Answers as columnarDrain.
  ClusterChange columnarDrainNode(1: string node, 2: bool on, 3: bool untilRestart, 4: i64 waitMs, 5: bool dryRun)
    throws (1: hbase.IOError io, 2: hbase.IllegalArgument ia)
  // A round of balance now.
  ClusterChange columnarBalance(1: bool dryRun)
    throws (1: hbase.IOError io, 2: hbase.IllegalArgument ia)
  // what is "balancer" or "auto-split".
  ClusterChange columnarSwitch(1: string what, 2: bool on, 3: bool dryRun)
    throws (1: hbase.IOError io, 2: hbase.IllegalArgument ia)
  MaintenanceStatus columnarMaintenance()
    throws (1: hbase.IOError io, 2: hbase.IllegalArgument ia)
  // Acquires the maintenance lock of a cluster, unless another one holds it, or only renews it if the caller holds it;
  // answers who holds it then.  nonce: 32 hexadecimal digits, drawn by the caller for all calls of one holding.
  // A holder renews every 10 seconds.
  MaintenanceStatus columnarAcquireMaintenance(1: string nonce, 2: string holder, 3: string what, 4: bool renews)
    throws (1: hbase.IOError io, 2: hbase.IllegalArgument ia)
  // Ends the holding of this nonce, or with an empty nonce anybody's; answers who held the lock before.
  MaintenanceStatus columnarReleaseMaintenance(1: string nonce)
    throws (1: hbase.IOError io, 2: hbase.IllegalArgument ia)
  // Changes levels of loggers in all processes until they restart or read their settings again, and answers those in
  // force, by process: "root=info columnar.wire=debug".  A change is LOGGER=debug, info, warning, error or default;
  // none changes nothing.
  map<string, string> columnarLogLevels(1: list<string> changes)
    throws (1: hbase.IOError io, 2: hbase.IllegalArgument ia)
  // These three only over the supervisor's private socket, or with a client certificate.  A restart or stop of the
  // server by which the call comes is answered when it begins (not done): the call would wait for its own end.
  ClusterChange columnarRestart(1: string server, 2: bool dryRun)
    throws (1: hbase.IOError io, 2: hbase.IllegalArgument ia)
  ClusterChange columnarStop(1: string server, 2: bool dryRun)
    throws (1: hbase.IOError io, 2: hbase.IllegalArgument ia)
  ClusterChange columnarFence(1: string server, 2: bool dryRun)
    throws (1: hbase.IOError io, 2: hbase.IllegalArgument ia)

  // --- users and rights ---------------------------------------------------------------------------
  WhoAmI columnarWhoAmI()
    throws (1: hbase.IOError io, 2: hbase.IllegalArgument ia)
  void columnarGrant(1: RightsGrant grant)
    throws (1: hbase.IOError io, 2: hbase.IllegalArgument ia)
  // Rights at this very scope; those of wider and narrower scopes stay.
  void columnarRevoke(1: RightsGrant grant)
    throws (1: hbase.IOError io, 2: hbase.IllegalArgument ia)
  // All grants that the caller may see.
  list<RightsGrant> columnarPermissions()
    throws (1: hbase.IOError io, 2: hbase.IllegalArgument ia)
  // A group without members does not exist.
  void columnarSetGroup(1: string name, 2: list<string> adds, 3: list<string> removes)
    throws (1: hbase.IOError io, 2: hbase.IllegalArgument ia)
  list<UserInfo> columnarUsers()
    throws (1: hbase.IOError io, 2: hbase.IllegalArgument ia)
  // Verifiers, never the password itself: Argon2id, and SCRAM-SHA-256 as RFC 5803 writes it.
  void columnarSetPassword(1: string name, 2: string password, 3: string scram)
    throws (1: hbase.IOError io, 2: hbase.IllegalArgument ia)
  // The hexadecimal SHA-256 of the token.  A label that is there is replaced.
  void columnarAddToken(1: string name, 2: string label, 3: string hash)
    throws (1: hbase.IOError io, 2: hbase.IllegalArgument ia)
  void columnarRemoveToken(1: string name, 2: string label)
    throws (1: hbase.IOError io, 2: hbase.IllegalArgument ia)
  void columnarDropUser(1: string name)
    throws (1: hbase.IOError io, 2: hbase.IllegalArgument ia)
}
