// Makes elements. Texts of users and trials enter the page here, and only as text.
"use strict";

// The parts of the page about one experiment, in order: {id, title, isThere(experiment), build(host, context)}.
cadre.sections = [];

// Returns an element with attributes and children: elements, texts, or lists of them; null is left out. An attribute
// that begins with "on" is a listener.
cadre.element = (name, attributes = {}, ...children) => {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else element.setAttribute(key, value === true ? "" : value);
  }
  cadre.append(element, children);
  return element;
};

cadre.append = (element, children) => {
  for (const child of [children].flat(Infinity)) {
    if (child !== null && child !== undefined) element.append(child instanceof Node ? child : String(child));
  }
  return element;
};

cadre.replaceChildren = (element, ...children) => {
  element.replaceChildren();
  return cadre.append(element, children);
};

// Gives an element a text. One that it has already is not read out again.
cadre.setText = (element, text) => {
  if (element.textContent !== text) element.textContent = text;
};

// Makes parts of an element anew. The focus stays at the same place among what can have it.
cadre.keepFocus = (host, make) => {
  const list = () => Array.from(host.querySelectorAll("a, button, select, input, summary, [tabindex]"));
  const focus = host.contains(document.activeElement) ? list().indexOf(document.activeElement) : -1;
  make();
  if (focus >= 0 && !host.contains(document.activeElement)) list()[focus]?.focus({preventScroll: true});
};

// Returns text of a user, apart from its surroundings whatever direction it is written in.
cadre.userText = (text) => cadre.element("bdi", {}, cadre.line(text));

// Returns a labelled list to choose from. `options`: [value, text] each.
cadre.choice = (label, options, value, onChange) => {
  const select = cadre.element("select", {onchange: () => onChange(select.value)},
    options.map(([key, text]) => cadre.element("option", {value: key}, cadre.line(text))));
  select.value = value;
  return cadre.element("label", {class: "choice"}, cadre.element("span", {}, label), select);
};

// Gives a list to choose from other options. A choice that is among them stays.
cadre.setOptions = (choice, options) => {
  const select = choice.querySelector("select");
  const texts = options.map(([key, text]) => [String(key), cadre.line(text)]);
  if (JSON.stringify(texts) === JSON.stringify(Array.from(select.options, (option) => [option.value, option.text]))) return;
  const {value} = select;
  cadre.replaceChildren(select, texts.map(([key, text]) => cadre.element("option", {value: key}, text)));
  select.value = value;
};

cadre.toggle = (label, value, onChange) => {
  const box = cadre.element("input", {type: "checkbox", onchange: () => onChange(box.checked)});
  box.checked = value;
  return cadre.element("label", {class: "toggle"}, box, cadre.element("span", {}, label));
};

cadre.button = (label, onClick, attributes = {}) =>
  cadre.element("button", {type: "button", onclick: onClick, ...attributes}, label);

// Returns a button that copies a text.
cadre.copyButton = (text, what) => {
  const button = cadre.button("Copy", async () => {
    button.textContent = (await cadre.copy(text)) ? "Copied" : "Press Ctrl-C";
    setTimeout(() => { button.textContent = "Copy"; }, 1500);
  }, {class: "copy", "aria-label": `Copy ${what}`, "data-copy": text});
  return button;
};

// Copies a text; also for pages from a file, where browsers have no clipboard for scripts.
cadre.copy = async (text) => {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const area = cadre.element("textarea", {class: "off-screen", "aria-hidden": "true"});
    area.value = text;
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    return done;
  }
};

// Returns a table body in pages: show(begin, end) makes the rows, again() does so for the present page.
cadre.pages = (size, count, show) => {
  let page = 0;
  const text = cadre.element("span", {class: "pages-text", "aria-live": "polite"});
  const previous = cadre.button("Previous", () => go(page - 1));
  const next = cadre.button("Next", () => go(page + 1));
  const go = (wanted) => {
    const all = count();
    page = Math.max(0, Math.min(wanted, Math.ceil(all / size) - 1));
    const end = Math.min((page + 1) * size, all);
    show(page * size, end);
    cadre.setText(text, all === 0 ? "none" : `${cadre.count(page * size + 1)} to ${cadre.count(end)} of ${cadre.count(all)}`);
    previous.disabled = page === 0;
    next.disabled = end >= all;
    bar.hidden = all <= size;
  };
  const bar = cadre.element("div", {class: "pages"}, previous, text, next);
  return {bar, go, again: () => go(page)};
};
