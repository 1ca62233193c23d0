"use strict";
// What the scripts say, in the language of the page: English stands where it is said, other languages are put in
// by the wiki (texts/scripts.py), which replaces the next two lines.
const wikkaSaid = new Map([]);
const wikkaPlural = (n) => Number(n !== 1);

const wikkaTexts = (() => {
  const put = (text, values) => text.replace(/\{(\w+)\}/g, (all, key) => String(values[key] ?? all));
  const _ = (text, values = {}) => put(wikkaSaid.get(text)?.[0] ?? text, values);
  const _n = (one, many, n, values = {}) =>
    put(wikkaSaid.get(one)?.[wikkaPlural(n)] ?? (n === 1 ? one : many), { n, ...values });
  return { _, _n };
})();
