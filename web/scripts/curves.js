// Learning curves: any column of the results, by iteration or by time.
"use strict";

// Returns the horizontal axes that an experiment's results have: [name, text] each.
cadre.xAxes = (experiment) => {
  const names = experiment.document.curves.names;
  const axes = [["training_iteration", "iteration"], ["time_total_s", "training time (s)"], ["timestamp", "time since the start (s)"]];
  for (const name of names) if (/(_total|steps|epoch)$/.test(name)) axes.push([name, cadre.line(name)]);
  return axes.filter(([name]) => names.includes(name));
};

// Returns the best values so far.
cadre.runningBest = (values, isBetter) => {
  let best = NaN;
  return values.map((value) => {
    if (Number.isFinite(value) && (Number.isNaN(best) || isBetter(value, best))) best = value;
    return best;
  });
};

// Returns a trial's line for each of its segments, which begins where the donor's ended.
cadre.curveLines = (experiment, trial, xName, yName, best) => {
  const xs = experiment.series(trial, xName);
  let ys = experiment.series(trial, yName);
  if (!xs || !ys) return [];
  if (best) {
    const better = best === "max" ? (a, b) => a > b : (a, b) => a < b;
    return [{item: trial, x: xs, y: cadre.runningBest(ys, better)}];
  }
  return experiment.segments[trial].filter((segment) => segment.end > segment.begin).map((segment) => {
    const x = Array.from(xs.subarray(segment.begin, segment.end)), y = Array.from(ys.subarray(segment.begin, segment.end));
    const parent = segment.parent;
    if (parent && segment.parentRow !== null) {
      const px = experiment.series(parent.trial, xName), py = experiment.series(parent.trial, yName);
      if (px && py) {
        x.unshift(px[segment.parentRow]);
        y.unshift(yName.startsWith("config/") ? y[0] : py[segment.parentRow]);
      }
    }
    return {item: trial, segment, x, y};
  });
};

// Returns the lines of all results that led to the trial's last one.
cadre.ancestryLines = (experiment, trial, xName, yName, best) => {
  if (best) return cadre.curveLines(experiment, trial, xName, yName, best);
  const path = experiment.ancestry(trial);
  return path.map((segment, at) => {
    const line = cadre.curveLines(experiment, segment.trial, xName, yName).find((one) => one.segment === segment);
    const next = path[at + 1];
    if (!line || !next || next.parentRow === null) return line;
    // Only up to the checkpoint from which the next one continued.
    const length = next.parentRow - segment.begin + 1 + (segment.parent && segment.parentRow !== null && line.x.length > segment.end - segment.begin ? 1 : 0);
    return {...line, x: line.x.slice(0, length), y: line.y.slice(0, length)};
  }).filter(Boolean);
};

cadre.sections.push({
  id: "curves", title: "Learning curves",
  isThere: (experiment) => experiment.document.curves.trials.some((curve) => curve !== null) && cadre.xAxes(experiment).length > 0,
  build(host, {experiment, selection}) {
    const skipped = new Set(["training_iteration", "time_total_s", "timestamp"]);
    let axes, ys, colors;
    const look = () => {
      const names = experiment.seriesNames();
      axes = cadre.xAxes(experiment);
      ys = [...names.filter((name) => !skipped.has(name)), ...names.filter((name) => skipped.has(name))];
      colors = [["best", "best trials"], ...(experiment.hasExploits() ? [["founder", "founder"]] : []),
        ...experiment.parameters.filter((column) => experiment.isNumeric(`config/${column.name}`)).map((column) => [`config/${column.name}`, column.name])];
    };
    look();
    const state = {x: axes[0]?.[0] ?? "training_iteration", y: ys[0], best: "", color: "best", logX: false, logY: false};
    const controls = cadre.element("div", {class: "controls"});
    const caption = cadre.element("p", {class: "caption"});
    const legend = cadre.element("div", {class: "legend"});
    const colorOf = () => {
      const grey = cadre.theme.css("--line-grey");
      const ranking = experiment.ranking().filter((trial) => selection.includes(trial) && experiment.document.curves.trials[trial]);
      if (state.color === "founder") {
        const founders = cadre.founderColors(experiment);
        return {color: (line) => founders.get(experiment.founder(line.segment ?? experiment.segments[line.item].at(-1))) ?? grey, legend: []};
      }
      if (state.color !== "best") {
        const numbers = experiment.numbers(state.color), isLog = experiment.isLogarithmic(state.color);
        const scale = cadre.positions(numbers, isLog);
        return {color: (line) => (Number.isNaN(scale(line.item)) ? grey : cadre.theme.viridis(scale(line.item))), all: true, gradient: [numbers, isLog]};
      }
      const few = ranking.slice(0, experiment.count <= 6 ? 6 : 5);
      const palette = experiment.isRun ? cadre.theme.categories() : [cadre.theme.winner(), ...cadre.theme.categories()];
      const chosen = new Map(few.map((trial, at) => [trial, palette[at]]));
      return {color: (line) => chosen.get(line.item) ?? grey, legend: few.map((trial) => [trial, chosen.get(trial)])};
    };

    const lines = () => {
      const palette = colorOf();
      const made = [];
      const ranking = experiment.ranking();
      const isDense = experiment.count > 200;
      // The best ones are drawn last, above the others.
      for (let at = ranking.length - 1; at >= 0; --at) {
        if (!selection.includes(ranking[at])) continue;
        for (const line of cadre.curveLines(experiment, ranking[at], state.x, state.y, state.best)) {
          const color = palette.color(line);
          made.push({...line, color, width: 1.5, alpha: palette.all && isDense ? 0.6 : 1});
        }
      }
      if (state.color === "best" && experiment.hasExploits() && experiment.best !== null && selection.includes(experiment.best) && !state.best)
        made.push(...cadre.ancestryLines(experiment, experiment.best, state.x, state.y).map((line) => ({...line, color: cadre.theme.winner(), width: 3, alpha: 1})));
      const grey = cadre.theme.css("--line-grey");
      for (const line of made) if (line.color === grey) Object.assign(line, {width: 1, alpha: isDense ? Math.max(0.05, 60 / experiment.count) : 0.75});
      made.sort((a, b) => (a.color === grey ? 0 : 1) - (b.color === grey ? 0 : 1));
      cadre.replaceChildren(legend, experiment.isRun ? [] : (palette.legend ?? []).map(([trial, color], at) =>
        cadre.button([cadre.element("span", {class: "swatch"}), `${experiment.trials.id[trial]}${at === 0 && experiment.best === trial ? " (best)" : ""}`], () => selection.open(trial),
          {class: "legend-item", onpointerenter: () => selection.hover(trial), onpointerleave: () => selection.hover(null),
            onfocus: () => selection.hover(trial), onblur: () => selection.hover(null)})),
      palette.legend?.length && experiment.count > palette.legend.length && !experiment.isRun ? cadre.element("span", {class: "note"}, `grey: ${cadre.plural(experiment.count - palette.legend.length, "other trial")}`) : null,
      state.color === "best" && experiment.hasExploits() && experiment.best !== null && !state.best ? cadre.element("span", {class: "note"}, "thick: all that led to the best trial's last result") : null,
      palette.gradient ? cadre.gradientLegend(state.color, ...palette.gradient) : null);
      if (!experiment.isRun) legend.querySelectorAll(".swatch").forEach((swatch, at) => { swatch.style.background = palette.legend[at][1]; });
      return made;
    };

    const chart = new cadre.Chart(cadre.element("div", {class: "chart-host"}), {
      label: `Learning curves of ${cadre.line(experiment.name)}`, height: 380, selection,
      x: {label: "", log: false}, y: {log: false}, lines,
      emphasis: (trial) => cadre.ancestryLines(experiment, trial, state.x, state.y, state.best)
        .map((line) => ({...line, color: cadre.theme.winner(), width: 2, strong: cadre.theme.winner()})),
      tip: (trial, x, y) => cadre.tip(experiment.isRun ? cadre.line(experiment.name) : `trial ${experiment.trials.id[trial]}`,
        [[axes.find(([name]) => name === state.x)?.[1] ?? state.x, cadre.number(x)], [state.y, cadre.number(y)],
          ...experiment.parameters.slice(0, 6).map((column) => [column.name, cadre.cellText(column.cells[trial])])]),
      onZoom: (zoom) => { reset.hidden = !zoom; },
    });
    const reset = cadre.button("Reset zoom", () => chart.setZoom(null), {hidden: true});
    const update = () => {
      if (state.autoLog !== false) state.logY = state.y.startsWith("config/") && experiment.isLogarithmic(state.y);
      logY.querySelector("input").checked = state.logY;
      chart.options.x = {label: axes.find(([name]) => name === state.x)?.[1] ?? cadre.line(state.x), log: state.logX, whole: state.x === "training_iteration"};
      chart.options.y = {log: state.logY};
      chart.zoom = null;
      reset.hidden = true;
      host.dataset.metric = state.y;
      caption.textContent = cadre.line(state.y) + (state.best ? `, the ${state.best === "max" ? "highest" : "lowest"} so far` : "");
      chart.update();
    };
    const logY = cadre.toggle("log y", false, (on) => { state.logY = on; state.autoLog = false; update(); });
    const metric = cadre.choice("metric", ys.map((name) => [name, name]), state.y, (value) => { state.y = value; state.autoLog = true; update(); });
    const by = cadre.choice("by", axes, state.x, (value) => { state.x = value; update(); });
    const color = experiment.isRun ? null : cadre.choice("colour", colors, "best", (value) => { state.color = value; update(); });
    cadre.append(controls, [metric, by,
      cadre.choice("show", [["", "each value"], ["max", "highest so far"], ["min", "lowest so far"]], "", (value) => { state.best = value; update(); }),
      color,
      cadre.toggle("log x", false, (on) => { state.logX = on; update(); }), logY, reset]);
    selection.addEventListener("filter", () => chart.redraw());
    host.append(controls, caption, chart.host, legend,
      cadre.element("p", {class: "note keys"}, "Drag to zoom, double-click to reset. Keys: + \u2212 zoom, \u2190 \u2192 move, \u2191 \u2193 next trial, Enter opens it."));
    update();
    return () => {
      look();
      cadre.setOptions(metric, ys.map((name) => [name, name]));
      cadre.setOptions(by, axes);
      if (color) cadre.setOptions(color, colors);
      chart.refresh();
    };
  },
});

// Returns a function from a trial to its position between the lowest and the highest number, from 0 to 1.
cadre.positions = (numbers, isLog) => {
  const value = (number) => (isLog ? Math.log(number) : number);
  let low = Infinity, high = -Infinity;
  for (const number of numbers) {
    if (!Number.isFinite(value(number))) continue;
    low = Math.min(low, value(number));
    high = Math.max(high, value(number));
  }
  return (trial) => (high > low ? (value(numbers[trial]) - low) / (high - low) : Number.isFinite(numbers[trial]) ? 0.5 : NaN);
};

// Returns the colours of a column's numbers, from the lowest to the highest; null as long as it has none.
cadre.gradientLegend = (name, numbers, isLog, isReversed = false) => {
  const finite = Array.from(numbers).filter(Number.isFinite);
  if (!finite.length) return null;
  const bar = cadre.element("span", {class: "gradient"});
  bar.style.background = `linear-gradient(to right, ${[0, 0.25, 0.5, 0.75, 1].map((share) => cadre.theme.viridis(isReversed ? 1 - share : share)).join(",")})`;
  return cadre.element("span", {class: "legend-gradient"}, `${cadre.line(name)} ${cadre.number(finite.reduce((a, b) => Math.min(a, b), Infinity), 3)} `, bar,
    ` ${cadre.number(finite.reduce((a, b) => Math.max(a, b), -Infinity), 3)}${isLog ? " (log)" : ""}`);
};
