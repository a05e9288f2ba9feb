// Shows which parameters made good trials good.
"use strict";

cadre.sections.push({
  id: "importance", title: "Importance of parameters", parts: ["importance"],
  isThere: (experiment) => !experiment.isRun && experiment.parameters.length > 0,
  build(host, {experiment}) {
    const importance = experiment.document.importance;
    if (importance.reason) {
      host.append(cadre.element("p", {class: "note"}, `Not shown: ${cadre.line(importance.reason)}`));
      return;
    }
    const most = Math.max(...importance.items.map(([, share]) => share), 1e-9);
    host.append(cadre.element("p", {class: "note"}, "How differently the best tenth of the trials and all trials are distributed along each parameter (PED-ANOVA)."
      + (importance.left_out ? ` ${cadre.plural(importance.left_out, "trial")} with configs that exploits have changed do not count.` : "")));
    host.append(cadre.element("table", {class: "bars"}, cadre.element("caption", {class: "off-screen"}, "Importance of parameters"),
      cadre.element("tbody", {}, importance.items.map(([key, share, trials]) => {
        const bar = cadre.element("div", {class: "bar"});
        bar.style.width = `${(100 * share) / most}%`;
        return cadre.element("tr", {"data-key": key, "data-value": share}, cadre.element("th", {scope: "row"}, cadre.userText(key)),
          cadre.element("td", {class: "bar-cell"}, bar), cadre.element("td", {class: "number"}, `${(100 * share).toFixed(1)} %`),
          cadre.element("td", {class: "note"}, cadre.plural(trials, "trial")));
      }))));
  },
});
