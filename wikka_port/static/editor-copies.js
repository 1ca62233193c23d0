// Copies of typed texts in this browser, in case the wiki has not confirmed them or does not recognise their author.
// Each form of a page and an account has one copy; if there are too many, the oldest are removed.
//
//   on the disk   (IndexedDB) while somebody types: the copy survives if the browser is killed a second later
//   at once       (localStorage) when the page is left or a draft could not be kept: browsers write to disk later, but
//                 the copy exists before the page is gone
"use strict";
(() => {
  const PREFIX = "wikka-copy ";
  const BASE = "wikka-copies";
  const COPIES_MAX = 20;
  const COPIES_CHARS_MAX = 4_000_000; // browsers give a site some five million at once
  const COPY_AGE_MS = 30 * 24 * 3600 * 1000; // as drafts in the wiki

  const keyOf = ({ as, page, id }) => `${PREFIX}${JSON.stringify([as, page, id])}`;
  const isOf = (key, { page, id }) => key.startsWith(PREFIX) && key.endsWith(`,${JSON.stringify(page)},${JSON.stringify(id)}]`);
  const answered = (request) => new Promise((done, fail) => {
    request.onsuccess = () => done(request.result);
    request.onerror = () => fail(request.error);
  });

  function atOnce() {
    const found = [];
    for (let n = localStorage.length - 1; n >= 0; n--) {
      const key = localStorage.key(n);
      if (!key.startsWith(PREFIX)) continue;
      const text = localStorage.getItem(key);
      try {
        found.push({ ...JSON.parse(text), key, size: text.length });
      } catch {
        localStorage.removeItem(key); // a foreign or incomplete item
      }
    }
    return found.sort((one, other) => other.time - one.time);
  }

  let base = null;
  /** Runs ``act(store)`` in a transaction; resolves when the transaction is on the disk. */
  async function onDisk(mode, act) {
    base ??= new Promise((done, fail) => {
      const opening = indexedDB.open(BASE, 1);
      opening.onupgradeneeded = () => opening.result.createObjectStore(BASE);
      answered(opening).then(done, fail);
    });
    const step = (await base).transaction(BASE, mode, { durability: "strict" });
    const ended = new Promise((done, fail) => {
      step.oncomplete = done;
      step.onabort = () => fail(step.error);
    });
    const made = await act(step.objectStore(BASE));
    await ended;
    return made;
  }

  async function allOnDisk() {
    return onDisk("readonly", async (store) => {
      const [keys, copies] = await Promise.all([answered(store.getAllKeys()), answered(store.getAll())]);
      return keys.map((key, n) => ({ ...copies[n], key, size: copies[n].body.length }));
    }).catch(() => []); // a browser without one, or a private window
  }

  function removeKey(key) {
    localStorage.removeItem(key);
    return onDisk("readwrite", (store) => answered(store.delete(key))).catch(() => null);
  }

  wikkaEditor.copies = {
    /** { as, page, id, section, base, body, note } on the disk; ``confirmed``: the wiki has it, too. */
    async write(copy, confirmed) {
      const key = keyOf(copy);
      const time = Date.now();
      await onDisk("readwrite", (store) => answered(store.put({ ...copy, confirmed, time }, key)));
      const here = localStorage.getItem(key);
      if (here && JSON.parse(here).time < time) localStorage.removeItem(key); // a later copy stays
    },
    /** Keeps the copy at once; returns true if it is kept. */
    keep(copy) {
      const key = keyOf(copy);
      const text = JSON.stringify({ ...copy, time: Date.now() });
      if (text.length > COPIES_CHARS_MAX) return false;
      try {
        const others = atOnce().filter((one) => one.key !== key);
        let size = others.reduce((sum, one) => sum + one.size, text.length);
        while (others.length && (others.length >= COPIES_MAX || size > COPIES_CHARS_MAX)) {
          const oldest = others.pop();
          size -= oldest.size;
          localStorage.removeItem(oldest.key);
        }
        for (;;) {
          try {
            localStorage.setItem(key, text);
            return true;
          } catch (full) {
            if (!others.length) throw full;
            localStorage.removeItem(others.pop().key);
          }
        }
      } catch {
        return false; // the browser keeps nothing: a private window, or it is full
      }
    },
    /** Returns the copies of this form, of all accounts. */
    async remove(form) {
      try {
        for (const one of atOnce()) if (isOf(one.key, form)) localStorage.removeItem(one.key);
      } catch { /* then there is none */ }
      await onDisk("readwrite", async (store) => {
        for (const key of await answered(store.getAllKeys())) if (isOf(key, form)) store.delete(key);
      }).catch(() => null);
    },
    /** Returns the copies of this account and page, the newest first; removes old and surplus copies. */
    async of(as, page) {
      const newest = new Map();
      let here = [];
      try { here = atOnce(); } catch { /* then there is none */ }
      for (const one of [...here, ...await allOnDisk()]) {
        if (!(newest.get(one.key)?.time >= one.time)) newest.set(one.key, one);
      }
      const every = [...newest.values()].sort((one, other) => other.time - one.time);
      let size = 0;
      const kept = every.filter((one, n) => {
        size += one.size;
        const fits = n < COPIES_MAX && size <= COPIES_CHARS_MAX && Date.now() - one.time <= COPY_AGE_MS;
        if (!fits) removeKey(one.key);
        return fits;
      });
      return kept.filter((one) => one.as === as && one.page === page);
    },
  };
})();
