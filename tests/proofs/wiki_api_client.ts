// What a program does with the wiki's API, by the client that was generated from its description.
import assert from "node:assert/strict";
import { client } from "./client/client.gen.js";
import * as wiki from "./client/sdk.gen.js";
import type { PageRecord, TextUnderReview } from "./client/types.gen.js";

const [, , baseUrl, key] = process.argv;
client.setConfig({ baseUrl, auth: () => key });

/** The page in an answer to a save; a text that waits for an administrator would be none. */
function saved(data: PageRecord | TextUnderReview | undefined): PageRecord {
  assert.ok(data !== undefined && "etag" in data, JSON.stringify(data));
  return data;
}

const me = await wiki.readMe();
assert.equal(me.data?.name, "Rita");

const name = "Notes/By TypeScript";
const made = await wiki.writePage({
  query: { name },
  headers: { "If-None-Match": "*" },
  body: { text: "One [[Link]].", note: "made" },
});
assert.equal(made.response?.status, 201, JSON.stringify(made.error));
assert.equal(saved(made.data).signed, "key");
const etag = saved(made.data).etag;

const changed = await wiki.writePage({ query: { name }, headers: { "If-Match": etag }, body: { text: "Two." } });
assert.equal(saved(changed.data).number, 2);
const late = await wiki.writePage({ query: { name }, headers: { "If-Match": etag }, body: { text: "Lost?" } });
assert.equal(late.response?.status, 412);
assert.equal(late.error?.current?.text, "Two.");

const revisions = await wiki.listRevisions({ query: { name } });
assert.deepEqual(revisions.data?.revisions.map((one) => one.number), [2, 1]);
const first = await wiki.readRevision({ query: { name, number: 1 } });
assert.equal(first.data?.text, "One [[Link]].");

const stored = await wiki.writeContent({
  query: { page: name, name: "Plan.txt", alt: "a plan" },
  headers: { "If-None-Match": "*" },
  body: new Blob(["a plan\n"]),
});
assert.equal(stored.response?.status, 201, JSON.stringify(stored.error));
const content = await wiki.readContent({ query: { page: name, name: "Plan.txt" }, parseAs: "text" });
assert.equal(content.data, "a plan\n");

const removed = await wiki.removeFile({ query: { page: name, name: "Plan.txt" }, headers: { "If-Match": "*" } });
assert.deepEqual(removed.data?.used_on, [], JSON.stringify(removed.error));
const kept = await wiki.eraseVersion({ query: { page: name, name: "Plan.txt", version: 1, sure: true } });
assert.equal(kept.response?.status, 403);

const found = await wiki.search({ query: { q: "Two" } });
assert.ok(found.data?.hits.some((hit) => hit.name === name));
const changes = await wiki.listChanges({ query: { limit: 500 } });
assert.ok(changes.data?.changes.some((one) => one.name === name && one.number === 2));

const moved = await wiki.movePage({
  query: { name },
  headers: { "If-Match": saved(changed.data).etag },
  body: { to: "Notes/Moved", redirect: false },
});
assert.equal(moved.data?.name, "Notes/Moved", JSON.stringify(moved.error));
assert.equal((await wiki.readPage({ query: { name } })).response?.status, 404);
const page = await wiki.readPage({ query: { name: "Notes/Moved" } });
assert.equal(page.data?.text, "Two.");
const gone = await wiki.deletePage({ query: { name: "Notes/Moved" }, headers: { "If-Match": page.data!.etag } });
assert.equal(gone.data?.name, "Notes/Moved", JSON.stringify(gone.error));
const followed = await wiki.listChanges({ query: { limit: 500 } });
const moves = followed.data?.changes.filter((one) => one.kind !== "edit" && one.name === "Notes/Moved");
assert.deepEqual(moves?.map((one) => [one.kind, one.former, one.number]), [["renamed", name, 2], ["deleted", null, 2]]);
const refused = await wiki.readRights({ query: { name: "HomePage" } });
assert.equal(refused.response?.status, 403);
