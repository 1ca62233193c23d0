// Files sent in parts, so an upload continues after a break of the network.  The protocol is tus 1.0 (handlers/upload.py).
//
//   wikkaUploads.send(file, to, { show, say, signal })   to: { address, token, fields }; the address of the new file
//   wikkaUploads.Refused                                 the wiki does not take the file; its message says why
"use strict";
const wikkaUploads = (() => {
  const { _ } = wikkaTexts;
  const PART_BYTES = 8 * 2 ** 20;
  const PAUSES_MS = [1_000, 2_000, 4_000, 8_000, 15_000, 30_000];
  const TRIES = 40; // of one part, in some 20 minutes

  class Refused extends Error {} // for good: the same request would be refused again
  const common = (to) => ({ "Tus-Resumable": "1.0.0", "X-Form-Token": to.token });
  const base64 = (text) => btoa(String.fromCharCode(...new TextEncoder().encode(text)));
  const isPassing = (status) => status >= 500 || [408, 409, 423, 429].includes(status);

  const metadata = (file, fields) => (
    Object.entries({ filename: file.name, ...fields }).map(([key, value]) => `${key} ${base64(value)}`).join(","));

  const reasonOf = async (answer) => {
    const isText = (answer.headers.get("Content-Type") ?? "").startsWith("text/plain");
    return new Refused(isText ? (await answer.text()).trim() : _("The wiki refused it ({status}).", { status: answer.status }));
  };

  const sleep = (ms, signal) => new Promise((done) => {
    setTimeout(done, ms);
    addEventListener("online", done, { signal, once: true });
    signal.addEventListener("abort", done, { once: true });
  });

  /** Calls ``send`` until its answer is no passing failure; ``say`` shows that it waits. */
  const retried = async (send, say, signal) => {
    for (let tries = 0; tries < TRIES; tries += 1) {
      let answer = null;
      try { answer = await send(tries); } catch (error) {
        if (error instanceof Refused) throw error;
        signal.throwIfAborted();
      }
      if (answer?.ok) return answer;
      if (answer && !isPassing(answer.status)) throw await reasonOf(answer);
      say(answer ? _("The wiki is busy; the upload continues by itself.") : _("The connection is broken; the upload continues by itself."));
      await sleep(PAUSES_MS[Math.min(tries, PAUSES_MS.length - 1)], signal);
      signal.throwIfAborted();
    }
    throw new Refused(_("The wiki could not be reached for long."));
  };

  /** Sends one file; ``show(bytes)`` shows how far it is, ``say(text)`` why it waits.  Throws Refused, or the reason of ``signal``. */
  const send = async (file, to, { show, say, signal }) => {
    if (!file.size) throw new Refused(_("The file is empty."));
    const headers = { ...common(to), "Upload-Length": file.size, "Upload-Metadata": metadata(file, to.fields) };
    const begun = await retried(() => fetch(to.address, { method: "POST", headers, signal }), say, signal);
    const place = begun.headers.get("Location");
    let offset = 0;
    let made = "";
    const part = async (tries) => {
      if (tries) {
        const head = await fetch(place, { method: "HEAD", headers: common(to), signal });
        if (head.status === 404) throw new Refused(_("The upload has ended, and no such file of yours is seen. Look among the files of the page before you send it again."));
        if (!head.ok) return head;
        offset = Number(head.headers.get("Upload-Offset"));
        show(offset);
        if (head.headers.has("Content-Location")) return head; // only the last answer was lost: the file is there
      }
      return fetch(place, { method: "PATCH", signal, body: file.slice(offset, offset + PART_BYTES),
        headers: { ...common(to), "Upload-Offset": offset, "Content-Type": "application/offset+octet-stream" } });
    };
    try {
      while (offset < file.size) {
        const answer = await retried(part, say, signal);
        offset = Number(answer.headers.get("Upload-Offset") ?? file.size);
        made = answer.headers.get("Content-Location") ?? "";
        show(offset);
        say("");
      }
    } catch (error) {
      if (signal.aborted) fetch(place, { method: "DELETE", headers: common(to) }).catch(() => {});
      throw error;
    }
    return made;
  };

  return { send, Refused };
})();
