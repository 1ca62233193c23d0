// The bar above the text: one stop of the Tab key, arrows within; each button with its key.
"use strict";
(() => {
  const { _ } = wikkaTexts;
  const IS_MAC = /Mac|iPhone|iPad/.test(navigator.platform);
  const DRAWN = {
    bold: "M6 4h5a3 3 0 0 1 0 6H6zM6 10h6a3 3 0 0 1 0 6H6z",
    italic: "M9 4h6M5 16h6M12 4 8 16",
    heading: "M5 4v12M15 4v12M5 10h10",
    link: "M8.5 11.5a3 3 0 0 0 4.2 0l2.6-2.6a3 3 0 0 0-4.2-4.2L10 5.8M11.5 8.5a3 3 0 0 0-4.2 0l-2.6 2.6a3 3 0 0 0 4.2 4.2l1.1-1.1",
    bullets: "M8 5h9M8 10h9M8 15h9M3.5 5h.01M3.5 10h.01M3.5 15h.01",
    numbers: "M9 5h8M9 10h8M9 15h8M3 4l1.2-.8V8M2.8 12.4c1-1.4 2.6-.4 1.8.9L2.8 16h2.4",
    table: "M3 4h14v12H3zM3 8h14M3 12h14M10 4v12",
    code: "m7 6-4 4 4 4M13 6l4 4-4 4",
    picture: "M3 4h14v12H3zM3 14l4-4 3 3 3-4 4 5M7 7.5h.01",
    undo: "M7 4 3 8l4 4M3 8h8a5 5 0 0 1 0 10H8",
    redo: "m13 4 4 4-4 4M17 8H9a5 5 0 0 0 0 10h3",
    preview: "M2 10s3-5.5 8-5.5S18 10 18 10s-3 5.5-8 5.5S2 10 2 10zM10 7.8a2.2 2.2 0 1 1 0 4.4 2.2 2.2 0 0 1 0-4.4",
  };

  // [what, name, key]; a key is Ctrl (Cmd) and what stands here, by its place on the keyboard
  wikkaEditor.TOOLS = [
    ["bold", _("Bold"), "KeyB"], ["italic", _("Italic"), "KeyI"], ["heading", _("Heading"), "Alt+Digit2"],
    ["link", _("Link"), "KeyK"],
    null,
    ["bullets", _("List"), "Alt+Digit8"], ["numbers", _("Numbered list"), "Alt+Digit7"],
    ["table", _("Table"), "Alt+Digit9"], ["code", _("Code"), "KeyE"], ["picture", _("Picture"), "Alt+Digit0"],
    null,
    ["undo", _("Undo"), "KeyZ"], ["redo", _("Redo"), "Shift+KeyZ"],
    null,
    ["preview", _("Preview"), "Alt+KeyP"],
  ];

  /** The tool that a key is for; AltGr, which types letters, is none. */
  wikkaEditor.toolOf = (event) => {
    if (!(IS_MAC ? event.metaKey : event.ctrlKey) || event.getModifierState("AltGraph")) return null;
    const pressed = `${event.altKey ? "Alt+" : ""}${event.shiftKey ? "Shift+" : ""}${event.code}`;
    return wikkaEditor.TOOLS.find((tool) => tool && tool[2] === pressed)?.[0] ?? null;
  };

  function shownKey(key, isSpoken) {
    const parts = key.split("+").map((part) => part.replace(/^(Key|Digit)/, ""));
    if (isSpoken) return [IS_MAC ? "Meta" : "Control", ...parts].join("+");
    if (IS_MAC) return `⌘${parts.join("").replace("Alt", "⌥").replace("Shift", "⇧")}`;
    return [_("Ctrl"), ...parts.map((part) => (part === "Shift" ? _("Shift") : part))].join("+");
  }

  function drawn(what) {
    const picture = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
    for (const [name, value] of [["viewBox", "0 0 20 20"], ["width", "18"], ["height", "18"], ["aria-hidden", "true"]]) picture.setAttribute(name, value);
    path.setAttribute("d", DRAWN[what]);
    picture.append(path);
    return picture;
  }

  wikkaEditor.toolbar = (area, run, signal) => {
    const bar = document.createElement("div");
    bar.className = "toolbar";
    bar.setAttribute("role", "toolbar");
    bar.setAttribute("aria-label", _("Writing"));
    bar.setAttribute("aria-controls", area.id);
    const buttons = [];
    for (const tool of wikkaEditor.TOOLS) {
      if (!tool) {
        const gap = document.createElement("span");
        gap.className = "gap";
        bar.append(gap);
        continue;
      }
      const [what, name, key] = tool;
      const button = document.createElement("button");
      button.type = "button";
      button.dataset.tool = what;
      button.tabIndex = buttons.length ? -1 : 0;
      button.title = `${name} (${shownKey(key, false)})`;
      button.setAttribute("aria-label", name);
      button.setAttribute("aria-keyshortcuts", shownKey(key, true));
      button.append(drawn(what));
      button.addEventListener("click", () => { focusOn(button, false); run(what); }, { signal });
      buttons.push(button);
      bar.append(button);
    }
    const focusOn = (button, isMoved) => {
      for (const one of buttons) one.tabIndex = one === button ? 0 : -1;
      if (isMoved) button.focus();
    };
    // A press of the mouse leaves the focus and the selection in the text.
    bar.addEventListener("mousedown", (event) => event.preventDefault(), { signal });
    bar.addEventListener("keydown", (event) => {
      const at = buttons.indexOf(document.activeElement);
      const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: buttons.length - 1 }[event.key];
      if (at < 0 || to === undefined) return;
      event.preventDefault();
      focusOn(buttons[(to + buttons.length) % buttons.length], true);
    }, { signal });
    return bar;
  };

  /** Asks for the address of a picture, or for a file; calls ``put(address, words)`` or ``add(files, words)``. */
  wikkaEditor.askPicture = (put, back, add) => {
    const dialog = document.createElement("dialog");
    dialog.className = "ask";
    dialog.setAttribute("aria-labelledby", "ask-title");
    const form = document.createElement("form");
    form.method = "dialog";
    const title = document.createElement("h2");
    title.id = "ask-title";
    title.textContent = _("Picture");
    form.append(title);
    const input = (name, label, type, hint) => {
      const field = document.createElement("label");
      field.className = "field";
      const one = document.createElement("input");
      Object.assign(one, { type, name, placeholder: hint, autocomplete: "off" });
      field.append(label, one);
      form.append(field);
      return one;
    };
    const chosen = add ? input("file", _("From this device"), "file", "") : null;
    if (chosen) Object.assign(chosen, { accept: "image/*", multiple: true });
    const address = input("address", chosen ? _("Or its address") : _("Address"), "url", "https://");
    address.required = true;
    address.pattern = "https?://.+";
    chosen?.addEventListener("change", () => { address.required = !chosen.files.length; });
    const words = input("words", _("What it shows, for those who do not see it"), "text", "");
    const each = []; // the same of several pictures
    chosen?.addEventListener("change", () => {
      for (const one of each.splice(0)) one.parentNode.remove();
      words.parentNode.hidden = chosen.files.length > 1;
      if (chosen.files.length < 2) return;
      for (const file of chosen.files) each.push(input("words", _("What {name} shows", { name: file.name }), "text", ""));
      form.append(actions);
    });
    const actions = document.createElement("div");
    actions.className = "actions";
    const insert = document.createElement("button");
    Object.assign(insert, { type: "submit", value: "put", className: "primary", textContent: _("Insert") });
    const cancel = document.createElement("button");
    Object.assign(cancel, { type: "button", className: "quiet", textContent: _("Cancel") });
    cancel.addEventListener("click", () => dialog.close(""));
    actions.append(insert, cancel);
    form.append(actions);
    dialog.append(form);
    dialog.addEventListener("close", () => {
      dialog.remove();
      back();
      if (dialog.returnValue !== "put") return;
      if (chosen?.files.length) add([...chosen.files], (each.length ? each : [words]).map((one) => one.value.trim()));
      else put(address.value.trim(), words.value.trim());
    });
    document.body.append(dialog);
    dialog.showModal();
  };
})();
