// Parallel coordinates: a line for each trial through its parameters and the metric. A brush on an axis leaves only the
// trials within it, here and in all other pictures.
"use strict";

cadre.Parallel = class {
  constructor(host, experiment, selection) {
    Object.assign(this, {host, experiment, selection, brushes: new Map()});
    this.axes = this.makeAxes();
    this.canvas = cadre.element("canvas", {"aria-hidden": "true"});
    this.overlay = cadre.element("canvas", {class: "overlay", "aria-hidden": "true"});
    this.box = cadre.element("div", {class: "parallel-box"}, this.canvas, this.overlay);
    this.scroller = cadre.element("div", {class: "parallel-scroll"}, this.box);
    host.append(this.scroller);
    this.handles = this.axes.map((axis, at) => this.makeHandle(axis, at));
    cadre.append(this.box, this.handles);
    this.box.addEventListener("pointermove", (event) => this.onPointer(event));
    this.box.addEventListener("pointerleave", () => selection.hover(null));
    this.box.addEventListener("click", (event) => { if (event.target === this.canvas && selection.hovered !== null) selection.open(selection.hovered); });
    selection.addEventListener("hover", () => this.drawOverlay());
    selection.addEventListener("filter", () => {
      if (selection.filter === null && this.brushes.size) {
        this.brushes.clear();
        this.showBrushes();
      }
      this.draw();
    });
    cadre.theme.onChange(this.box, () => this.draw());
    this.isNear = false;
    new IntersectionObserver((entries, observer) => {
      if (!entries.some((entry) => entry.isIntersecting)) return;
      observer.disconnect();
      this.isNear = true;
      this.draw();
    }, {rootMargin: "600px"}).observe(this.scroller);
    new ResizeObserver(() => this.draw()).observe(host);
  }

  // Takes what the experiment has now. Brushes stay where their values are.
  update() {
    const values = [...this.brushes].map(([at, brush]) => [this.axes[at], brush.map((share) => this.axes[at].value?.(share) ?? share)]);
    const keys = (axes) => JSON.stringify(axes.map((axis) => [axis.key, axis.isLog ?? null, axis.texts ? 1 : 0]));
    const before = this.axes;
    this.axes = this.makeAxes();
    if (keys(before) !== keys(this.axes)) {
      for (const handle of this.handles) handle.remove();
      this.handles = this.axes.map((axis, at) => this.makeHandle(axis, at));
      cadre.append(this.box, this.handles);
    }
    this.brushes.clear();
    for (const [axis, [low, high]] of values) {
      const at = this.axes.findIndex((one) => one.key === axis.key && Boolean(one.texts) === Boolean(axis.texts));
      if (at < 0) continue;
      const own = this.axes[at];
      // A brush that reached an end still does.
      const [a, b] = own.share && axis.value ? [own.share(low), own.share(high)] : [low, high];
      this.brushes.set(at, [low === axis.value?.(0) ? 0 : Math.max(0, a), high === axis.value?.(1) ? 1 : Math.min(1, b)]);
    }
    if (values.length) {
      this.showBrushes();
      this.filterTrials();
    } else {
      this.draw();
    }
  }

  makeAxes() {
    const {experiment} = this;
    const keys = [...experiment.parameters.slice(0, 14).map((column) => `config/${column.name}`), ...(experiment.metric ? [experiment.metric] : [])];
    return keys.filter((key) => experiment.column(key)?.cells.some((cell) => cell !== null)).map((key) => {
      const column = experiment.column(key);
      const texts = cadre.cellCategories(column.cells);
      const numbers = experiment.numbers(key);
      if (texts.length) {
        const index = new Map(texts.map((text, at) => [text, at]));
        return {key, title: column.name, texts, ticks: texts.slice(0, 12).map((text, at) => [texts.length > 1 ? at / (texts.length - 1) : 0.5, text]),
          position: (trial) => (column.cells[trial] === null ? NaN : texts.length > 1 ? index.get(cadre.cellText(column.cells[trial])) / (texts.length - 1) : 0.5)};
      }
      const isLog = experiment.isLogarithmic(key);
      const finite = Array.from(numbers).filter((number) => Number.isFinite(number) && (!isLog || number > 0));
      const low = finite.reduce((a, b) => Math.min(a, b), Infinity), high = finite.reduce((a, b) => Math.max(a, b), -Infinity);
      const position = cadre.positions(numbers, isLog);
      const at = (value) => (high > low ? (isLog ? Math.log(value / low) / Math.log(high / low) : (value - low) / (high - low)) : 0.5);
      const splits = !(high > low) ? [low] : isLog ? cadre.Chart.logSplits(low, high) : cadre.niceSplits(low, high, 6);
      return {key, title: column.name, isLog, position, ticks: splits.map((split) => [at(split), cadre.Chart.tick(split)]),
        share: at, value: (share) => (isLog ? low * (high / low) ** share : low + (high - low) * share)};
    });
  }

  // Returns an axis' name, which takes brushes: by the pointer over the axis, or by keys.
  makeHandle(axis, at) {
    const band = cadre.element("div", {class: "brush", hidden: true});
    const strip = cadre.element("div", {class: "axis-strip"}, band);
    const name = cadre.button([cadre.userText(axis.title), axis.isLog ? cadre.element("span", {class: "note"}, " log") : null], () => this.setBrush(at, null),
      {class: "axis-name", title: "Drag along the axis to brush; press the name to let go", "aria-description": "Arrow keys move a brush, with Shift they change its size, Escape lets go",
        onkeydown: (event) => this.onKey(event, at)});
    let from = null;
    const share = (event) => {
      const box = strip.getBoundingClientRect();
      const at = 1 - (event.clientY - box.top) / box.height;
      return at < 0.02 ? 0 : at > 0.98 ? 1 : at;  // the ends are easy to meet
    };
    strip.addEventListener("pointerdown", (event) => {
      from = share(event);
      strip.setPointerCapture(event.pointerId);
      event.preventDefault();
    });
    strip.addEventListener("pointermove", (event) => {
      if (from === null) return;
      const to = share(event);
      if (Math.abs(to - from) > 0.01) this.setBrush(at, [Math.min(from, to), Math.max(from, to)]);
    });
    strip.addEventListener("pointerup", (event) => {
      if (from !== null && Math.abs(share(event) - from) <= 0.01) this.setBrush(at, null);
      from = null;
    });
    strip.addEventListener("pointercancel", () => { from = null; });
    return cadre.element("div", {class: "axis", "data-axis": axis.key}, name, strip);
  }

  onKey(event, at) {
    const [low, high] = this.brushes.get(at) ?? [0, 1];
    const isWhole = !this.brushes.has(at);
    const step = 0.05;
    const direction = {ArrowUp: 1, ArrowDown: -1}[event.key];
    if (event.key === "Escape") this.setBrush(at, null);
    else if (direction && isWhole) this.setBrush(at, direction > 0 ? [0.75, 1] : [0, 0.25]);
    else if (direction && event.shiftKey) this.setBrush(at, [Math.max(0, low - direction * step), Math.min(1, high + direction * step)]);
    else if (direction) {
      const move = Math.max(-low, Math.min(1 - high, direction * step));
      this.setBrush(at, [low + move, high + move]);
    } else return;
    event.preventDefault();
  }

  setBrush(at, brush) {
    if (brush && brush[1] - brush[0] > 0.005) this.brushes.set(at, brush);
    else this.brushes.delete(at);
    this.showBrushes();
    this.filterTrials();
  }

  // Leaves only the trials within all brushes.
  filterTrials() {
    const trials = new Set();
    const brushes = [...this.brushes];
    for (let trial = 0; trial < this.experiment.count; ++trial) {
      if (brushes.every(([axis, [low, high]]) => {
        const position = this.axes[axis].position(trial);
        return position >= low - 1e-9 && position <= high + 1e-9;
      })) trials.add(trial);
    }
    cancelAnimationFrame(this.frame);
    this.frame = requestAnimationFrame(() => this.selection.setFilter(brushes.length ? trials : null));
  }

  showBrushes() {
    this.handles.forEach((handle, at) => {
      const band = handle.querySelector(".brush");
      const brush = this.brushes.get(at);
      band.hidden = !brush;
      if (!brush) return;
      band.style.bottom = `${brush[0] * 100}%`;
      band.style.height = `${(brush[1] - brush[0]) * 100}%`;
    });
  }

  place() {
    const count = this.axes.length;
    const least = 96, top = 42, bottom = 14, height = 330;
    const width = Math.max(this.scroller.clientWidth, count * least);
    this.layout = {width, height, top, bottom, x: (at) => (count === 1 ? width / 2 : 50 + ((width - 116) * at) / (count - 1)),
      y: (share) => height - bottom - share * (height - top - bottom)};
    this.box.style.width = `${width}px`;
    this.box.style.height = `${height}px`;
    for (const canvas of [this.canvas, this.overlay]) {
      canvas.width = width * devicePixelRatio;
      canvas.height = height * devicePixelRatio;
      canvas.style.width = `${width}px`;
      canvas.style.height = `${height}px`;
    }
    this.handles.forEach((handle, at) => {
      handle.style.left = `${this.layout.x(at) - 48}px`;
      const strip = handle.querySelector(".axis-strip");
      strip.style.top = `${top}px`;
      strip.style.height = `${height - top - bottom}px`;
    });
  }

  points(trial) {
    return this.axes.map((axis, at) => [this.layout.x(at), this.layout.y(axis.position(trial))]);
  }

  static path(ctx, points) {
    let isOpen = false;
    for (const [x, y] of points) {
      if (!Number.isFinite(y)) { isOpen = false; continue; }
      if (isOpen) ctx.lineTo(x, y);
      else ctx.moveTo(x, y);
      isOpen = true;
    }
  }

  draw() {
    if (!this.isNear) return;
    this.place();
    const {experiment, selection} = this;
    const ctx = this.canvas.getContext("2d");
    ctx.setTransform(devicePixelRatio, 0, 0, devicePixelRatio, 0, 0);
    ctx.clearRect(0, 0, this.layout.width, this.layout.height);
    const ranking = experiment.ranking();
    const many = experiment.count > 300;
    const position = experiment.metric ? cadre.positions(experiment.numbers(experiment.metric), false) : () => NaN;
    const shade = (trial) => {
      const share = position(trial);
      return Number.isNaN(share) ? cadre.theme.css("--line-grey") : cadre.theme.viridis(Math.round((experiment.mode === "min" ? 1 - share : share) * 24) / 24);
    };
    const grey = cadre.theme.css("--line-grey");
    const stroke = (trials, style, alpha, width) => {
      ctx.strokeStyle = style;
      ctx.globalAlpha = alpha;
      ctx.lineWidth = width;
      for (let begin = 0; begin < trials.length; begin += 64) {
        ctx.beginPath();
        for (const trial of trials.slice(begin, begin + 64)) cadre.Parallel.path(ctx, this.points(trial));
        ctx.stroke();
      }
    };
    if (selection.filter) stroke(ranking.filter((trial) => !selection.includes(trial)), grey, many ? 0.06 : 0.15, 1);
    const groups = [];
    for (const trial of ranking.filter((one) => selection.includes(one)).reverse()) {
      const color = shade(trial);
      if (groups.at(-1)?.color === color) groups.at(-1).trials.push(trial);
      else groups.push({color, trials: [trial]});
    }
    for (const {color, trials} of groups) stroke(trials, color, many ? (experiment.count > 3000 ? 0.15 : 0.4) : 0.8, many ? 1 : 1.4);
    if (experiment.best !== null && selection.includes(experiment.best)) stroke([experiment.best], cadre.theme.winner(), 1, 3);
    ctx.globalAlpha = 1;
    ctx.font = "11px system-ui, sans-serif";
    ctx.textBaseline = "middle";
    this.axes.forEach((axis, at) => {
      const x = this.layout.x(at);
      ctx.strokeStyle = cadre.theme.css("--ink-soft");
      ctx.lineWidth = 1;
      ctx.beginPath();
      ctx.moveTo(x, this.layout.y(0));
      ctx.lineTo(x, this.layout.y(1));
      ctx.stroke();
      for (const [share, text] of axis.ticks) {
        if (share < -0.001 || share > 1.001) continue;
        const y = this.layout.y(share), label = text.length > 12 ? `${text.slice(0, 11)}\u2026` : text;
        ctx.fillStyle = cadre.theme.css("--card");
        ctx.globalAlpha = 0.8;
        ctx.fillRect(x + 5, y - 7, ctx.measureText(label).width + 4, 14);
        ctx.globalAlpha = 1;
        ctx.fillStyle = cadre.theme.css("--ink-soft");
        ctx.fillText(label, x + 7, y);
        ctx.fillRect(x - 3, y - 0.5, 6, 1);
      }
    });
    this.box.dataset.lines = selection.filter ? selection.filter.size : experiment.count;
    this.drawOverlay();
  }

  drawOverlay() {
    if (!this.layout) return;
    const ctx = this.overlay.getContext("2d");
    ctx.setTransform(devicePixelRatio, 0, 0, devicePixelRatio, 0, 0);
    ctx.clearRect(0, 0, this.layout.width, this.layout.height);
    const trial = this.selection.hovered;
    if (trial === null) return;
    const points = this.points(trial);
    for (const [color, width] of [[cadre.theme.css("--card"), 6], [cadre.theme.css("--ink"), 2.5]]) {
      ctx.strokeStyle = color;
      ctx.lineWidth = width;
      ctx.beginPath();
      cadre.Parallel.path(ctx, points);
      ctx.stroke();
    }
  }

  onPointer(event) {
    if (!this.layout) return;
    const box = this.box.getBoundingClientRect();
    const x = event.clientX - box.left, y = event.clientY - box.top;
    const right = Math.min(this.axes.length - 1, Math.max(1, this.axes.findIndex((_, at) => this.layout.x(at) >= x)));
    if (this.axes.length < 2) return;
    const x0 = this.layout.x(right - 1), x1 = this.layout.x(right);
    let best = null, least = 12;
    for (let trial = 0; trial < this.experiment.count; ++trial) {
      if (!this.selection.includes(trial)) continue;
      const y0 = this.layout.y(this.axes[right - 1].position(trial)), y1 = this.layout.y(this.axes[right].position(trial));
      const distance = Math.abs(y0 + ((y1 - y0) * (x - x0)) / (x1 - x0) - y);
      if (distance < least) { least = distance; best = trial; }
    }
    this.selection.hover(best);
    this.canvas.parentElement.title = best === null ? "" : cadre.trialText(this.experiment, best);
  }
};

// Returns about so many round numbers between two.
cadre.niceSplits = (low, high, count) => {
  const raw = (high - low) / count;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].find((factor) => factor * power >= raw) * power;
  const splits = [];
  for (let at = Math.ceil(low / step); at * step <= high * (1 + 1e-12) && splits.length < 50; ++at) splits.push(Number((at * step).toPrecision(12)));
  return splits;
};

cadre.sections.push({
  id: "parallel", title: "Parameters",
  isThere: (experiment) => !experiment.isRun && experiment.count > 1 && experiment.parameters.length > 0,
  build(host, {experiment, selection}) {
    host.append(cadre.element("p", {class: "note"}, "A line for each trial, with the config it has at its end. Drag along an axis to brush: all pictures and the table then have only the trials within."));
    const picture = new cadre.Parallel(host, experiment, selection);
    const legend = cadre.element("div", {class: "legend"}), note = cadre.element("p", {class: "note"});
    host.append(legend, note);
    const explain = () => {
      const better = experiment.mode === "min" ? "lowest" : "highest";
      cadre.replaceChildren(legend, experiment.metric ? [cadre.gradientLegend(experiment.metric, experiment.numbers(experiment.metric), false, experiment.mode === "min"),
        cadre.element("span", {class: "note"}, `thick: the best trial, with the ${better} ${cadre.line(experiment.metric)}`)] : null);
      note.hidden = experiment.parameters.length <= 14;
      note.textContent = `The first 14 of ${experiment.parameters.length} parameters have an axis.`;
    };
    explain();
    return () => {
      explain();
      picture.update();
    };
  },
});
