// Additions to the pages. Every page works without this file.
"use strict";

function element(name, attributes, text) {
  const e = document.createElement(name);
  for (const key in attributes) e.setAttribute(key, attributes[key]);
  if (text) e.textContent = text;
  return e;
}

// Suggestions while typing, as a combobox with a list (WAI-ARIA).
function suggestions(input) {
  const list = element("ul", {class: "suggest", role: "listbox", id: "suggestions", "aria-label": "Suggestions"});
  list.hidden = true;
  input.after(list);
  for (const [key, value] of [["role", "combobox"], ["aria-autocomplete", "list"], ["aria-expanded", "false"], ["aria-controls", "suggestions"]]) {
    input.setAttribute(key, value);
  }
  let timer, last = "", selected = -1;
  const close = () => { list.hidden = true; selected = -1; input.setAttribute("aria-expanded", "false"); input.removeAttribute("aria-activedescendant"); };
  const select = (i) => {
    const n = list.children.length;
    if (!n) return;
    selected = (i + n + 1) % (n + 1);
    if (selected === n) selected = -1;
    [...list.children].forEach((li, k) => li.setAttribute("aria-selected", String(k === selected)));
    if (selected >= 0) input.setAttribute("aria-activedescendant", list.children[selected].id);
    else input.removeAttribute("aria-activedescendant");
  };
  const show = (items) => {
    list.replaceChildren(...items.map((s, i) => {
      const li = element("li", {role: "option", id: "suggestion-" + i, "aria-selected": "false"});
      li.append(element("b", {}, s.text), element("span", {}, s.detail), element("i", {}, s.type));
      li.addEventListener("mousedown", (e) => { e.preventDefault(); location.assign(s.url); });
      li.dataset.url = s.url;
      return li;
    }));
    selected = -1;
    list.hidden = items.length === 0;
    input.setAttribute("aria-expanded", String(items.length > 0));
  };
  input.addEventListener("input", () => {
    clearTimeout(timer);
    selected = -1;
    timer = setTimeout(async () => {
      const q = input.value.trim();
      last = q;
      if (q.length < 2) return close();
      try {
        const r = await fetch(input.dataset.suggest + "?q=" + encodeURIComponent(q));
        const items = r.ok ? await r.json() : [];
        if (q === last && selected < 0) show(items);
      } catch { close(); }
    }, 120);
  });
  input.addEventListener("keydown", (e) => {
    if (e.key === "Escape") close();
    if (list.hidden) return;
    if (e.key === "ArrowDown") { e.preventDefault(); select(selected + 1); }
    if (e.key === "ArrowUp") { e.preventDefault(); select(selected < 0 ? list.children.length - 1 : selected - 1); }
  });
  input.addEventListener("blur", close);
  input.form.addEventListener("submit", (e) => {
    const chosen = document.getElementById(input.getAttribute("aria-activedescendant"));
    if (chosen) { e.preventDefault(); location.assign(chosen.dataset.url); }
  });
}

// Open a subtree of fields in place.
document.addEventListener("click", async (e) => {
  const a = e.target.closest("a.subtree");
  if (!a || e.metaKey || e.ctrlKey || e.shiftKey || e.button) return;
  e.preventDefault();
  try {
    const r = await fetch(a.href);
    if (!r.ok) throw new Error(r.status);
    const page = new DOMParser().parseFromString(await r.text(), "text/html");
    const fields = page.querySelector(".tree-of-fields > .fields");
    const more = a.closest("p");
    const list = document.importNode(fields, true);
    more.replaceWith(list);
    const first = list.querySelector("summary, a");
    if (first) first.focus();
  } catch { location.assign(a.href); }
});

// Open the fields above the target of the address.
function reveal() {
  let target = null;
  try { target = document.getElementById(decodeURIComponent(location.hash.slice(1))); } catch { return; }
  if (!target) return;
  for (let d = target.closest("details"); d; d = d.parentElement.closest("details")) d.open = true;
  target.scrollIntoView();
}

// A button that opens or closes all fields.
function expand(tree) {
  const line = document.querySelector(".line");
  if (!line || !tree.querySelector("details")) return;
  const b = element("button", {class: "quiet", type: "button"}, "Expand all");
  b.addEventListener("click", () => {
    const open = b.textContent === "Expand all";
    tree.querySelectorAll("details").forEach((d) => { d.open = open; });
    b.textContent = open ? "Collapse all" : "Expand all";
  });
  line.append(b);
}

// A box that filters the complete lists of the page. Packages have one of the server, which works in the same way.
function filter(lists) {
  const rows = lists.flatMap((l) => [...l.children]);
  let box = document.querySelector(".filterbox"), nothing = document.querySelector(".nothing");
  if (box) {
    box.form.addEventListener("submit", (e) => e.preventDefault());
  } else {
    if (rows.length < 12) return;
    const label = element("label", {});
    box = element("input", {class: "filterbox", type: "search", placeholder: "Filter this page"});
    nothing = element("p", {class: "nothing", role: "status"}, "No row contains all of these words. Use fewer words, or search all packages.");
    label.append(element("span", {class: "hidden"}, "Filter this page"), box);
    const first = lists[0].closest("section") || lists[0];
    const heading = first.querySelector("h2");
    if (heading && !document.querySelector(".results")) heading.after(label); else (document.querySelector(".filters") || first).prepend(label);
    label.after(nothing);
  }
  const texts = rows.map((row) => (row.textContent + " " + (row.closest(".kindgroup")?.firstElementChild.textContent || "")).toLowerCase());
  const apply = () => {
    const words = box.value.toLowerCase().split(/\s+/).filter(Boolean);
    rows.forEach((row, i) => { row.hidden = !words.every((w) => texts[i].includes(w)); });
    document.querySelectorAll(".kindgroup").forEach((g) => { g.hidden = !g.querySelector("li:not([hidden])"); });
    nothing.hidden = rows.some((row) => !row.hidden);
  };
  box.addEventListener("input", apply);
  const q = new URLSearchParams(location.search).get("q");
  if (q && !document.querySelector("[data-suggest]")) box.value = q.replace(/\b\w+:/g, "");
  apply();
}

// Buttons that copy a snippet.
function copying(snippet) {
  if (!navigator.clipboard) return;
  const b = element("button", {class: "copy", type: "button"}, "Copy");
  b.addEventListener("click", async () => {
    await navigator.clipboard.writeText(snippet.querySelector("code").textContent);
    b.textContent = "Copied";
    setTimeout(() => { b.textContent = "Copy"; }, 1500);
  });
  snippet.append(b);
}

document.querySelectorAll("input[data-suggest]").forEach(suggestions);
document.querySelectorAll(".tree-of-fields").forEach(expand);
document.querySelectorAll(".snippet").forEach(copying);
const lists = [...document.querySelectorAll("[data-filtered]")];
if (lists.length) filter(lists);
addEventListener("hashchange", reveal);
if (location.hash) reveal();
document.addEventListener("keydown", (e) => {
  if (e.key === "/" && !/^(INPUT|SELECT|TEXTAREA)$/.test(document.activeElement.tagName)) {
    const q = document.getElementById("q");
    if (q) { e.preventDefault(); q.focus(); q.select(); }
  }
});
