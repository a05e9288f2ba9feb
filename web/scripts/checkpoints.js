// Checkpoints that are kept, with paths to copy; of a training run with what their validations have found.
"use strict";

cadre.sections.push({
  id: "checkpoints", title: "Checkpoints",
  isThere: (experiment) => experiment.document.checkpoints.path.length > 0,
  build(host, {experiment, selection}) {
    const root = `${experiment.document.path}/`;
    const short = (path) => (path.startsWith(root) ? path.slice(root.length) : path);
    let list, order, shown, hasIterations, found;
    const look = () => {
      list = experiment.document.checkpoints;
      const rank = new Map(experiment.ranking().map((trial, at) => [trial, at]));
      order = list.path.map((_, at) => at);
      if (!experiment.isRun) order.sort((a, b) => rank.get(list.trial[a]) - rank.get(list.trial[b]) || b - a);
      shown = order.filter((at) => selection.includes(list.trial[at]));
      hasIterations = list.iteration.some((cell) => cell !== null);
      found = experiment.isRun ? [...new Set(list.validation.flatMap((values) => Object.keys(values)))].slice(0, 6) : [];
      const heads = [...(experiment.isRun ? [] : ["trial"]), ...(hasIterations ? ["iteration"] : []), ...(experiment.metric ? [experiment.metric] : []),
        ...(experiment.isRun ? ["status", ...found.map((name) => `validation/${name}`)] : []), "directory"];
      cadre.replaceChildren(head, heads.map((name) => cadre.element("th", {scope: "col", class: ["trial", "directory", "status"].includes(name) ? null : "number"}, cadre.userText(name))));
      note.hidden = list.in_all === list.path.length;
      note.textContent = `${cadre.count(list.path.length)} of ${cadre.count(list.in_all)} checkpoints are here.`;
    };
    const head = cadre.element("tr"), body = cadre.element("tbody"), note = cadre.element("p", {class: "note"});
    const pages = cadre.pages(20, () => shown.length, (begin, end) => cadre.replaceChildren(body, shown.slice(begin, end).map((at) => {
      const number = (cell, key) => cadre.element("td", {class: "number", "data-column": key, "data-value": cadre.cellExact(cell)}, cadre.cellText(cell));
      return cadre.element("tr", {"data-path": list.path[at]},
        experiment.isRun ? null : cadre.element("th", {scope: "row"}, list.trial[at] === experiment.best ? "\u2605 " : "", cadre.button(experiment.trials.id[list.trial[at]], () => selection.open(list.trial[at]), {class: "link"})),
        hasIterations ? number(list.iteration[at], "training_iteration") : null, experiment.metric ? number(list.value[at], experiment.metric) : null,
        experiment.isRun ? [cadre.element("td", {class: "status", title: list.validation_error[at] ? cadre.printable(list.validation_error[at]) : null}, list.status[at], list.validation_error[at] ? `: ${cadre.line(list.validation_error[at])}` : ""),
          ...found.map((name) => number(list.validation[at][name] ?? null, `validation/${name}`))] : null,
        cadre.element("td", {class: "path"}, cadre.copyButton(list.path[at], `the path of ${cadre.line(short(list.path[at]))}`), " ", cadre.userText(short(list.path[at]))));
    })));
    host.append(note, cadre.element("div", {class: "scroll", tabindex: "0", role: "region", "aria-label": "Table of checkpoints"}, cadre.element("table", {}, cadre.element("caption", {class: "off-screen"}, "Checkpoints"),
      cadre.element("thead", {}, head), body)), pages.bar);
    selection.addEventListener("filter", () => { look(); pages.go(0); });
    look();
    pages.go(0);
    return () => {
      look();
      cadre.keepFocus(host, () => pages.again());
    };
  },
});
