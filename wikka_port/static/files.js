// Files are sent in parts, so an upload continues after a break of the network, and shows how far it is.  Without this
// file the form sends them whole.  The protocol is tus 1.0 (handlers/upload.py).
"use strict";
(() => {
  const { _ } = wikkaTexts;
  const PART_BYTES = 8 * 2 ** 20;
  const PAUSES_MS = [1_000, 2_000, 4_000, 8_000, 15_000, 30_000];
  const TRIES = 40; // of one part, in some 20 minutes
  const form = document.querySelector("form.upload");
  const input = form?.querySelector("input[type=file]");
  if (!input) return;

  class Refused extends Error {} // for good: the same request would be refused again
  const field = (name) => form.elements.namedItem(name);
  const common = () => ({ "Tus-Resumable": "1.0.0", "X-Form-Token": field("csrf").value });
  const base64 = (text) => btoa(String.fromCharCode(...new TextEncoder().encode(text)));
  const isPassing = (status) => status >= 500 || [408, 409, 423, 429].includes(status);

  const metadata = (file) => {
    const chosen = ["note", "alt", "replaces", "replace", "keep-metadata"].map(field)
      .filter((one) => one && (one.type !== "checkbox" || one.checked)).map((one) => [one.name, one.value]);
    return [["filename", file.name], ...chosen].map(([key, value]) => `${key} ${base64(value)}`).join(",");
  };

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
      try { answer = await send(tries); } catch { signal.throwIfAborted(); }
      if (answer?.ok) return answer;
      if (answer && !isPassing(answer.status)) throw await reasonOf(answer);
      say(answer ? _("The wiki is busy; the upload continues by itself.") : _("The connection is broken; the upload continues by itself."));
      await sleep(PAUSES_MS[Math.min(tries, PAUSES_MS.length - 1)], signal);
      signal.throwIfAborted();
    }
    throw new Refused(_("The wiki could not be reached for long."));
  };

  /** Sends one file; ``show(bytes)`` shows how far it is.  Throws Refused, or the reason of ``signal``. */
  const sendFile = async (file, show, say, signal) => {
    if (!file.size) throw new Refused(_("The file is empty."));
    const headers = { "Upload-Length": file.size, "Upload-Metadata": metadata(file) };
    const begun = await retried(() => fetch(form.action, { method: "POST", headers: { ...common(), ...headers }, signal }), say, signal);
    const place = begun.headers.get("Location");
    let offset = 0;
    const part = async (tries) => {
      if (tries) {
        const head = await fetch(place, { method: "HEAD", headers: common(), signal });
        if (head.status === 404 && offset + PART_BYTES >= file.size) return new Response(null); // the last answer was lost
        if (!head.ok) return head;
        offset = Number(head.headers.get("Upload-Offset"));
        show(offset);
      }
      return fetch(place, { method: "PATCH", signal, body: file.slice(offset, offset + PART_BYTES),
        headers: { ...common(), "Upload-Offset": offset, "Content-Type": "application/offset+octet-stream" } });
    };
    try {
      while (offset < file.size) {
        const answer = await retried(part, say, signal);
        offset = Number(answer.headers.get("Upload-Offset") ?? file.size);
        show(offset);
        say("");
      }
    } catch (error) {
      if (signal.aborted) fetch(place, { method: "DELETE", headers: common() }).catch(() => {});
      throw error;
    }
  };

  const lineOf = (file, list) => {
    const line = document.createElement("li");
    const bar = document.createElement("progress");
    const said = document.createElement("span");
    Object.assign(bar, { max: file.size || 1, value: 0 });
    bar.setAttribute("aria-label", file.name);
    said.className = "hint";
    line.append(`${file.name} `, bar, " ", said);
    list.append(line);
    return { show: (bytes) => { bar.value = bytes; }, say: (text) => { said.textContent = text; }, end: () => bar.remove() };
  };

  const sendAll = async (files, list, signal) => {
    let added = 0;
    const lines = files.map((file) => lineOf(file, list));
    for (const [index, file] of files.entries()) {
      const { show, say, end } = lines[index];
      try {
        await sendFile(file, show, say, signal);
        added += 1;
        say(_("Added."));
      } catch (error) {
        say(error instanceof Refused ? `${_("Not added:")} ${error.message}` : _("Stopped."));
      }
      end();
    }
    return added;
  };

  form.addEventListener("submit", async (event) => {
    const files = [...input.files];
    if (!files.length) return;
    event.preventDefault();
    const running = new AbortController();
    const list = document.createElement("ul");
    const stop = document.createElement("button");
    const send = form.querySelector("button[type=submit]");
    list.className = "uploads";
    list.setAttribute("aria-live", "polite");
    Object.assign(stop, { type: "button", textContent: _("Stop") });
    stop.addEventListener("click", () => running.abort());
    form.querySelector(".uploads")?.remove();
    form.querySelector(".actions").append(stop);
    form.append(list);
    send.disabled = true;
    addEventListener("beforeunload", (leaving) => leaving.preventDefault(), { signal: running.signal });
    const added = await sendAll(files, list, running.signal);
    running.abort();
    send.disabled = false;
    stop.remove();
    input.value = "";
    if (added === files.length) location.assign(`${form.getAttribute("action")}?added=${added}`);
  });
})();
