"use strict";
// The texts that the scripts show, in the page's language.  The scripts have them in English; for other languages the
// wiki (assets.py) replaces the next two lines.
const wikkaSaid = new Map([]);
const wikkaPlural = (n) => Number(n !== 1);

const wikkaTexts = (() => {
  const put = (text, values) => text.replace(/\{(\w+)\}/g, (all, key) => String(values[key] ?? all));
  const _ = (text, values = {}) => put(wikkaSaid.get(text)?.[0] ?? text, values);
  const _n = (one, many, n, values = {}) =>
    put(wikkaSaid.get(one)?.[wikkaPlural(n)] ?? (n === 1 ? one : many), { n, ...values });
  return { _, _n };
})();
