// The Thrift 1 service of HBase, as its clients know it: names, field ids and defaults are
// facts of the protocol, the remarks are ours.
//
// These are the 47 methods that HBase 2.6.1 answers, and getRowOrBefore of older gateways.
// A client that was made from another version of this file works too: Thrift skips fields
// that it does not know (canRetry, cacheBlocks) and gives defaults for those it misses.
//
// Where a read takes a timestamp it sees what is strictly older; where a write or a delete
// takes one, exactly that is used, and a delete covers it and everything older.

namespace py columnar.thrift.hbase

typedef binary Text
typedef binary Bytes
typedef i32 ScannerID

enum TThriftServerType {
  ONE = 1,
  TWO = 2
}

enum TPermissionScope {
  TABLE = 0,
  NAMESPACE = 1
}

// One version of one column.
struct TCell {
  1: Bytes value,
  2: i64 timestamp
}

// A column family; its name ends in a colon on the wire.  A time to live of zero or less is
// "for ever".
struct ColumnDescriptor {
  1: Text name,
  2: i32 maxVersions = 3,
  3: string compression = "NONE",
  4: bool inMemory = 0,
  5: string bloomFilterType = "NONE",
  6: i32 bloomFilterVectorSize = 0,
  7: i32 bloomFilterNbHashes = 0,
  8: bool blockCacheEnabled = 0,
  9: i32 timeToLive = -1
}

// An empty end key is the end of the table.
struct TRegionInfo {
  1: Text startKey,
  2: Text endKey,
  3: i64 id,
  4: Text name,
  5: byte version,
  6: Text serverName,
  7: i32 port
}

// A put, or with isDelete a delete; a delete of a bare family removes all its columns.
struct Mutation {
  1: bool isDelete = 0,
  2: Text column,
  3: Text value,
  4: bool writeToWAL = 1
}

struct BatchMutation {
  1: Text row,
  2: list<Mutation> mutations
}

// "ammount" is spelt so on purpose: it is the name that clients use.
struct TIncrement {
  1: Text table,
  2: Text row,
  3: Text column,
  4: i64 ammount
}

struct TColumn {
  1: Text columnName,
  2: TCell cell
}

// A scan with sortColumns fills sortedColumns, everything else fills columns.
struct TRowResult {
  1: Text row,
  2: optional map<Text, TCell> columns,
  3: optional list<TColumn> sortedColumns
}

struct TScan {
  1: optional Text startRow,
  2: optional Text stopRow,
  3: optional i64 timestamp,
  4: optional list<Text> columns,
  5: optional i32 caching,
  6: optional Text filterString,
  7: optional i32 batchSize,
  8: optional bool sortColumns,
  9: optional bool reversed,
  10: optional bool cacheBlocks
}

struct TAppend {
  1: Text table,
  2: Text row,
  3: list<Text> columns,
  4: list<Text> values
}

struct TAccessControlEntity {
  1: string username,
  2: TPermissionScope scope,
  4: string actions,
  5: optional Bytes tableName,
  6: optional string nsName
}

// The message begins with the class name of HBase's exception; canRetry is false where the
// same request must fail again.
exception IOError {
  1: string message,
  2: bool canRetry
}

exception IllegalArgument {
  1: string message
}

exception AlreadyExists {
  1: string message
}

service Hbase {
  // --- tables ---------------------------------------------------------------------------------
  void enableTable(1: Bytes tableName) throws (1: IOError io)
  void disableTable(1: Bytes tableName) throws (1: IOError io)
  bool isTableEnabled(1: Bytes tableName) throws (1: IOError io)
  void compact(1: Bytes tableNameOrRegionName) throws (1: IOError io)
  void majorCompact(1: Bytes tableNameOrRegionName) throws (1: IOError io)
  list<Text> getTableNames() throws (1: IOError io)
  map<Text, bool> getTableNamesWithIsTableEnabled() throws (1: IOError io)
  map<Text, ColumnDescriptor> getColumnDescriptors(1: Text tableName) throws (1: IOError io)
  list<TRegionInfo> getTableRegions(1: Text tableName) throws (1: IOError io)
  void createTable(1: Text tableName, 2: list<ColumnDescriptor> columnFamilies)
    throws (1: IOError io, 2: IllegalArgument ia, 3: AlreadyExists exist)
  void deleteTable(1: Text tableName) throws (1: IOError io)

  // --- one cell -------------------------------------------------------------------------------
  list<TCell> get(1: Text tableName, 2: Text row, 3: Text column, 4: map<Text, Text> attributes)
    throws (1: IOError io)
  list<TCell> getVer(1: Text tableName, 2: Text row, 3: Text column, 4: i32 numVersions,
    5: map<Text, Text> attributes) throws (1: IOError io)
  list<TCell> getVerTs(1: Text tableName, 2: Text row, 3: Text column, 4: i64 timestamp,
    5: i32 numVersions, 6: map<Text, Text> attributes) throws (1: IOError io)

  // --- whole rows; no columns means all of them --------------------------------------------------
  list<TRowResult> getRow(1: Text tableName, 2: Text row, 3: map<Text, Text> attributes)
    throws (1: IOError io)
  list<TRowResult> getRowWithColumns(1: Text tableName, 2: Text row, 3: list<Text> columns,
    4: map<Text, Text> attributes) throws (1: IOError io)
  list<TRowResult> getRowTs(1: Text tableName, 2: Text row, 3: i64 timestamp,
    4: map<Text, Text> attributes) throws (1: IOError io)
  list<TRowResult> getRowWithColumnsTs(1: Text tableName, 2: Text row, 3: list<Text> columns,
    4: i64 timestamp, 5: map<Text, Text> attributes) throws (1: IOError io)
  list<TRowResult> getRows(1: Text tableName, 2: list<Text> rows, 3: map<Text, Text> attributes)
    throws (1: IOError io)
  list<TRowResult> getRowsWithColumns(1: Text tableName, 2: list<Text> rows,
    3: list<Text> columns, 4: map<Text, Text> attributes) throws (1: IOError io)
  list<TRowResult> getRowsTs(1: Text tableName, 2: list<Text> rows, 3: i64 timestamp,
    4: map<Text, Text> attributes) throws (1: IOError io)
  list<TRowResult> getRowsWithColumnsTs(1: Text tableName, 2: list<Text> rows,
    3: list<Text> columns, 4: i64 timestamp, 5: map<Text, Text> attributes)
    throws (1: IOError io)

  // --- writes -----------------------------------------------------------------------------------
  void mutateRow(1: Text tableName, 2: Text row, 3: list<Mutation> mutations,
    4: map<Text, Text> attributes) throws (1: IOError io, 2: IllegalArgument ia)
  void mutateRowTs(1: Text tableName, 2: Text row, 3: list<Mutation> mutations,
    4: i64 timestamp, 5: map<Text, Text> attributes)
    throws (1: IOError io, 2: IllegalArgument ia)
  void mutateRows(1: Text tableName, 2: list<BatchMutation> rowBatches,
    3: map<Text, Text> attributes) throws (1: IOError io, 2: IllegalArgument ia)
  void mutateRowsTs(1: Text tableName, 2: list<BatchMutation> rowBatches, 3: i64 timestamp,
    4: map<Text, Text> attributes) throws (1: IOError io, 2: IllegalArgument ia)

  // --- counters ---------------------------------------------------------------------------------
  i64 atomicIncrement(1: Text tableName, 2: Text row, 3: Text column, 4: i64 value)
    throws (1: IOError io, 2: IllegalArgument ia)
  void increment(1: TIncrement increment) throws (1: IOError io)
  void incrementRows(1: list<TIncrement> increments) throws (1: IOError io)

  // --- deletes ----------------------------------------------------------------------------------
  void deleteAll(1: Text tableName, 2: Text row, 3: Text column, 4: map<Text, Text> attributes)
    throws (1: IOError io)
  void deleteAllTs(1: Text tableName, 2: Text row, 3: Text column, 4: i64 timestamp,
    5: map<Text, Text> attributes) throws (1: IOError io)
  void deleteAllRow(1: Text tableName, 2: Text row, 3: map<Text, Text> attributes)
    throws (1: IOError io)
  void deleteAllRowTs(1: Text tableName, 2: Text row, 3: i64 timestamp,
    4: map<Text, Text> attributes) throws (1: IOError io)

  // --- scanners ---------------------------------------------------------------------------------
  ScannerID scannerOpenWithScan(1: Text tableName, 2: TScan scan, 3: map<Text, Text> attributes)
    throws (1: IOError io)
  ScannerID scannerOpen(1: Text tableName, 2: Text startRow, 3: list<Text> columns,
    4: map<Text, Text> attributes) throws (1: IOError io)
  ScannerID scannerOpenWithStop(1: Text tableName, 2: Text startRow, 3: Text stopRow,
    4: list<Text> columns, 5: map<Text, Text> attributes) throws (1: IOError io)
  ScannerID scannerOpenWithPrefix(1: Text tableName, 2: Text startAndPrefix,
    3: list<Text> columns, 4: map<Text, Text> attributes) throws (1: IOError io)
  ScannerID scannerOpenTs(1: Text tableName, 2: Text startRow, 3: list<Text> columns,
    4: i64 timestamp, 5: map<Text, Text> attributes) throws (1: IOError io)
  ScannerID scannerOpenWithStopTs(1: Text tableName, 2: Text startRow, 3: Text stopRow,
    4: list<Text> columns, 5: i64 timestamp, 6: map<Text, Text> attributes)
    throws (1: IOError io)
  list<TRowResult> scannerGet(1: ScannerID id) throws (1: IOError io, 2: IllegalArgument ia)
  list<TRowResult> scannerGetList(1: ScannerID id, 2: i32 nbRows)
    throws (1: IOError io, 2: IllegalArgument ia)
  void scannerClose(1: ScannerID id) throws (1: IOError io, 2: IllegalArgument ia)

  // --- the rest ---------------------------------------------------------------------------------
  list<TCell> getRowOrBefore(1: Text tableName, 2: Text row, 3: Text family)
    throws (1: IOError io)
  TRegionInfo getRegionInfo(1: Text row) throws (1: IOError io)
  list<TCell> append(1: TAppend append) throws (1: IOError io)
  // Field 4 was never given out.  No value: the put happens if the cell is absent.
  bool checkAndPut(1: Text tableName, 2: Text row, 3: Text column, 5: Text value,
    6: Mutation mput, 7: map<Text, Text> attributes) throws (1: IOError io, 2: IllegalArgument ia)
  TThriftServerType getThriftServerType()
  string getClusterId()
}
