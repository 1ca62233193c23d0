// The page of work on many pages shows in its place how far it is.  Without this file a link shows the page anew.
//
// The focus stays where it is, and a message of the wiki stays, too: only the parts named by data-part are replaced.
"use strict";
(() => {
  const { _ } = wikkaTexts;
  const PAUSE_MS = 2_000;
  const PAUSE_MAX_MS = 30_000; // while the wiki does not answer
  const job = document.querySelector("[data-job=open]");
  if (!job) return;
  const part = (within, name) => within.querySelector(`[data-part=${name}]`);
  const [bar, said, actions, lists] = ["bar", "said", "actions", "lists"].map((name) => part(job, name));
  const switched = document.createElement("label");
  const box = document.createElement("input");
  let pause = PAUSE_MS;
  let timer = 0;
  let newest = null; // the last answer's lists, until they are shown

  /** The job in the page at ``address``.  The browser parses the page: the wiki's policy lets no script do it. */
  const asked = (address) => new Promise((done, failed) => {
    const request = new XMLHttpRequest();
    request.open("GET", address);
    Object.assign(request, { responseType: "document", timeout: PAUSE_MAX_MS, onerror: failed, ontimeout: failed });
    request.onload = () => {
      const found = request.status === 200 ? request.response?.querySelector("[data-job]") : null;
      if (found) done(found);
      else failed(new Error(`the wiki answers ${request.status}`));
    };
    request.send();
  });

  const isInside = (place) => place.contains(document.activeElement);
  const showLists = () => {
    if (!newest) return;
    lists.replaceChildren(...newest.childNodes);
    newest = null;
  };

  /** Shows the job as it is ``now``; returns whether it is still under way. */
  const show = (now) => {
    bar.value = part(now, "bar").value;
    const text = part(now, "said").textContent;
    if (said.textContent !== text) said.textContent = text;
    newest = part(now, "lists");
    if (!isInside(lists)) showLists();
    if (now.dataset.job === "open") return true;
    const isPressing = isInside(actions) || isInside(switched);
    actions.replaceChildren(...part(now, "actions").childNodes);
    switched.remove();
    if (isPressing) said.focus(); // not the button that has come to this place: it undoes what was done
    return false;
  };

  const look = async () => {
    let isOpen = true;
    try {
      isOpen = show(await asked(actions.closest("form").action));
      pause = PAUSE_MS;
    } catch {
      pause = Math.min(2 * pause, PAUSE_MAX_MS); // it is away; the link is still there
    }
    if (isOpen) later();
  };

  const later = () => {
    clearTimeout(timer);
    if (switched.isConnected && box.checked && !document.hidden) timer = setTimeout(look, pause);
  };

  Object.assign(box, { type: "checkbox", checked: true });
  switched.className = "check";
  switched.append(box, ` ${_("Show it anew by itself")}`);
  actions.before(switched);
  box.addEventListener("change", later);
  document.addEventListener("visibilitychange", later);
  lists.addEventListener("focusout", (event) => { if (!lists.contains(event.relatedTarget)) showLists(); });
  later();
})();
