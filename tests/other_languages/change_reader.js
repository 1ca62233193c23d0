// A reader of change streams without any library of ours or of Thrift: it knows docs/formats/thrift.md and
// docs/formats/change-events.md alone.  It prints each event as a line of JSON, bytes in hexadecimal, and then the
// position.
//
//     node change_reader.js PORT TABLE START|0xPOSITION [--snapshot] [--images]

"use strict";
const net = require("net");

const [port, table, start, ...flags] = process.argv.slice(2);
const BOOL = 2, I32 = 8, I64 = 10, BINARY = 11, STRUCT = 12, LIST = 15;
const REPLY_BYTES = 64 * 1024 * 1024;

// --- Thrift's binary protocol, framed ------------------------------------------------------------------------------

const u8 = (n) => Buffer.from([n]);
const i16 = (n) => { const b = Buffer.alloc(2); b.writeInt16BE(n); return b; };
const i32 = (n) => { const b = Buffer.alloc(4); b.writeInt32BE(n); return b; };
const binary = (data) => Buffer.concat([i32(Buffer.byteLength(data)), Buffer.from(data)]);
const field = (type, id, value) => Buffer.concat([u8(type), i16(id), value]);
const STOP = u8(0);

function packCall(position) {
  const request = [
    position ? field(BINARY, 1, binary(position)) : field(BINARY, 2, binary(start)),
    field(BOOL, 9, u8(flags.includes("--images") ? 1 : 0)),
    field(BOOL, 10, u8(flags.includes("--images") ? 1 : 0)),
    field(BOOL, 11, u8(flags.includes("--snapshot") ? 1 : 0)),
    field(I32, 12, i32(1000)),
    field(I32, 13, i32(0)),
    STOP,
  ];
  const message = Buffer.concat([
    Buffer.from([0x80, 0x01, 0x00, 0x01]), binary("columnarChanges"), i32(1),
    field(BINARY, 1, binary(table)), field(STRUCT, 2, Buffer.concat(request)), STOP,
  ]);
  return Buffer.concat([i32(message.length), message]);
}

class Bytes {
  constructor(data) { this.data = data; this.at = 0; }
  take(count) {
    if (this.at + count > this.data.length) throw new Error("cut off");
    this.at += count;
    return this.data.subarray(this.at - count, this.at);
  }
  get left() { return this.data.length - this.at; }
}

function thriftValue(bytes, type) {
  switch (type) {
    case BOOL: return bytes.take(1)[0] !== 0;
    case I32: return bytes.take(4).readInt32BE();
    case I64: return bytes.take(8).readBigInt64BE();
    case BINARY: return bytes.take(bytes.take(4).readInt32BE());
    case STRUCT: return thriftStruct(bytes);
    case LIST: {
      const kind = bytes.take(1)[0];
      return Array.from({ length: bytes.take(4).readInt32BE() }, () => thriftValue(bytes, kind));
    }
    default: throw new Error(`Thrift's type ${type}`);
  }
}

function thriftStruct(bytes) {
  const found = {};
  for (let type = bytes.take(1)[0]; type !== 0; type = bytes.take(1)[0]) {
    const id = bytes.take(2).readInt16BE();
    found[id] = thriftValue(bytes, type);
  }
  return found;
}

function replyOf(message) {
  const bytes = new Bytes(message);
  const kind = bytes.take(4)[3];
  bytes.take(bytes.take(4).readInt32BE() + 4);
  const result = thriftStruct(bytes);
  if (kind !== 2 || !result[0]) throw new Error(`refused: ${String((result[1] || result[2] || result)[1])}`);
  return { events: result[0][1], position: result[0][2] };
}

// --- msgpack -------------------------------------------------------------------------------------------------------

function unpack(bytes) {
  const head = bytes.take(1)[0];
  if (head < 0x80) return head;
  if (head >= 0xe0) return head - 0x100;
  if (head < 0x90) return unpackMap(bytes, head & 0x0f);
  if (head < 0xa0) return unpackArray(bytes, head & 0x0f);
  if (head < 0xc0) return bytes.take(head & 0x1f).toString();
  switch (head) {
    case 0xc0: return null;
    case 0xc2: return false;
    case 0xc3: return true;
    case 0xc4: return bytes.take(bytes.take(1).readUInt8());
    case 0xc5: return bytes.take(bytes.take(2).readUInt16BE());
    case 0xc6: return bytes.take(bytes.take(4).readUInt32BE());
    case 0xcc: return bytes.take(1).readUInt8();
    case 0xcd: return bytes.take(2).readUInt16BE();
    case 0xce: return bytes.take(4).readUInt32BE();
    case 0xcf: return bytes.take(8).readBigUInt64BE();
    case 0xd0: return bytes.take(1).readInt8();
    case 0xd1: return bytes.take(2).readInt16BE();
    case 0xd2: return bytes.take(4).readInt32BE();
    case 0xd3: return bytes.take(8).readBigInt64BE();
    case 0xdc: return unpackArray(bytes, bytes.take(2).readUInt16BE());
    case 0xdd: return unpackArray(bytes, bytes.take(4).readUInt32BE());
    case 0xde: return unpackMap(bytes, bytes.take(2).readUInt16BE());
    case 0xdf: return unpackMap(bytes, bytes.take(4).readUInt32BE());
    default: throw new Error(`msgpack's ${head.toString(16)}`);
  }
}

const unpackArray = (bytes, count) => Array.from({ length: count }, () => unpack(bytes));
const unpackMap = (bytes, count) =>
  Array.from({ length: count }, () => [unpack(bytes), unpack(bytes)]).sort((one, other) => Buffer.compare(one[0], other[0]));

const shown = (value) =>
  Buffer.isBuffer(value) ? value.toString("hex")
    : Array.isArray(value) ? value.map(shown)
    : typeof value === "bigint" ? Number(value) : value;

// --- the stream ----------------------------------------------------------------------------------------------------

const KINDS = { 1: 8, 2: 4, 3: 3 };  // kind -> elements that are known; further ones are ignored

function print(events) {
  const bytes = new Bytes(events);
  while (bytes.left > 0) {
    const event = unpack(bytes);
    if (event[0] in KINDS) console.log(JSON.stringify(shown(event.slice(0, KINDS[event[0]]))));
  }
}

const socket = net.connect(Number(port), "127.0.0.1");
let position = start.startsWith("0x") ? Buffer.from(start.slice(2), "hex") : null;
let received = Buffer.alloc(0);
socket.on("connect", () => socket.write(packCall(position)));
socket.on("error", (error) => { throw error; });
socket.on("data", (data) => {
  received = Buffer.concat([received, data]);
  if (received.length < 4) return;
  const size = received.readUInt32BE();
  if (size > REPLY_BYTES) throw new Error(`an answer of ${size} bytes`);
  if (received.length < 4 + size) return;
  const reply = replyOf(received.subarray(4, 4 + size));
  received = received.subarray(4 + size);
  print(reply.events);
  position = reply.position;
  if (reply.events.length > 0) {
    socket.write(packCall(position));
  } else {
    console.log(JSON.stringify(position.toString("hex")));
    socket.end();
  }
});
