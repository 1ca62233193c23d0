// Pasted, dropped and chosen files: the text names each at once, and the page gets it meanwhile (uploads.js).
"use strict";
(() => {
  const { _ } = wikkaTexts;
  const FILES_MAX = 20; // at once
  const WORDS_CHARS_MAX = 500; // that say what a picture shows
  const NAMELESS = /^(image|picture|blob|unknown)?\.?(png|jpe?g|gif|webp)?$/i; // what browsers call a picture that has no name

  /** The files of a paste; none if it has words, too: office programs add a picture of the words. */
  wikkaEditor.pastedFiles = (transfer) => {
    const words = transfer.getData("text/plain") + transfer.getData("text/html").replace(/<[^>]*>/g, "");
    return words.trim() ? [] : [...transfer.files];
  };

  /** The name as the wiki will clean it; a picture without a name gets the time. */
  function fitting(file) {
    const ending = /\.[A-Za-z0-9]{1,8}$/.exec(file.name)?.[0] ?? `.${file.type.split("/")[1] ?? "bin"}`;
    const time = new Date().toISOString().slice(0, 19).replace("T", " ").replaceAll(":", ".");
    const name = NAMELESS.test(file.name) ? `${time}${ending}` : file.name;
    return name.normalize("NFC").replace(/[<>:"|?*[\]{}#%\\/~^`]/g, "-").replace(/\s+/g, " ").trim();
  }

  const mark = (name) => `[[${name}]]`;

  /** Puts ``made`` in the place of ``old``, and leaves the selection where it is; nothing where ``old`` stands more than once. */
  function replaced(area, old, made) {
    const at = area.value.indexOf(old);
    if (at < 0 || area.value.indexOf(old, at + 1) >= 0) return;
    area.setRangeText(made, at, at + old.length, "preserve");
    area.dispatchEvent(new InputEvent("input", { bubbles: true }));
  }

  const button = (text, type, className) => Object.assign(document.createElement("button"), { type, textContent: text, className });

  /** Sends the words of ``box`` to the page of files; what could not be saved stays typed. */
  async function saveWords(form, box, say) {
    const typed = [...box.querySelectorAll("input")].filter((one) => one.value.trim());
    const sent = new URLSearchParams({ csrf: form.elements.namedItem("csrf").value, describe: "1" });
    for (const one of typed) {
      sent.append("file", one.dataset.file);
      sent.append("alt", one.value);
    }
    let isSaved = !typed.length;
    try { isSaved ||= (await fetch(form.dataset.files, { method: "POST", body: sent })).ok; } catch { /* said below */ }
    if (isSaved) box.remove();
    if (!isSaved) say(_("The descriptions were not saved. Try again, or use the page of files."), true);
    else if (typed.length) say(_("The descriptions are saved."), false);
  }

  function boxOfWords(form, say) {
    const box = document.createElement("form");
    box.className = "banner asked";
    box.setAttribute("aria-labelledby", "asked-title");
    const head = document.createElement("p");
    head.id = "asked-title";
    head.textContent = _("What do the new pictures show? People who cannot see them hear or read these words.");
    const actions = document.createElement("div");
    actions.className = "actions";
    const later = button(_("Later"), "button", "quiet");
    later.addEventListener("click", () => box.remove());
    actions.append(button(_("Save the descriptions"), "submit", ""), later);
    box.append(head, actions);
    box.addEventListener("submit", (event) => {
      event.preventDefault();
      event.stopPropagation(); // it is not the text that is sent
      saveWords(form, box, say);
    });
    form.before(box);
    return box;
  }

  /** Asks what the pictures ``names`` show, beside the text and not in its way. */
  function askWords(form, names, say) {
    const box = document.querySelector(".banner.asked") ?? boxOfWords(form, say);
    for (const name of names) {
      const field = document.createElement("label");
      const one = document.createElement("input");
      field.className = "field";
      Object.assign(one, { maxLength: WORDS_CHARS_MAX, autocomplete: "off" });
      one.dataset.file = name;
      field.append(name, " ", one);
      box.lastElementChild.before(field);
    }
  }

  /** Adds ``files`` to the page, each in its turn; ``words`` has what each shows, ``put(text)`` writes their names,
   *  ``say(text, isProblem)`` shows how far they are. */
  wikkaEditor.addFiles = async (form, area, files, words, put, say, signal) => {
    const address = form.dataset.files;
    if (!address) { say(_("Files are added by people who may edit the page."), true); return; }
    const named = [];
    for (const file of files.slice(0, FILES_MAX)) {
      const taken = named.map((one) => one.name);
      let name = fitting(file);
      for (let n = 2; taken.includes(name); n += 1) name = fitting(file).replace(/(\.[^.]*)?$/, ` ${n}$1`);
      named.push(new File([file], name, { type: file.type }));
    }
    put(named.map((one) => mark(one.name)).join(" "));
    const failed = [];
    const silent = []; // pictures without words
    for (const [index, file] of named.entries()) {
      const show = (bytes) => say(_("{name}: {percent} % are sent.", { name: file.name, percent: Math.floor(bytes * 100 / file.size) }), false);
      const alt = words[index] ?? "";
      const to = { address, token: form.elements.namedItem("csrf").value, fields: alt ? { alt } : {} };
      try {
        show(0);
        const made = await wikkaUploads.send(file, to, { show, say: (text) => text && say(`${file.name}: ${text}`, false), signal });
        const name = made ? decodeURIComponent(made.split("/").at(-1)) : file.name;
        if (name !== file.name) replaced(area, mark(file.name), mark(name));
        if (!alt && file.type.startsWith("image/")) silent.push(name);
      } catch (error) {
        if (signal.aborted) return;
        failed.push(`${file.name}: ${error instanceof wikkaUploads.Refused ? error.message : _("it could not be sent")}`);
      }
    }
    if (files.length > FILES_MAX) failed.push(_("only {most} files are taken at once.", { most: FILES_MAX }));
    if (silent.length) askWords(form, silent, say);
    if (failed.length) say(`${_("Not added:")} ${failed.join(" ")}`, true);
    else say(form.dataset.new ? _("Added. They become files of the page when it is saved.") : _("Added to the page’s files."), false);
  };
})();
