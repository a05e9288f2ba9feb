// The Pareto front of two metrics: the trials that no other trial beats in both.
"use strict";

// Returns the trials on the front, in the order of the first metric, the best first. `signs`: 1 where low values are good.
cadre.paretoFront = (trials, xs, ys, signs) => {
  const losses = trials.map((trial) => [signs[0] * xs[trial], signs[1] * ys[trial], trial])
    .filter(([a, b]) => Number.isFinite(a) && Number.isFinite(b)).sort((a, b) => a[0] - b[0] || a[1] - b[1] || a[2] - b[2]);
  const front = [];
  let least = Infinity;
  for (const [a, b, trial] of losses) {
    const last = front.at(-1);
    if (b < least || (last && last[0] === a && last[1] === b)) front.push([a, b, trial]);
    least = Math.min(least, b);
  }
  return front.map(([, , trial]) => trial);
};

cadre.sections.push({
  id: "pareto", title: "Pareto front",
  isThere: (experiment) => !experiment.isRun && experiment.count > 1 && cadre.paretoMetrics(experiment).length > 1,
  build(host, {experiment, selection}) {
    let metrics = cadre.paretoMetrics(experiment);
    const guess = (name) => (name === experiment.metric && experiment.mode ? experiment.mode : /acc|score|reward|f1|auc|precision|recall/i.test(name) ? "max" : "min");
    const second = metrics.find((name) => name !== metrics[0] && name !== "time_total_s") ?? metrics[1];
    const state = {x: second, y: metrics[0], xMode: guess(second), yMode: guess(metrics[0])};
    const list = cadre.element("p", {class: "note front"});
    const caption = cadre.element("p", {class: "caption"});
    let front = [];
    const chart = new cadre.Chart(cadre.element("div", {class: "chart-host"}), {
      label: "Pareto front", height: 340, selection, x: {label: ""}, y: {},
      lines: () => {
        const xs = experiment.numbers(state.x), ys = experiment.numbers(state.y);
        const grey = cadre.theme.css("--line-grey");
        const points = cadre.pointLines(experiment, selection, (trial) => xs[trial], (trial) => ys[trial], () => grey, front);
        const x = [], y = [];
        for (const trial of front) {
          if (x.length) { x.push(xs[trial]); y.push(y.at(-1)); }
          x.push(xs[trial]);
          y.push(ys[trial]);
        }
        return [{item: null, x, y, color: cadre.theme.winner(), width: 1.5, alpha: 0.8}, ...points];
      },
      tip: (trial) => cadre.tip(`trial ${experiment.trials.id[trial]}${front.includes(trial) ? ", on the front" : ""}`,
        [state.x, state.y].map((key) => [key, cadre.cellText(experiment.column(key).cells[trial])])
          .concat(experiment.parameters.slice(0, 8).map((column) => [column.name, cadre.cellText(column.cells[trial])]))),
    });
    const configure = () => {
      const trials = Array.from({length: experiment.count}, (_, i) => i);
      front = cadre.paretoFront(trials, experiment.numbers(state.x), experiment.numbers(state.y), [state.xMode === "min" ? 1 : -1, state.yMode === "min" ? 1 : -1]);
      host.dataset.front = front.map((trial) => experiment.trials.id[trial]).join(" ");
      host.dataset.metrics = JSON.stringify([[state.x, state.xMode], [state.y, state.yMode]]);
      chart.options.x = {label: `${cadre.line(state.x)} (${state.xMode === "min" ? "lower" : "higher"} is better)`, pad: 0.03};
      caption.textContent = `${cadre.line(state.y)} (${state.yMode === "min" ? "lower" : "higher"} is better)`;
      cadre.replaceChildren(list, `${cadre.plural(front.length, "trial")} that no other beats: `, front.slice(0, 30).map((trial) => [cadre.button(experiment.trials.id[trial], () => selection.open(trial), {class: "link"}), " "]), front.length > 30 ? "\u2026" : null);
    };
    const update = () => {
      configure();
      chart.zoom = null;
      chart.update();
    };
    const choices = [];
    const axis = (side) => [
      choices[choices.push(cadre.choice(side === "x" ? "across" : "upwards", metrics.map((name) => [name, name]), state[side], (value) => { state[side] = value; update(); })) - 1],
      cadre.choice("good", [["min", "low values"], ["max", "high values"]], state[`${side}Mode`], (value) => { state[`${side}Mode`] = value; update(); })];
    host.append(cadre.element("div", {class: "controls"}, axis("x"), axis("y")), caption, chart.host, list);
    selection.addEventListener("filter", () => chart.redraw());
    update();
    return () => {
      metrics = cadre.paretoMetrics(experiment);
      for (const choice of choices) cadre.setOptions(choice, metrics.map((name) => [name, name]));
      configure();
      chart.refresh();
    };
  },
});

cadre.paretoMetrics = (experiment) => {
  const parameters = new Set(experiment.parameters.map((column) => column.name));
  return experiment.metrics.map((column) => column.name)
    .filter((name) => !["training_iteration", "timestamp"].includes(name) && !parameters.has(name) && new Set(experiment.numbers(name)).size > 1);
};
