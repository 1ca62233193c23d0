// Shows moments in the browser's time zone to readers who have set no zone in the wiki, which then writes them in UTC.
//
//   2026-01-31 12:00, 12:00      as local_time.py writes them, and as long
//   2026-01-31 12:00 UTC         with how far the reader's clock is from it: UTC+1, UTC-3:30
"use strict";
const wikkaTimes = (within) => {
  const { _ } = wikkaTexts;
  const WRITTEN = /^(\d{4}-\d\d-\d\d )?\d\d:\d\d( UTC)?$/; // by the wiki; what an author wrote stays
  const two = (n) => String(n).padStart(2, "0");
  const dayOf = (at) => `${String(at.getFullYear()).padStart(4, "0")}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
  const labelOf = (at) => {
    const ahead = -at.getTimezoneOffset();
    const hours = Math.floor(Math.abs(ahead) / 60);
    const rest = Math.abs(ahead) % 60;
    return ahead ? `UTC${ahead > 0 ? "+" : "-"}${hours}${rest ? `:${two(rest)}` : ""}` : "UTC";
  };

  /** A list of changes under their days, which are other days here; ``first`` is the section of its newest one. */
  const sortByDay = (first) => {
    const old = [];
    for (let one = first; one?.matches("section.day"); one = one.nextElementSibling) old.push(one);
    let made = null;
    for (const entry of old.flatMap((one) => [...one.querySelectorAll(".entries > li")])) {
      const day = dayOf(new Date(entry.querySelector("time").dateTime));
      if (made?.querySelector("time").dateTime !== day) {
        made = first.cloneNode(false);
        made.append(first.querySelector(".day-head").cloneNode(true), first.querySelector(".entries").cloneNode(false));
        Object.assign(made.querySelector("time"), { dateTime: day, textContent: day });
        old[0].before(made);
      }
      made.querySelector(".entries").append(entry);
    }
    for (const one of old) one.remove();
  };

  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  if (zone === "UTC") return;
  for (const time of within.querySelectorAll("time[datetime*=T]")) {
    const at = new Date(time.dateTime);
    const [isWritten, day, label] = WRITTEN.exec(time.textContent) ?? [];
    if (!isWritten || Number.isNaN(at.getTime())) continue;
    time.textContent = `${day ? `${dayOf(at)} ` : ""}${two(at.getHours())}:${two(at.getMinutes())}`
      + (label ? ` ${labelOf(at)}` : "");
  }
  const days = [...within.querySelectorAll("section.day")];
  days.filter((one) => !one.previousElementSibling?.matches("section.day")).forEach(sortByDay);
  for (const note of within.querySelectorAll(".zone-note")) {
    note.textContent = _("Times are of your time zone, {zone}.", { zone: zone ?? labelOf(new Date()) });
  }
};
wikkaTimes(document);
