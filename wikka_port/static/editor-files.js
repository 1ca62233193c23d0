// Pasted, dropped and chosen files: the text names each at once, and the page gets it meanwhile (uploads.js).
"use strict";
(() => {
  const { _ } = wikkaTexts;
  const FILES_MAX = 20; // at once
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

  /** Adds ``files`` to the page, each in its turn; ``put(text)`` writes their names, ``say(text, isProblem)`` shows how far they are. */
  wikkaEditor.addFiles = async (form, area, files, words, put, say, signal) => {
    const address = form.dataset.files;
    if (!address) { say(_("Files can be added here when the page is saved and you may edit it."), true); return; }
    const named = [];
    for (const file of files.slice(0, FILES_MAX)) {
      const taken = named.map((one) => one.name);
      let name = fitting(file);
      for (let n = 2; taken.includes(name); n += 1) name = fitting(file).replace(/(\.[^.]*)?$/, ` ${n}$1`);
      named.push(new File([file], name, { type: file.type }));
    }
    put(named.map((one) => mark(one.name)).join(" "));
    const failed = [];
    for (const file of named) {
      const show = (bytes) => say(_("{name}: {percent} % are sent.", { name: file.name, percent: Math.floor(bytes * 100 / file.size) }), false);
      const to = { address, token: form.elements.namedItem("csrf").value, fields: words ? { alt: words } : {} };
      try {
        show(0);
        const made = await wikkaUploads.send(file, to, { show, say: (text) => text && say(`${file.name}: ${text}`, false), signal });
        const name = made ? decodeURIComponent(made.split("/").at(-1)) : file.name;
        if (name !== file.name) replaced(area, mark(file.name), mark(name));
      } catch (error) {
        if (signal.aborted) return;
        failed.push(`${file.name}: ${error instanceof wikkaUploads.Refused ? error.message : _("it could not be sent")}`);
      }
    }
    if (files.length > FILES_MAX) failed.push(_("only {most} files are taken at once.", { most: FILES_MAX }));
    if (failed.length) say(`${_("Not added:")} ${failed.join(" ")}`, true);
    else say(_("Added to the page’s files."), false);
  };
})();
