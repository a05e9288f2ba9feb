// Several experiments side by side: a table, their best values so far in one picture, their curves in pictures with the
// same axes, and a tab with everything about each.
"use strict";

// The experiment under the pointer, as Selection has a trial.
cadre.ComparisonSelection = class extends EventTarget {
  constructor(experiments, open) {
    super();
    Object.assign(this, {experiments, open, hovered: null});
  }
  hover(index) {
    if (index === this.hovered) return;
    this.hovered = index;
    this.dispatchEvent(new Event("hover"));
  }
  step(by) { this.hover(Math.max(0, Math.min(this.experiments.length - 1, (this.hovered ?? -by) + by))); }
};

// Returns the best value among all results up to each place on the axis: steps as {x, y}.
cadre.envelope = (experiment, xName, yName, isBetter) => {
  const places = [];
  for (let trial = 0; trial < experiment.count; ++trial) {
    const xs = experiment.series(trial, xName), ys = experiment.series(trial, yName);
    if (xs && ys) for (let i = 0; i < xs.length; ++i) if (Number.isFinite(xs[i]) && Number.isFinite(ys[i])) places.push([xs[i], ys[i]]);
  }
  places.sort((a, b) => a[0] - b[0]);
  const x = [], y = [];
  let best = NaN;
  for (let i = 0; i < places.length; ++i) {
    let [at, value] = places[i];
    for (; i + 1 < places.length && places[i + 1][0] === at; ++i) if (isBetter(places[i + 1][1], value)) value = places[i + 1][1];
    if (!Number.isNaN(best) && !isBetter(value, best)) continue;
    if (!Number.isNaN(best)) { x.push(at); y.push(best); }
    best = value;
    x.push(at);
    y.push(best);
  }
  if (places.length) { x.push(places.at(-1)[0]); y.push(best); }
  return {x, y};
};

cadre.comparisonColor = (at) => [cadre.theme.categories()[0], cadre.theme.winner(), ...cadre.theme.categories().slice(1)][at % 6];

// Returns the dashes of an experiment's line: those after the first six have the same colours.
cadre.comparisonDash = (at) => [null, [9, 6], [1, 6]][Math.floor(at / 6) % 3];

// Returns a piece of an experiment's line, for a legend.
cadre.comparisonSwatch = (at) => {
  const swatch = cadre.element("span", {class: "swatch"});
  const color = cadre.comparisonColor(at), dash = cadre.comparisonDash(at);
  const stripes = ([drawn, gap]) => `repeating-linear-gradient(to right, ${color} 0 ${drawn / 2 + 1}px, transparent 0 ${(drawn + gap) / 2}px)`;
  swatch.style.background = dash ? stripes(dash) : color;
  return swatch;
};

cadre.comparisonTable = (experiments, open) => {
  const rows = experiments.map((experiment, at) => {
    const name = cadre.element("th", {scope: "row"}, cadre.comparisonSwatch(at), " ", cadre.button(cadre.userText(experiment.name), () => open(at), {class: "link"}));
    const attributes = {"data-experiment": experiment.name};
    if (!experiment.isReadable)
      return cadre.element("tr", attributes, name, cadre.element("td", {class: "status status-error", colspan: "6"}, "could not be read"));
    const {document} = experiment;
    const best = experiment.best === null ? null : experiment.column(experiment.metric)?.cells[experiment.best];
    return cadre.element("tr", attributes, name, cadre.element("td", {class: `state-${document.state}`}, cadre.stateText(document)),
      cadre.element("td", {}, experiment.metric ? [cadre.userText(experiment.metric), experiment.mode ? ` (${experiment.mode})` : ""] : ""),
      cadre.element("td", {class: "number", "data-column": "best", "data-value": cadre.cellExact(best)}, cadre.cellText(best ?? null)),
      cadre.element("td", {class: "number", "data-column": "trials"}, cadre.count(experiment.isRun ? 1 : document.trials_in_all)),
      cadre.element("td", {class: "number"}, cadre.duration(experiment.isRun ? document.run.duration : document.running_seconds)),
      cadre.element("td", {}, cadre.line((document.options.find(([label]) => label === "scheduler")?.[1] ?? "").split(":")[0])));
  });
  return cadre.element("div", {class: "scroll", tabindex: "0", role: "region", "aria-label": "Table of experiments"}, cadre.element("table", {class: "experiments"},
    cadre.element("caption", {class: "off-screen"}, "Experiments"),
    cadre.element("thead", {}, cadre.element("tr", {}, ["experiment", "state", "metric", "best", "trials", "time", "scheduler"].map((head, at) =>
      cadre.element("th", {scope: "col", class: at >= 3 && at <= 5 ? "number" : null}, head)))), cadre.element("tbody", {}, rows)));
};

// Returns a function that brings the pictures up to date.
cadre.comparisonCurves = (host, experiments, open) => {
  const skipped = new Set(["training_iteration", "time_total_s", "timestamp"]);
  const state = {x: null, y: null, mode: null, logY: false};
  let readable = [], names = [], axes = [];
  const modeOf = (name) => readable.find((experiment) => experiment.metric === name && experiment.mode)?.mode ?? (/acc|score|reward|f1|auc/i.test(name) ? "max" : "min");
  const look = () => {
    readable = experiments.filter((experiment) => experiment.isReadable && experiment.seriesNames().length > 0);
    const counts = new Map();
    for (const experiment of readable) for (const name of experiment.seriesNames()) counts.set(name, (counts.get(name) ?? 0) + 1);
    const first = readable.map((experiment) => experiment.metric).find((metric) => metric && counts.has(metric));
    names = [...counts.keys()].filter((name) => !skipped.has(name)).sort((a, b) => (b === first) - (a === first) || counts.get(b) - counts.get(a));
    axes = [...new Map(readable.flatMap((experiment) => cadre.xAxes(experiment)))];
  };
  const selection = new cadre.ComparisonSelection(experiments, open);
  const label = () => axes.find(([name]) => name === state.x)?.[1] ?? cadre.line(state.x);
  const better = (a, b) => (state.mode === "max" ? a > b : a < b);

  const chart = new cadre.Chart(cadre.element("div", {class: "chart-host"}), {
    label: "The best values so far of all experiments", height: 320, selection, x: {label: ""}, y: {},
    lines: () => readable.map((experiment) => ({item: experiment.index, ...cadre.envelope(experiment, state.x, state.y, better),
      color: cadre.comparisonColor(experiment.index), dash: cadre.comparisonDash(experiment.index), width: 2.5})).filter((line) => line.x.length),
    tip: (index, x, y) => cadre.tip(cadre.line(experiments[index].name), [[label(), cadre.number(x)], [`best ${state.y} so far`, cadre.number(y)]]),
  });
  // One picture for each, with the same axes.
  const linesOf = (experiment) => {
    if (!readable.includes(experiment)) return [];
    const grey = cadre.theme.css("--line-grey");
    const others = experiment.ranking().slice(0, 1000).reverse().flatMap((trial) => cadre.curveLines(experiment, trial, state.x, state.y)
      .map((line) => ({...line, item: experiment.index, color: grey, width: 1, alpha: experiment.count > 200 ? 0.3 : 0.7})));
    const best = experiment.best === null ? [] : cadre.ancestryLines(experiment, experiment.best, state.x, state.y);
    return [...others, ...best.map((line) => ({...line, item: experiment.index, color: cadre.comparisonColor(experiment.index), width: 2.5}))];
  };
  const grid = cadre.element("div", {class: "side-by-side"});
  let lines = [];  // by experiment, as drawn in `small`
  const small = experiments.map((experiment, at) => {
    const one = new cadre.Chart(cadre.element("div", {class: "chart-host"}), {label: `Learning curves of ${cadre.line(experiment.name)}`, height: 220,
      x: {label: ""}, y: {}, lines: () => lines[at]});
    grid.append(cadre.element("figure", {class: "schedule"}, cadre.element("figcaption", {}, cadre.userText(experiment.name)), one.host));
    return one;
  });
  const caption = cadre.element("p", {class: "caption"});
  const layOut = () => {
    caption.textContent = `${cadre.line(state.y)}: the ${state.mode === "max" ? "highest" : "lowest"} of all trials so far`;
    chart.options.x = {label: label(), whole: state.x === "training_iteration"};
    chart.options.y = {log: state.logY};
    lines = experiments.map(linesOf);
    const frame = chart.extentOf.call({options: {x: {}, y: {log: state.logY}}}, lines.flat());
    small.forEach((one, at) => {
      one.host.parentElement.hidden = lines[at].length === 0;  // it has no such metric
      one.options.x = {...chart.options.x, range: frame.x};
      one.options.y = {log: state.logY, range: frame.y};
    });
  };
  const choose = (values) => {
    Object.assign(state, values);
    layOut();
    for (const one of [chart, ...small]) {
      one.zoom = null;
      one.update();
    }
  };
  const mode = cadre.choice("good", [["max", "high values"], ["min", "low values"]], "max", (value) => choose({mode: value}));
  const metric = cadre.choice("metric", [], null, (y) => {
    mode.querySelector("select").value = modeOf(y);
    choose({y, mode: modeOf(y)});
  });
  const by = cadre.choice("by", [], null, (x) => choose({x}));
  const parts = cadre.element("div", {class: "comparison-curves", hidden: true}, cadre.element("div", {class: "controls"}, metric, mode, by,
    cadre.toggle("log y", false, (logY) => choose({logY})), cadre.button("Reset zoom", () => chart.setZoom(null))),
  caption, chart.host, cadre.element("h3", {}, "All curves, with the same axes"), grid);
  host.append(parts);
  const update = () => {
    look();
    parts.hidden = !names.length;
    if (!names.length) return;
    cadre.setOptions(metric, names.map((name) => [name, name]));
    cadre.setOptions(by, axes);
    if (state.y === null || !names.includes(state.y) || !axes.some(([name]) => name === state.x)) {
      const [y, x, good] = [names[0], axes[0][0], modeOf(names[0])];
      metric.querySelector("select").value = y;
      by.querySelector("select").value = x;
      mode.querySelector("select").value = good;
      return choose({x, y, mode: good});
    }
    layOut();
    for (const one of [chart, ...small]) one.refresh();
  };
  update();
  return update;
};

// Gives experiments with the same name more of their paths.
cadre.tellApart = (experiments) => {
  const isShared = (name) => experiments.filter((other) => other.name === name).length > 1;
  for (const parts of [2, Infinity]) {
    for (const experiment of experiments.filter(({name}) => isShared(name)))
      experiment.label = experiment.document.path?.split("/").slice(-parts).join("/");
    for (const experiment of experiments) experiment.name = experiment.label ?? experiment.name;
  }
};

// Makes the parts about several experiments. Returns a view for pages that grow: update(changes) calls, for each experiment
// that has news, a function that gives it a later document and returns the keys of it that have changed.
cadre.buildComparison = (main, experiments) => {
  cadre.tellApart(experiments);
  const panels = experiments.map((experiment, at) => cadre.element("div", {class: "experiment", role: "tabpanel", id: `panel-${at}`, "aria-labelledby": `tab-${at}`, hidden: true}));
  const views = experiments.map(() => null);
  const tabs = experiments.map((experiment, at) => cadre.button(cadre.userText(experiment.name), () => show(at), {role: "tab", id: `tab-${at}`, "aria-controls": `panel-${at}`}));
  const show = (at) => {
    tabs.forEach((tab, i) => {
      tab.setAttribute("aria-selected", i === at);
      tab.tabIndex = i === at ? 0 : -1;
      panels[i].hidden = i !== at;
    });
    views[at] ??= cadre.buildExperiment(panels[at], experiments[at]);
  };
  const open = (at) => {
    show(at);
    bar.scrollIntoView();
  };
  const bar = cadre.element("div", {class: "tabs", role: "tablist", "aria-label": "Experiments", onkeydown: (event) => {
    const by = {ArrowRight: 1, ArrowLeft: -1}[event.key];
    if (!by) return;
    const next = (tabs.indexOf(document.activeElement) + by + tabs.length) % tabs.length;
    show(next);
    tabs[next].focus();
  }}, tabs);
  const unreadable = cadre.element("div"), table = cadre.element("div");
  const card = cadre.element("section", {class: "card comparison", "aria-labelledby": "comparison-title"}, cadre.element("h2", {id: "comparison-title"}, "Comparison"), table);
  main.append(unreadable, card, bar, ...panels);
  const summarize = () => {
    experiments.forEach((experiment, at) => tabs[at].classList.toggle("unreadable-tab", !experiment.isReadable));
    const faults = experiments.filter((experiment) => !experiment.isReadable).map((experiment) => cadre.element("p",
      {class: "card unreadable", role: "alert", "data-unreadable": experiment.name}, cadre.userText(experiment.name), " could not be read: ", cadre.line(experiment.document.reason)));
    if (faults.map((one) => one.textContent).join() !== Array.from(unreadable.children, (one) => one.textContent).join()) cadre.replaceChildren(unreadable, faults);  // is read out once
    const scrolled = table.firstChild?.scrollLeft ?? 0;
    cadre.keepFocus(table, () => cadre.replaceChildren(table, cadre.comparisonTable(experiments, open)));
    table.firstChild.scrollLeft = scrolled;
  };
  summarize();
  const updateCurves = cadre.comparisonCurves(card, experiments, open);
  show(Math.max(0, experiments.findIndex((experiment) => experiment.isReadable)));
  return {update: (changes) => {
    changes.forEach((apply, at) => {
      if (!apply) return;
      if (views[at]) views[at] = views[at].update(apply);
      else apply();
    });
    summarize();
    updateCurves();
  }};
};
