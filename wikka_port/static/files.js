// The form for files sends each of them in parts and shows how far it is.  Without this file it sends them whole.
"use strict";
(() => {
  const { _ } = wikkaTexts;
  const DESCRIBED_MAX = 20; // pictures that are asked about at once
  const WORDS_CHARS_MAX = 500;
  const form = document.querySelector("form.upload");
  const input = form?.querySelector("input[type=file]");
  if (!input) return;
  const field = (name) => form.elements.namedItem(name);

  const words = new Map(); // what each of several pictures shows: a field by file

  /** Asks what each of several pictures shows; one has the field of the form. */
  const askWords = () => {
    form.querySelector(".each")?.remove();
    words.clear();
    const pictures = [...input.files].filter((one) => one.type.startsWith("image/"));
    const common = field("alt")?.closest("label");
    if (!common) return;
    common.hidden = pictures.length > 1;
    if (pictures.length < 2) return;
    const box = document.createElement("fieldset");
    const legend = document.createElement("legend");
    box.className = "each";
    legend.textContent = _("What the pictures show (alt text)");
    box.append(legend);
    for (const file of pictures.slice(0, DESCRIBED_MAX)) {
      const label = document.createElement("label");
      const one = document.createElement("input");
      label.className = "field";
      Object.assign(one, { maxLength: WORDS_CHARS_MAX, autocomplete: "off" });
      label.append(file.name, " ", one);
      box.append(label);
      words.set(file, one);
    }
    form.querySelector(".actions").before(box);
  };
  input.addEventListener("change", askWords);

  /** The page and the fields of the form, as they are now for ``file``. */
  const to = (file) => {
    const chosen = ["note", "alt", "replaces", "replace", "keep-metadata"].map(field)
      .filter((one) => one && (one.type !== "checkbox" || one.checked)).map((one) => [one.name, one.value]);
    const fields = Object.fromEntries(chosen);
    if (words.size) fields.alt = words.get(file)?.value ?? "";
    return { address: form.action, token: field("csrf").value, fields };
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
        await wikkaUploads.send(file, to(file), { show, say, signal });
        added += 1;
        say(_("Added."));
      } catch (error) {
        say(error instanceof wikkaUploads.Refused ? `${_("Not added:")} ${error.message}` : _("Stopped."));
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
    askWords();
    if (added === files.length) location.assign(`${form.getAttribute("action")}?added=${added}`);
  });
})();
