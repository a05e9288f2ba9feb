// One experiment, as its document has it. Trials are known by their index there.
"use strict";

cadre.Experiment = class {
  constructor(document, index) {
    this.index = index;
    this.setDocument(document);
  }

  // Takes a later state of the document, or the same object, which has changed.
  setDocument(document) {
    this.document = document;
    this.ranked = null;
    this.name = this.label ?? document.name;
    this.isReadable = document.kind !== "unreadable";
    if (!this.isReadable) return;
    this.isRun = document.kind === "training_run";
    this.trials = document.trials;
    this.count = this.trials.id.length;
    this.metric = document.metric;
    this.mode = document.mode;
    this.best = document.best;
    this.parameters = document.columns.filter((column) => column.kind === "parameter");
    this.metrics = document.columns.filter((column) => column.kind === "metric");
    this.byName = new Map(document.columns.map((column) => [cadre.Experiment.key(column), column]));
    this.numberCache = new Map();
    this.seriesCache = new Map();
    this.makeSegments();
  }

  // Returns the name of a column in choices: "score", "config/lr".
  static key(column) { return column.kind === "parameter" ? `config/${column.name}` : column.name; }

  column(key) { return this.byName.get(key); }

  // Returns the column's numbers by trial, NaN where there is none.
  numbers(key) {
    let numbers = this.numberCache.get(key);
    if (!numbers) {
      const column = this.column(key);
      numbers = Float64Array.from({length: this.count}, (_, i) => (column ? cadre.cellNumber(column.cells[i]) : NaN));
      this.numberCache.set(key, numbers);
    }
    return numbers;
  }

  isNumeric(key) { return this.numbers(key).some((number) => !Number.isNaN(number)); }

  // Returns true if an axis of the column should be logarithmic: its values are drawn so, or the highest is `many` times
  // the lowest.
  isLogarithmic(key, numbers = this.numbers(key), many = 1000) {
    const column = this.column(key);
    let low = Infinity, high = -Infinity;
    for (const number of numbers) {
      if (!Number.isFinite(number)) continue;
      low = Math.min(low, number);
      high = Math.max(high, number);
    }
    if (!(low > 0)) return false;
    return column?.kind === "parameter" && high >= (column.logarithmic ? 3 : many) * low;
  }

  // Returns the trials from the best to the worst, those without a value at the end.
  ranking() {
    if (!this.ranked) {
      const scores = this.metric ? this.numbers(this.metric) : new Float64Array(this.count).fill(NaN);
      const sign = this.mode === "max" ? -1 : 1;
      const loss = (i) => (this.mode && Number.isFinite(scores[i]) ? sign * scores[i] : Infinity);
      this.ranked = Array.from({length: this.count}, (_, i) => i)
        .sort((a, b) => (loss(a) === loss(b) ? a - b : loss(a) - loss(b)));
    }
    return this.ranked;
  }

  score(trial) { return this.metric ? this.numbers(this.metric)[trial] : NaN; }
  isBetter(a, b) { return this.mode === "max" ? a > b : a < b; }

  // ---- Curves

  // Returns the names of the numbers that results have, then those of parameters, for axes.
  seriesNames() {
    return [...this.document.curves.names,
      ...this.parameters.filter((column) => this.isNumeric(`config/${column.name}`)).map((column) => `config/${column.name}`)];
  }

  // Returns a trial's numbers at its results, with gaps as NaN; null if it has none of them.
  series(trial, name) {
    let all = this.seriesCache.get(name);
    if (!all) this.seriesCache.set(name, (all = new Array(this.count)));
    if (all[trial] === undefined) all[trial] = this.readSeries(trial, name);
    return all[trial];
  }

  readSeries(trial, name) {
    const curve = this.document.curves.trials[trial];
    if (!curve) return null;
    if (name.startsWith("config/") && !this.document.curves.names.includes(name)) return this.schedule(trial, name.slice(7));
    const at = this.document.curves.names.indexOf(name);
    const column = at < 0 ? 0 : curve[at + 1];
    if (!column) return null;
    const offset = name === "timestamp" ? Math.floor(this.document.started) : 0;
    if (!Array.isArray(column)) return Float64Array.from({length: column.count}, (_, i) => column.from + i - offset);
    return Float64Array.from(column, (number) => (number === null ? NaN : number - offset));
  }

  // Returns the value of a parameter at each of the trial's results.
  schedule(trial, parameter) {
    const at = this.parameters.findIndex((column) => column.name === parameter);
    const values = new Float64Array(this.segments[trial].at(-1).end);
    for (const segment of this.segments[trial])
      values.fill(cadre.cellNumber(segment.parameters[at] ?? null), segment.begin, segment.end);
    return values;
  }

  // ---- Descent. A segment is what a trial did between two exploits.

  makeSegments() {
    const exploits = Array.from({length: this.count}, () => []);
    for (const exploit of this.document.exploits) exploits[exploit.trial].push(exploit);
    this.exploits = exploits;
    this.segments = exploits.map((list, trial) => {
      const counts = this.document.curves.trials[trial]?.[0] ?? new Array(list.length + 1).fill(0);
      let row = 0;
      return counts.map((count, index) => {
        const exploit = index === 0 ? null : list[index - 1];
        const segment = {trial, index, exploit, begin: row, end: (row += count), parent: null, parentRow: null,
          parameters: exploit ? exploit.parameters : this.parameters.map((column) => (column.drawn ?? column.cells)[trial])};
        return segment;
      });
    });
    for (const segment of this.segments.flat()) {
      if (!segment.exploit) continue;
      const [trial, index, row] = segment.exploit.origin;
      if (trial === null || this.segments[trial][index] === segment) continue;
      segment.parent = this.segments[trial][index] ?? null;
      segment.parentRow = row;
    }
  }

  hasExploits() { return this.document.exploits.length > 0; }

  // Returns the segments that led to a trial's last results, the first one first.
  ancestry(trial) {
    const path = [];
    const last = this.segments[trial].findLast((segment, at) => segment.end > segment.begin || at === 0);
    for (let segment = last; segment && !path.includes(segment); segment = segment.parent) path.unshift(segment);
    return path;
  }

  founder(segment) {
    let at = segment;
    for (let steps = 0; at.parent && steps < 100000; ++steps) at = at.parent;
    return at.trial;
  }

  // Returns the training_iteration at which a segment begins and ends.
  span(segment) {
    const iterations = this.series(segment.trial, "training_iteration");
    const begin = segment.exploit ? segment.exploit.donor_iteration : 0;
    const last = iterations && segment.end > segment.begin ? iterations[segment.end - 1] : NaN;
    return [begin, Number.isFinite(last) ? Math.max(last, begin) : begin];
  }
};
