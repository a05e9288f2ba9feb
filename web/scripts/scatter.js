// A point for each trial: a parameter, or another column, against the metric.
"use strict";

// Returns the lines of a picture of points: those of `strong` trials stand out.
cadre.pointLines = (experiment, selection, x, y, color, strong = []) => {
  const special = new Set(strong);
  const size = experiment.count > 2000 ? 1.8 : experiment.count > 300 ? 2.5 : 4;
  const groups = new Map();
  for (const trial of experiment.ranking().slice().reverse()) {
    if (!selection.includes(trial) || special.has(trial)) continue;
    const key = color(trial);
    if (!groups.has(key)) groups.set(key, []);
    groups.get(key).push(trial);
  }
  const point = (trial, key, width) => ({item: trial, x: [x(trial)], y: [y(trial)], color: key, width, alpha: 0.85, points: true});
  return [...[...groups].flatMap(([key, trials]) => trials.map((trial) => point(trial, key, size))),
    ...strong.filter((trial) => selection.includes(trial)).map((trial) => point(trial, cadre.theme.winner(), size + 2))];
};

// Returns the axis of a column with texts, which has a place for each: the places of trials, and the axis of a chart.
// Returns null for a column of numbers.
cadre.textAxis = (experiment, key) => {
  const column = experiment.column(key);
  const texts = cadre.cellCategories(column.cells);
  if (!texts.length) return null;
  const index = new Map(texts.map((text, at) => [text, at]));
  // Points with the same text are spread a little, always in the same way.
  const spread = (trial) => (((trial * 0.6180339887) % 1) - 0.5) * 0.5;
  return {value: (trial) => (column.cells[trial] === null ? NaN : (index.get(cadre.cellText(column.cells[trial])) ?? NaN) + spread(trial)),
    axis: {range: [-0.6, texts.length - 0.4], splits: () => texts.map((_, at) => at), values: (u, splits) => splits.map((at) => (texts[at] ?? "").slice(0, 14))}};
};

cadre.sections.push({
  id: "scatter", title: "Parameters against the metric",
  isThere: (experiment) => !experiment.isRun && experiment.count > 1 && experiment.parameters.length > 0 &&
    experiment.metrics.some((column) => experiment.isNumeric(column.name)),
  build(host, {experiment, selection}) {
    let keys, metrics, numeric;
    const look = () => {
      keys = experiment.parameters.map((column) => `config/${column.name}`);
      metrics = experiment.metrics.filter((column) => experiment.isNumeric(column.name)).map((column) => column.name);
      numeric = keys.filter((key) => experiment.isNumeric(key));
    };
    look();
    const state = {x: keys[0], y: metrics[0], color: ""};
    const name = (key) => (key.startsWith("config/") ? key.slice(7) : key);
    const chart = new cadre.Chart(cadre.element("div", {class: "chart-host"}), {
      label: "Parameters against the metric", height: 340, selection, x: {label: ""}, y: {},
      lines: () => {
        const text = cadre.textAxis(experiment, state.x), xs = experiment.numbers(state.x), ys = experiment.numbers(state.y);
        const position = state.color ? cadre.positions(experiment.numbers(state.color), experiment.isLogarithmic(state.color)) : null;
        const base = cadre.theme.categories()[0];
        const color = position ? (trial) => (Number.isNaN(position(trial)) ? cadre.theme.css("--line-grey") : cadre.theme.viridis(Math.round(position(trial) * 24) / 24)) : () => base;
        return cadre.pointLines(experiment, selection, text ? text.value : (trial) => xs[trial], (trial) => ys[trial], color, experiment.best === null ? [] : [experiment.best]);
      },
      tip: (trial) => cadre.tip(`trial ${experiment.trials.id[trial]}`, [[state.y, cadre.cellText(experiment.column(state.y).cells[trial])],
        ...experiment.parameters.slice(0, 8).map((column) => [column.name, cadre.cellText(column.cells[trial])])]),
    });
    const legend = cadre.element("div", {class: "legend"});
    const logY = cadre.toggle("log y", false, (on) => { state.logY = on; update(); });
    const configure = () => {
      const text = cadre.textAxis(experiment, state.x);
      chart.options.x = {label: cadre.line(name(state.x)), pad: 0.03, ...(text ? text.axis : {log: experiment.isLogarithmic(state.x)})};
      chart.options.y = {log: state.logY};
      caption.textContent = cadre.line(name(state.y));
      cadre.replaceChildren(legend, state.color ? cadre.gradientLegend(name(state.color), experiment.numbers(state.color), experiment.isLogarithmic(state.color)) : null);
    };
    const update = () => {
      configure();
      chart.zoom = null;
      chart.update();
    };
    const caption = cadre.element("p", {class: "caption"});
    const options = () => [keys.map((key) => [key, name(key)]), metrics.map((key) => [key, key]),
      [["", "one for all"], ...[...numeric, ...metrics].map((key) => [key, name(key)])]];
    const choices = [
      cadre.choice("parameter", options()[0], state.x, (value) => { state.x = value; update(); }),
      cadre.choice("against", options()[1], state.y, (value) => { state.y = value; update(); }),
      cadre.choice("colour", options()[2], "", (value) => { state.color = value; update(); })];
    host.append(cadre.element("div", {class: "controls"}, choices, logY, cadre.button("Reset zoom", () => chart.setZoom(null))), caption, chart.host, legend,
    cadre.element("p", {class: "note"}, "Large: the best trial."));
    selection.addEventListener("filter", () => chart.redraw());
    update();
    return () => {
      look();
      options().forEach((list, at) => cadre.setOptions(choices[at], list));
      configure();
      chart.refresh();
    };
  },
});
