// A summary of the experiment: key figures, the best trial, the options.
"use strict";

cadre.stateText = (document) => {
  if (document.kind === "training_run" && document.run.status && document.state === "running") return `running (${document.run.status})`;
  return document.paused ? "paused" : document.state;
};

cadre.tile = (label, value, note, attributes = {}) =>
  cadre.element("div", {class: "tile", ...attributes}, cadre.element("div", {class: "tile-label"}, label),
    cadre.element("div", {class: "tile-value"}, value), note ? cadre.element("div", {class: "tile-note"}, note) : null);

cadre.pairs = (pairs) => cadre.element("dl", {class: "pairs"}, pairs.map(([name, value]) =>
  [cadre.element("dt", {}, cadre.userText(name)), cadre.element("dd", {}, value instanceof Node ? value : cadre.userText(value))]));

cadre.cellNode = (cell) => cadre.element("bdi", {"data-value": cadre.cellExact(cell), title: cadre.printable(cadre.cellExact(cell))},
  cadre.cellText(cell));

cadre.sections.push({
  id: "summary", title: "Summary", isThere: () => true,
  build(host, {experiment, selection}) {
    const document = experiment.document;
    const statuses = Object.entries(document.trials_by_status).filter(([, count]) => count > 0);
    const tiles = cadre.element("div", {class: "tiles"});
    const add = (...tile) => tiles.append(cadre.tile(...tile));
    const seconds = experiment.isRun ? document.run.duration : document.running_seconds;
    if (experiment.metric)
      add(`Best ${cadre.line(experiment.metric)}`, experiment.best === null ? "none yet" : cadre.number(experiment.score(experiment.best), 5),
        [experiment.mode ? `${experiment.mode === "max" ? "higher" : "lower"} is better` : "no direction",
          experiment.best !== null && !experiment.isRun ? [", ", cadre.button(`trial ${experiment.trials.id[experiment.best]}`, () => selection.open(experiment.best), {class: "link"})] : null],
        {class: "tile winner", "data-best": experiment.best === null ? "" : experiment.trials.id[experiment.best],
          "data-metric": experiment.metric, "data-mode": experiment.mode ?? "", "data-value": cadre.cellExact(experiment.best === null ? null : experiment.column(experiment.metric)?.cells[experiment.best])});
    if (experiment.isRun) add("Reports", cadre.count(experiment.trials.results[0] ?? 0), cadre.plural(document.run.attempts, "attempt"));
    else add("Trials", cadre.count(document.trials_in_all), statuses.map(([status, count]) => `${cadre.count(count)} ${status.toLowerCase()}`).join(", "), {"data-trials": document.trials_in_all});
    if (seconds > 0) add("Time", cadre.duration(seconds), document.sessions > 1 ? `in ${document.sessions} sessions` : document.started ? `from ${cadre.time(document.started)}` : null);
    if (experiment.hasExploits()) add("Exploits", cadre.count(document.exploits.length), "a trial continued from another");
    add("State", cadre.element("span", {class: `state state-${document.state}`}, cadre.stateText(document)),
      document.stop_reason ? cadre.line(document.stop_reason) : document.progress ? cadre.line(document.progress) : document.controller ? cadre.line(document.controller) : document.read ? `read ${cadre.time(document.read)}` : null);
    host.append(tiles);

    const columns = cadre.element("div", {class: "two"});
    if (experiment.isRun) {
      columns.append(cadre.element("div", {}, cadre.element("h3", {}, "Config"), cadre.pairs(document.run.config.map(([key, cell]) => [key, cadre.cellNode(cell)]))));
    } else if (experiment.best !== null) {
      columns.append(cadre.element("div", {"data-config-of": experiment.trials.id[experiment.best]},
        cadre.element("h3", {}, `Config of the best trial, ${experiment.trials.id[experiment.best]}`),
        experiment.parameters.length ? cadre.pairs(experiment.parameters.map((column) => [column.name, cadre.cellNode(column.cells[experiment.best])]))
          : cadre.element("p", {class: "note"}, "All trials have the same config.")));
    }
    const about = [["directory", cadre.element("span", {}, cadre.userText(document.path), " ", cadre.copyButton(document.path, "the directory"))]];
    if (document.controller) about.push(["run by", document.controller]);
    if (document.trainable) about.push(["trainable", document.trainable]);
    columns.append(cadre.element("div", {}, cadre.element("h3", {}, "How it was made"),
      cadre.pairs([...about, ...document.options])));
    host.append(columns);
    const notes = [];
    if (document.trials_in_all > experiment.count)
      notes.push(`This page has a sample: ${cadre.count(experiment.count)} of ${cadre.count(document.trials_in_all)} trials, the best half of them and others at equal distances.`);
    if (document.curves.reduced > 0)
      notes.push(`Curves of ${cadre.plural(document.curves.reduced, "trial")} are thinned out: of each stretch the results with the lowest and highest values are kept.`);
    if (document.curves.names_in_all > document.curves.names.length)
      notes.push(`The first ${document.curves.names.length} of ${document.curves.names_in_all} metrics are here.`);
    for (const note of notes) host.append(cadre.element("p", {class: "note", "data-sampled": ""}, note));
  },
});
