// The user's selection: the trial under the pointer, and the trials that brushes have left. All pictures of an
// experiment share it.
"use strict";

cadre.Selection = class extends EventTarget {
  constructor(experiment) {
    super();
    this.experiment = experiment;
    this.hovered = null;
    this.filter = null;  // a Set of trials; null: all
    this.said = cadre.element("div", {class: "off-screen", "aria-live": "polite"});
  }

  hover(trial) {
    if (trial === this.hovered) return;
    this.hovered = trial;
    this.dispatchEvent(new Event("hover"));
  }

  setFilter(trials) {
    this.filter = trials;
    this.dispatchEvent(new Event("filter"));
  }

  // Returns a function that finds the same trials again, by their ids, after the experiment has grown.
  remember() {
    const {id} = this.experiment.trials;
    const [hovered, opened] = [id[this.hovered] ?? null, id[this.opened] ?? null];
    const filter = this.filter && Array.from(this.filter, (trial) => id[trial]);
    return () => {
      const place = new Map(this.experiment.trials.id.map((one, at) => [one, at]));
      this.hovered = place.get(hovered) ?? null;
      this.opened = place.get(opened) ?? null;
      if (filter) this.filter = new Set(filter.map((one) => place.get(one)).filter((at) => at !== undefined));
    };
  }

  includes(trial) { return this.filter === null || this.filter.has(trial); }

  // Hovers over the next trial in the ranking, for the keyboard.
  step(by) {
    const ranking = this.experiment.ranking().filter((trial) => this.includes(trial));
    if (ranking.length === 0) return;
    const at = ranking.indexOf(this.hovered);
    const trial = ranking[at < 0 ? 0 : Math.max(0, Math.min(ranking.length - 1, at + by))];
    this.hover(trial);
    this.said.textContent = cadre.trialText(this.experiment, trial);
  }

  open(trial) {
    this.opened = trial;
    this.dispatchEvent(new Event("open"));
  }
};

// Returns "trial 00003: score 0.913, lr 0.1".
cadre.trialText = (experiment, trial) => {
  const parts = [];
  if (experiment.metric) parts.push(`${cadre.line(experiment.metric)} ${cadre.number(experiment.score(trial))}`);
  for (const column of experiment.parameters.slice(0, 6))
    parts.push(`${cadre.line(column.name)} ${cadre.cellText(column.cells[trial])}`);
  return `trial ${experiment.trials.id[trial]}: ${parts.join(", ")}`;
};
