// The search of the documentation. search-index.js sets window.searchIndex to a list of pages:
// {title, url, text, headings: [{id, title}]}. Without JavaScript the menu lists all pages.
"use strict";
(() => {
  const form = document.querySelector("form.find");
  const input = form.querySelector("input");
  const list = form.querySelector("ul");
  const root = new URL("./", document.querySelector('script[src$="site.js"]').src);
  const pages = (window.searchIndex || []).map((page) => ({ ...page, lower: page.text.toLowerCase() }));
  const most = 12;
  let chosen = -1;
  form.hidden = pages.length === 0;
  if (matchMedia("(max-width: 46rem)").matches) document.querySelector(".menu details").open = false;

  // score returns the rank of a text for words: 0 if a word is missing, more for a word at the start of the text.
  const score = (text, words) => {
    let sum = 0;
    for (const word of words) {
      const at = text.indexOf(word);
      if (at < 0) return 0;
      sum += at === 0 || !/[a-z0-9]/.test(text[at - 1]) ? 2 : 1;
    }
    return sum / Math.sqrt(text.length);
  };

  // excerpt returns the text around the first of the words, from the beginning of a word.
  const excerpt = (page, words) => {
    const found = page.lower.indexOf(words[0]);
    const before = page.text.slice(Math.max(0, found - 40), found);
    const at = found - (found > 40 ? before.replace(/^\S*\s*/, "") : before).length;
    return page.text.slice(at, at + 140).replace(/\s+/g, " ");
  };

  const search = (query) => {
    const words = query.toLowerCase().split(/\s+/).filter(Boolean);
    if (words.length === 0) return [];
    const found = [];
    for (const page of pages) {
      const title = page.title.toLowerCase();
      const whole = score(title, words);
      if (whole > 0) found.push({ rank: 30 + whole, title: page.title, url: page.url, text: "" });
      for (const heading of page.headings) {
        const rank = score(heading.title.toLowerCase(), words);
        if (rank > 0) found.push({ rank: 20 + rank, title: heading.title, url: page.url + "#" + heading.id, text: page.title });
      }
      if (whole === 0 && words.every((word) => page.lower.includes(word))) {
        found.push({ rank: score(page.lower, words), title: page.title, url: page.url, text: excerpt(page, words) });
      }
    }
    return found.sort((a, b) => b.rank - a.rank).slice(0, most);
  };

  const select = (index) => {
    const items = list.children;
    chosen = items.length ? (index + items.length) % items.length : -1;
    for (let i = 0; i < items.length; i++) items[i].setAttribute("aria-selected", String(i === chosen));
    if (chosen >= 0) {
      input.setAttribute("aria-activedescendant", items[chosen].id);
      items[chosen].scrollIntoView({ block: "nearest" });
    } else {
      input.removeAttribute("aria-activedescendant");
    }
  };

  const open = (url) => { location.href = new URL(url, root).href; };

  const show = () => {
    const found = search(input.value);
    list.replaceChildren(...found.map((result, i) => {
      const item = document.createElement("li");
      item.id = "result-" + i;
      item.setAttribute("role", "option");
      item.dataset.url = result.url;
      const title = document.createElement("b");
      title.textContent = result.title;
      const text = document.createElement("span");
      text.textContent = result.text;
      item.append(title, text);
      item.addEventListener("mousedown", (event) => { event.preventDefault(); open(result.url); });
      return item;
    }));
    list.hidden = found.length === 0;
    input.setAttribute("aria-expanded", String(found.length > 0));
    select(found.length ? 0 : -1);
  };

  input.addEventListener("input", show);
  input.addEventListener("focus", show);
  input.addEventListener("blur", () => { list.hidden = true; input.setAttribute("aria-expanded", "false"); });
  input.addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown") { select(chosen + 1); event.preventDefault(); }
    if (event.key === "ArrowUp") { select(chosen - 1); event.preventDefault(); }
    if (event.key === "Escape") { input.blur(); }
  });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    if (chosen >= 0) open(list.children[chosen].dataset.url);
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "/" && document.activeElement === document.body) { input.focus(); event.preventDefault(); }
  });
})();
