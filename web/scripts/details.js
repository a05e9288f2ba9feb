// One trial in detail, in a dialog.
"use strict";

// Returns a function that brings an open dialog up to date.
cadre.watchDetails = (host, {experiment, selection}) => {
  const dialog = cadre.element("dialog", {class: "details", "aria-label": "Trial", onclick: (event) => { if (event.target === dialog) dialog.close(); }});
  host.append(dialog);
  const show = () => {
    const trial = selection.opened;
    const row = (list) => list[trial];
    const path = `${experiment.document.path}/${row(experiment.trials.folder)}`;
    const checkpoints = experiment.document.checkpoints;
    const own = checkpoints.trial.map((one, at) => [one, at]).filter(([one]) => one === trial).map(([, at]) => at);
    cadre.replaceChildren(dialog, cadre.element("div", {class: "dialog-head"},
      cadre.element("h2", {}, `Trial ${row(experiment.trials.id)}`, trial === experiment.best ? cadre.element("span", {class: "winner-text"}, " \u2605 best") : null),
      cadre.element("div", {class: "controls"}, cadre.stopTrialButton?.(experiment, trial), cadre.button("Close", () => dialog.close(), {autofocus: true}))),
    cadre.pairs([["status", row(experiment.trials.status)], ["results", cadre.count(row(experiment.trials.results))],
      ["attempts", `${row(experiment.trials.attempts)}${row(experiment.trials.failures) ? `, ${cadre.plural(row(experiment.trials.failures), "failure")}` : ""}`],
      ["directory", cadre.element("span", {}, cadre.userText(path), " ", cadre.copyButton(path, "the trial's directory"))]]),
    experiment.parameters.length ? [cadre.element("h3", {}, "Config"), cadre.pairs(experiment.parameters.map((column) => [column.name, cadre.cellNode(column.cells[trial])]))] : null,
    cadre.element("h3", {}, "Last result"),
    cadre.pairs(experiment.metrics.filter((column) => column.cells[trial] !== null).map((column) => [column.name, cadre.cellNode(column.cells[trial])])),
    experiment.hasExploits() ? [cadre.element("h3", {}, "Ancestry"), cadre.element("ol", {}, experiment.ancestry(trial).map((segment) => cadre.element("li", {},
      segment.exploit ? cadre.exploitText(experiment, segment) : `${experiment.trials.id[segment.trial]} began`)))] : null,
    own.length ? [cadre.element("h3", {}, "Checkpoints"), cadre.element("ul", {class: "plain"}, own.map((at) => cadre.element("li", {}, cadre.userText(checkpoints.path[at]), " ", cadre.copyButton(checkpoints.path[at], "the checkpoint's path"))))] : null);
  };
  selection.addEventListener("open", () => {
    if (experiment.isRun) return;
    show();
    dialog.showModal();
  });
  return () => {
    if (!dialog.open || (!getSelection().isCollapsed && dialog.contains(getSelection().anchorNode))) return;
    if (selection.opened === null) return void dialog.close();  // the document has the trial no more
    const {scrollTop} = dialog;
    cadre.keepFocus(dialog, show);
    dialog.scrollTop = scrollTop;
  };
};
