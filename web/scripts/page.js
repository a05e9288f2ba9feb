// Puts the page together: a heading, the experiments to choose from, and the sections about one of them.
"use strict";

// Returns the documents that stand in the page.
cadre.documentsOfPage = () => Array.from(document.querySelectorAll("script.document"), (element) => JSON.parse(element.textContent));

// Makes the parts about one experiment. Returns a view for pages that grow: update(apply) calls `apply`, which gives the
// experiment a later document and returns the keys of it that have changed, and brings the page up to date; it returns the
// view for the next time.
cadre.buildExperiment = (host, experiment) => {
  const again = () => {
    host.replaceChildren();
    return cadre.buildExperiment(host, experiment);
  };
  if (!experiment.isReadable) {
    host.append(cadre.element("section", {class: "card unreadable", role: "alert", "data-unreadable": experiment.name},
      cadre.element("h2", {}, cadre.userText(experiment.name)), cadre.element("p", {}, "This experiment could not be read:"),
      cadre.element("pre", {}, cadre.printable(experiment.document.reason))));
    return {update: (apply) => { apply(); return again(); }};
  }
  const selection = new cadre.Selection(experiment);
  const context = {experiment, selection};
  const nav = cadre.element("nav", {class: "contents", "aria-label": "Sections"});
  host.append(nav, selection.said, cadre.filterBar(context));
  const parts = cadre.sections.map((section) => new cadre.Part(section, context, host, nav));
  const place = () => {
    let nextCard = null, nextLink = null;
    for (const part of parts.slice().reverse()) {
      part.place(nextCard, nextLink);
      if (part.card) [nextCard, nextLink] = [part.card, part.link];
    }
  };
  place();
  const showDetails = cadre.watchDetails(host, context);
  const view = {update: (apply) => {
    const {started} = experiment.document, {isRun} = experiment;
    const restore = selection.remember();
    const changed = apply();
    if (!experiment.isReadable) return again();
    // Another experiment in its place may have other parameters and metrics than those that are chosen.
    if (experiment.isRun !== isRun || (started && experiment.document.started !== started)) return again();
    restore();
    place();
    for (const part of parts) part.update(changed);
    showDetails();
    return view;
  }};
  return view;
};

// A section of the page, while the experiment has it. Sections that return a function update themselves; others are made
// anew when one of the document's keys in `parts` has changed.
cadre.Part = class {
  constructor(section, context, host, nav) {
    Object.assign(this, {section, context, host, nav, card: null, link: null, grow: null, isStale: false, isFresh: false});
  }

  // Makes or removes the section; it stands before the given ones.
  place(nextCard, nextLink) {
    const {section, context} = this;
    const isThere = section.isThere(context.experiment);
    if (!isThere || this.card) {
      if (!isThere && this.card) {
        this.card.remove();
        this.link.remove();
        this.card = this.link = this.grow = null;
      }
      return;
    }
    const id = `${section.id}-${context.experiment.index}`;
    this.card = cadre.element("section", {class: `card ${section.id}`, id, "aria-labelledby": `${id}-title`}, cadre.element("h2", {id: `${id}-title`}, section.title));
    this.link = cadre.element("a", {href: `#${id}`}, section.title);
    this.nav.insertBefore(this.link, nextLink);
    this.host.insertBefore(this.card, nextCard);
    this.grow = section.build(this.card, context) ?? null;
    this.isFresh = true;
  }

  update(changed) {
    if (!this.card) return;
    const isFresh = this.isFresh;
    this.isFresh = false;
    if (isFresh) return;
    if (this.grow) return void this.grow();
    if (!this.isStale && this.section.parts && !this.section.parts.some((key) => changed.has(key))) return;
    // Nobody loses the text that they are about to copy.
    const marked = getSelection();
    this.isStale = !marked.isCollapsed && this.card.contains(marked.anchorNode);
    if (!this.isStale) this.rebuild();
  }

  // Makes the section anew. What is open, scrolled or has the focus stays so.
  rebuild() {
    const {card} = this;
    const list = (selector) => Array.from(card.querySelectorAll(selector));
    const open = new Set(list("details[open] > summary").map((summary) => summary.textContent));
    const scrolled = list(".scroll, pre").map((one) => [one.scrollTop, one.scrollLeft]);
    cadre.keepFocus(card, () => {
      while (card.children.length > 1) card.lastElementChild.remove();
      this.section.build(card, this.context);
    });
    for (const summary of list("details > summary")) if (open.has(summary.textContent)) summary.parentElement.open = true;
    list(".scroll, pre").forEach((one, at) => { [one.scrollTop, one.scrollLeft] = scrolled[at] ?? [0, 0]; });
  }
};

// Says how many trials brushes have left, and lets go of them.
cadre.filterBar = ({experiment, selection}) => {
  const text = cadre.element("span");
  const bar = cadre.element("div", {class: "filter-bar", hidden: true, role: "status"}, text, cadre.button("Show all", () => selection.setFilter(null)));
  selection.addEventListener("filter", () => {
    bar.hidden = selection.filter === null;
    text.textContent = selection.filter === null ? "" : `${cadre.count(selection.filter.size)} of ${cadre.plural(experiment.count, "trial")} are within the brushes`;
  });
  return bar;
};

cadre.start = (documents) => {
  const page = document.getElementById("page");
  const experiments = documents.map((one, index) => new cadre.Experiment(one, index));
  const main = cadre.element("main");
  const isOne = experiments.length === 1;
  const header = cadre.element("header", {class: "top"}, cadre.element("div", {class: "brand"}, "cadre report"),
    cadre.element("h1", {}, isOne ? cadre.userText(experiments[0].name) : document.title));
  page.append(header, main);
  if (isOne) {
    const host = cadre.element("div", {class: "experiment"});
    main.append(host);
    cadre.buildExperiment(host, experiments[0]);
  } else {
    cadre.buildComparison(main, experiments);
  }
  page.removeAttribute("aria-busy");
  page.dataset.ready = "";
};
