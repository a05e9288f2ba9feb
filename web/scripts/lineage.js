// The descent of a population: which trial continued from whose checkpoint and when, and the schedule of every parameter
// that this made. The winner's ancestry stands out.
"use strict";

cadre.kMostLanes = 60;

// Returns the colours of the founders with the most descendants at the end; the winner's is the winner's colour.
cadre.founderColors = (experiment) => {
  const counts = new Map();
  for (let trial = 0; trial < experiment.count; ++trial) {
    const founder = experiment.founder(experiment.segments[trial].at(-1));
    counts.set(founder, (counts.get(founder) ?? 0) + 1);
  }
  const colors = new Map();
  if (experiment.best !== null) colors.set(experiment.founder(experiment.ancestry(experiment.best)[0]), cadre.theme.winner());
  const palette = cadre.theme.categories();
  for (const [founder] of [...counts].sort((a, b) => b[1] - a[1])) {
    if (!colors.has(founder) && palette.length > 0) colors.set(founder, palette.shift());
  }
  return colors;
};

// Returns the trials that have a lane, from the top to the bottom: the winner's ancestors and the best ones.
cadre.lanes = (experiment, order) => {
  const chosen = new Set(experiment.best === null ? [] : experiment.ancestry(experiment.best).map((segment) => segment.trial));
  for (const trial of experiment.ranking()) if (chosen.size < cadre.kMostLanes) chosen.add(trial);
  const ranked = experiment.ranking().filter((trial) => chosen.has(trial));
  if (order === "id") return ranked.sort((a, b) => a - b);
  if (order === "score") return ranked;
  // Families together, the winner's first, and within one by score.
  const families = new Map();
  for (const trial of ranked) {
    const founder = experiment.founder(experiment.segments[trial].at(-1));
    if (!families.has(founder)) families.set(founder, []);
    families.get(founder).push(trial);
  }
  return [...families.values()].flat();
};

// Returns the part of each segment of an ancestry up to where the next one begins: [segment, from, to].
cadre.ancestrySpans = (experiment, trial) => {
  const path = experiment.ancestry(trial);
  return path.map((segment, at) => {
    const [begin, end] = experiment.span(segment);
    return [segment, begin, at + 1 < path.length ? experiment.span(path[at + 1])[0] : end];
  });
};

// Returns the points of a curve from one lane to another.
cadre.linkPoints = (x0, y0, x1, y1) => {
  const x = [], y = [];
  for (let i = 0; i <= 12; ++i) {
    const t = i / 12, ease = t * t * (3 - 2 * t);
    x.push(x0 + (x1 - x0) * t);
    y.push(y0 + (y1 - y0) * ease);
  }
  return {x, y};
};

// Returns "at 12 00003 continued from 00001, lr × 1.2 = 0.012" in words.
cadre.exploitText = (experiment, segment) => {
  const {exploit} = segment;
  const changes = exploit.changes.map(([key, before, operation, after]) =>
    `${cadre.line(key)} ${cadre.cellText(before)} ${cadre.line(operation).replace("*", "\u00d7")} \u2192 ${cadre.cellText(after)}`);
  return `at ${exploit.donor_iteration}, ${experiment.trials.id[segment.trial]} continued from ${exploit.donor}` +
    (changes.length ? `: ${changes.join(", ")}` : "");
};

// Returns what the picture shows, in words.
cadre.lineageText = (experiment, pieces) => {
  if (!pieces.length) return "Each lane is a trial, each bend an exploit: the trial continued from a checkpoint of the other.";
  const founder = pieces[0][0].trial;
  const family = experiment.segments.filter((segments) => experiment.founder(segments.at(-1)) === founder).length;
  const id = (trial) => experiment.trials.id[trial];
  return ["The thick line led to the winner, ", cadre.element("strong", {class: "winner-text"}, `trial ${id(experiment.best)}`),
    pieces.length > 1 ? `: it began in trial ${id(founder)} and went through ${cadre.plural(pieces.length - 1, "exploit")}. `
      : ", which never continued from another trial. ",
    `${family === experiment.count ? "All" : cadre.count(family)} ${family === experiment.count ? cadre.count(family) : `of ${cadre.count(experiment.count)}`} trials descend from ${id(founder)} at the end. `,
    "Colours are founders; grey lines have no descendants."];
};

cadre.sections.push({
  id: "lineage", title: "Lineage and schedules",
  isThere: (experiment) => experiment.hasExploits(),
  build(host, {experiment, selection}) {
    const group = new Set();
    const state = {order: "family"};
    const xAxis = {whole: true, label: "training_iteration", range: [0, 1]};
    const ySize = 76;  // the same for all pictures, so that their axes are below each other
    let maxX, pieces, winner, lanes, laneOf, laneHeight;
    const look = () => {
      maxX = experiment.segments.flat().reduce((most, segment) => Math.max(most, experiment.span(segment)[1]), 1);
      xAxis.range = [-maxX * 0.01, maxX * 1.02];
      pieces = experiment.best === null ? [] : cadre.ancestrySpans(experiment, experiment.best);
      winner = experiment.best === null ? null : experiment.trials.id[experiment.best];
      lanes = cadre.lanes(experiment, state.order);
      laneOf = new Map(lanes.map((trial, at) => [trial, at]));
      laneHeight = Math.max(9, Math.min(26, Math.round(620 / lanes.length)));
    };
    look();

    // Returns the lines of the segments in their lanes, with the links from their donors.
    const pathLines = (spans, style) => spans.flatMap(([segment, from, to], at) => {
      const lane = laneOf.get(segment.trial);
      const donor = segment.parent ? laneOf.get(segment.parent.trial) : undefined;
      if (lane === undefined) return [];
      const begin = donor === undefined || donor === lane ? from : Math.min(from + maxX * 0.018, Math.max(to, from));
      const made = [{item: segment.trial, x: [begin, to], y: [-lane, -lane], ...style(segment, at)}];
      if (donor !== undefined && donor !== lane)
        made.push({item: segment.trial, ...cadre.linkPoints(from, -donor, begin, -lane), ...style(segment, at), isLink: true});
      return made;
    });

    const lines = () => {
      const colors = cadre.founderColors(experiment);
      const grey = cadre.theme.css("--line-grey");
      const color = (segment) => colors.get(experiment.founder(segment)) ?? grey;
      const all = lanes.flatMap((trial) => experiment.segments[trial]).map((segment) => [segment, ...experiment.span(segment)]);
      const made = pathLines(all, (segment) => ({color: color(segment), width: laneHeight > 14 ? 2 : 1.5, alpha: 0.75}));
      const isWinners = pathLines(pieces, (segment, at) => ({color: cadre.theme.winner(), width: laneHeight > 14 ? 5 : 3.5, alpha: 1}));
      const marks = pieces.filter(([segment]) => segment.exploit && laneOf.has(segment.parent?.trial)).map(([segment, from]) =>
        ({item: null, x: [from], y: [-laneOf.get(segment.parent.trial)], color: cadre.theme.winner(), width: laneHeight > 14 ? 5 : 4, points: true}));
      return [...made, ...isWinners, ...marks];
    };

    const yAxis = {size: ySize, splits: () => lanes.map((_, at) => -at).reverse(),
      values: (u, splits) => splits.map((split) => {
        const trial = lanes[-split];
        return laneHeight < 14 && -split % 2 ? "" : trial === undefined ? "" : `${trial === experiment.best ? "\u2605 " : ""}${experiment.trials.id[trial]}`;
      })};
    const tree = new cadre.Chart(cadre.element("div", {class: "chart-host lineage-chart"}), {
      label: "", height: 0, selection, group, lines, x: xAxis, y: yAxis,
      emphasis: (trial) => pathLines(cadre.ancestrySpans(experiment, trial), () => ({color: trial === experiment.best ? cadre.theme.winner() : cadre.theme.css("--ink"), width: 3})),
      tip: (trial, x) => {
        const segment = experiment.segments[trial].findLast((one) => experiment.span(one)[0] <= x + 1e-9) ?? experiment.segments[trial][0];
        return cadre.tip(`trial ${experiment.trials.id[trial]}`, [
          ...(experiment.metric ? [[experiment.metric, cadre.number(experiment.score(trial))]] : []),
          ...experiment.parameters.slice(0, 8).map((column, at) => [column.name, cadre.cellText(segment.parameters[at] ?? null)]),
          ...(segment.exploit ? [["continued from", `${segment.exploit.donor} at ${segment.exploit.donor_iteration}`]] : [])]);
      },
    });
    const lead = cadre.element("p", {class: "lead"}), note = cadre.element("p", {class: "note"});
    const configure = () => {
      const path = pieces.map(([segment]) => experiment.trials.id[segment.trial]);
      tree.options.height = lanes.length * laneHeight + 70;
      yAxis.range = [-lanes.length + 0.3, 0.7];
      tree.root.setAttribute("aria-label", `Lineage of ${cadre.line(experiment.name)}. ${winner ? `The winner ${winner} descends from ${path.join(", then ")}.` : ""}`);
      Object.assign(tree.host.dataset, {winner: winner ?? "", ancestry: path.join(" ")});
      cadre.replaceChildren(lead, cadre.lineageText(experiment, pieces));
      note.hidden = lanes.length === experiment.count;
      note.textContent = `${lanes.length} of ${cadre.count(experiment.count)} trials have a lane: the winner's ancestors, and the best ones.`;
    };
    host.append(lead, cadre.element("div", {class: "controls"},
      cadre.choice("lanes", [["family", "families together"], ["score", "best first"], ["id", "by number"]], state.order, (value) => {
        state.order = value;
        look();
        tree.update();
      })), note, tree.host);
    configure();
    tree.update();

    // ---- Schedules, below each other on the same axis

    const heading = cadre.element("h3", {}, "Schedules"), text = cadre.element("p", {class: "note"},
      "The value of each explored parameter over the iterations: thick for what led to the winner, thin for all others.");
    const schedules = cadre.element("div");
    let made = [];
    const makeSchedules = () => {
      const explored = experiment.parameters.map((column, at) => [column, at]).filter(([column]) => column.explored);
      const names = JSON.stringify(explored.map(([column, at]) => [column.name, at]));
      if (schedules.dataset.names === names) return made.forEach((one) => one.update());
      schedules.dataset.names = names;
      schedules.className = explored.length > 3 ? "schedules side" : "schedules";
      heading.hidden = text.hidden = schedules.hidden = explored.length === 0;
      for (const one of made) one.chart.remove();
      made = explored.map(([column, at]) => cadre.scheduleChart(column.name, at, {experiment, selection, group, xAxis, ySize, pieces: () => pieces}));
      cadre.replaceChildren(schedules, made.map((one) => one.element));
    };
    host.append(heading, text, schedules);
    makeSchedules();

    const steps = cadre.element("ol"), said = cadre.element("summary");
    const words = cadre.element("details", {class: "steps"}, said, steps);
    const explain = () => {
      words.hidden = pieces.length < 2;
      said.textContent = `The winner's ${cadre.plural(pieces.length - 1, "exploit")} in words`;
      cadre.replaceChildren(steps, pieces.map(([segment]) => cadre.element("li", {}, segment.exploit
        ? cadre.exploitText(experiment, segment)
        : `${experiment.trials.id[segment.trial]} began with ${experiment.parameters.map((column, at) => `${cadre.line(column.name)} ${cadre.cellText(segment.parameters[at] ?? null)}`).join(", ")}`)));
    };
    host.append(words);
    explain();
    return () => {
      look();
      configure();
      tree.refresh();
      makeSchedules();
      explain();
    };
  },
});

// Returns a picture of one parameter's values over the iterations: its element, its chart, and a function that brings it up to
// date. `pieces` returns the winner's ancestry.
cadre.scheduleChart = (name, at, {experiment, selection, group, xAxis, ySize, pieces}) => {
  const cellOf = (segment) => segment.parameters[at] ?? null;
  let texts, isText, isLog;
  const placeOf = (cell) => (cell === null ? NaN : texts.indexOf(cadre.cellText(cell)));
  const valueOf = (segment) => (isText ? placeOf(cellOf(segment)) : cadre.cellNumber(cellOf(segment)));
  const steps = (spans, style) => {
    const x = [], y = [];
    for (const [segment, from, to] of spans) {
      if (x.length && x.at(-1) !== from) {  // what came later was given up
        x.push(NaN);
        y.push(NaN);
      }
      x.push(from, to);
      y.push(valueOf(segment), valueOf(segment));
    }
    return {x, y, ...style};
  };
  const host = cadre.element("div", {class: "chart-host", "data-schedule": name});
  const chart = new cadre.Chart(host, {
    label: `Schedule of ${cadre.line(name)}`, height: 160, selection, group, x: {whole: true}, y: {},
    lines: () => {
      const grey = cadre.theme.css("--line-grey");
      const alpha = experiment.count > 200 ? 0.3 : 0.8;
      const shown = experiment.count > 1000 ? experiment.ranking().slice(0, 1000) : experiment.ranking();
      const others = shown.map((trial) => steps(experiment.segments[trial].map((segment) => [segment, ...experiment.span(segment)]),
        {item: trial, color: grey, width: 1, alpha}));
      return pieces().length ? [...others, steps(pieces(), {item: experiment.best, color: cadre.theme.winner(), width: 3.5, alpha: 1})] : others;
    },
    emphasis: (trial) => [steps(cadre.ancestrySpans(experiment, trial), {color: trial === experiment.best ? cadre.theme.winner() : cadre.theme.css("--ink"), width: 2.5})],
    tip: (trial, x, y) => cadre.tip(`trial ${experiment.trials.id[trial]}`, [["iteration", cadre.number(x)], [name, isText ? texts[y] : cadre.number(y)]]),
  });
  const log = cadre.element("span", {class: "note"}, " log");
  const look = () => {
    const segments = experiment.segments.flat();
    texts = cadre.cellCategories(segments.map(cellOf));
    isText = texts.length > 0;
    isLog = !isText && experiment.isLogarithmic(`config/${name}`, segments.map(valueOf), 50);
    log.hidden = !isLog;
    chart.options.height = isText ? Math.max(120, texts.length * 26 + 60) : 160;
    chart.options.x = {whole: true, range: xAxis.range};
    chart.options.y = isText ? {size: ySize, range: [-0.6, texts.length - 0.4], splits: () => texts.map((_, i) => i), values: (u, splits) => splits.map((i) => texts[i]?.slice(0, 9) ?? "")}
      : {size: ySize, log: isLog, pad: 0.1};
    host.dataset.winnerValues = pieces().map(([segment]) => cadre.cellExact(cellOf(segment))).join(" ");
  };
  look();
  chart.update();
  return {chart, update: () => { look(); chart.refresh(); },
    element: cadre.element("figure", {class: "schedule"}, cadre.element("figcaption", {}, cadre.userText(name), log), host)};
};
