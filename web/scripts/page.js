// Puts the page together: a heading, the experiments to choose from, and the sections about one of them.
"use strict";

// Returns the documents that stand in the page.
cadre.documentsOfPage = () => Array.from(document.querySelectorAll("script.document"), (element) => JSON.parse(element.textContent));

cadre.buildExperiment = (host, experiment) => {
  if (!experiment.isReadable) {
    host.append(cadre.element("section", {class: "card unreadable", role: "alert", "data-unreadable": experiment.name},
      cadre.element("h2", {}, cadre.userText(experiment.name)), cadre.element("p", {}, "This experiment could not be read:"),
      cadre.element("pre", {}, cadre.printable(experiment.document.reason))));
    return;
  }
  const selection = new cadre.Selection(experiment);
  const context = {experiment, selection};
  const nav = cadre.element("nav", {class: "contents", "aria-label": "Sections"});
  host.append(nav, selection.said, cadre.filterBar(context));
  for (const section of cadre.sections) {
    if (!section.isThere(experiment)) continue;
    const id = `${section.id}-${experiment.index}`;
    const card = cadre.element("section", {class: `card ${section.id}`, id, "aria-labelledby": `${id}-title`}, cadre.element("h2", {id: `${id}-title`}, section.title));
    nav.append(cadre.element("a", {href: `#${id}`}, section.title));
    host.append(card);
    section.build(card, context);
  }
  cadre.watchDetails(host, context);
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

cadre.start(cadre.documentsOfPage());
