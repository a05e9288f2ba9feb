// A picture with two axes. uPlot draws the axes and keeps the scales; lines and points are drawn here, because there may
// be ten thousand of them, and found here under the pointer.
"use strict";

// Line: {item, x, y, color, width, alpha, dash, dots, points}: x and y are arrays of numbers, NaN is a gap; `points`
// draws no line. `item` is the trial that it belongs to, or null: it is not found by the pointer.
//
// Options: `label` for people who do not see the picture; `height`; `x` and `y`: {label, log, splits, values, range};
// `lines(chart)`; `emphasis(trial)` returns the lines that stand out for a hovered trial; `tip(trial, x, y)` returns
// the content of the box beside the pointer; `selection`; `group`: charts that zoom along x together.
cadre.Chart = class {
  constructor(host, options) {
    this.options = options;
    this.host = host;
    this.zoom = null;  // {x: [a, b], y: [a, b]}
    this.root = cadre.element("div", {class: "chart", tabindex: "0", role: "group", "aria-roledescription": "chart",
      "aria-label": options.label, onkeydown: (event) => this.onKey(event)});
    this.tipBox = cadre.element("div", {class: "tip", hidden: true});
    host.append(this.root);
    options.group?.add(this);
    this.removed = new AbortController();
    options.selection?.addEventListener("hover", () => this.drawOverlay(), {signal: this.removed.signal});
    cadre.theme.onChange(this.root, () => this.update());
    // A chart is made when it comes near the window: pages with many open at once.
    this.root.style.minHeight = `${options.height}px`;
    this.isNear = this.isInSight = this.isPressed = this.isStale = false;
    new IntersectionObserver((entries) => {
      this.isInSight = entries.at(-1).isIntersecting;
      if (!this.isInSight) return;
      if (!this.isNear) {
        this.isNear = true;
        this.update();
      } else if (this.isStale) {
        this.refresh();
      }
    }, {rootMargin: "600px"}).observe(this.root);
    new ResizeObserver(() => this.resize()).observe(host);
    this.root.addEventListener("pointerdown", () => {
      this.isPressed = true;
      const pressed = new AbortController();
      const release = () => {
        pressed.abort();
        // After uPlot has ended the drag.
        setTimeout(() => {
          this.isPressed = false;
          if (this.isStale) this.refresh();
        });
      };
      // A finger that scrolls the page cancels.
      for (const end of ["pointerup", "pointercancel"]) addEventListener(end, release, {signal: pressed.signal});
    });
  }

  // Takes it out of its group and the page, for good.
  remove() {
    this.removed.abort();
    this.options.group?.delete(this);
    this.plot?.destroy();
    this.plot = null;
    this.root.remove();
  }

  // Draws what its options return now, for lines that grow: the zoom stays. Later, if nobody sees it or somebody drags.
  refresh() {
    if (!this.isNear) return;
    this.isStale = !this.isInSight || this.isPressed;
    if (this.isStale) return;
    if (this.shape() !== this.madeShape) return this.update();
    this.lines = this.options.lines(this);
    this.extent = this.extentOf(this.lines);
    this.plot.setData([this.extent.x, this.extent.y]);
  }

  // Returns what uPlot cannot change in a chart that was made.
  shape() {
    const of = (axis) => [axis.log, axis.label, axis.whole, Boolean(axis.splits), Boolean(axis.values)];
    return JSON.stringify([of(this.options.x), of(this.options.y), this.options.height]);
  }

  // Makes the chart anew, with what its options return now.
  update() {
    if (!this.isNear) return;
    this.lines = this.options.lines(this);
    this.extent = this.extentOf(this.lines);
    this.plot?.destroy();
    this.madeShape = this.shape();
    this.isStale = false;
    this.root.style.minHeight = `${this.options.height}px`;
    const {x, y} = this.options;
    const ink = cadre.theme.css("--ink-soft"), grid = cadre.theme.css("--grid");
    const axis = (of, side) => ({stroke: ink, grid: {stroke: grid, width: 1}, ticks: {stroke: grid, width: 1, size: 4},
      font: "12px system-ui, sans-serif", labelFont: "12px system-ui, sans-serif", gap: 4,
      size: side === "x" ? 30 : of.size ?? ((u, values) => Math.min(140, 14 + Math.max(20, ...(values ?? []).map((v) => cadre.Chart.textWidth(v))))),
      ...(side === "x" ? {label: of.label, labelSize: 18} : {}),
      space: side === "x" ? 60 : 30,
      ...(of.whole ? {incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9]} : {}),
      values: of.values ? (u, splits) => this.options[side].values(u, splits) : (u, splits) => splits.map((split) => (split === null ? "" : cadre.Chart.tick(split))),
      ...(of.splits ? {splits: (...all) => this.options[side].splits(...all), filter: (u, splits) => splits}
        : of.log ? {splits: (u, at, min, max) => cadre.Chart.logSplits(min, max), filter: (u, splits) => splits} : {})});
    const range = (side) => () => this.range(side);
    this.plot = new uPlot({
      width: this.width(), height: this.options.height, legend: {show: false}, padding: [10, 14, 0, 0],
      cursor: {drag: {x: true, y: !this.options.y.splits, uni: 12, setScale: false}, points: {show: false}, x: true, y: false,
        dataIdx: () => null},
      scales: {x: {time: false, distr: x.log ? 3 : 1, range: range("x")}, y: {distr: y.log ? 3 : 1, range: range("y")}},
      axes: [axis(x, "x"), axis(y, "y")],
      series: [{}, {paths: () => null, points: {show: false}}],
      hooks: {draw: [(u) => this.draw(u)], setSelect: [(u) => this.onSelect(u)], setSize: [(u) => this.fitOverlay(u)]},
    }, [this.extent.x, this.extent.y], this.root);
    this.prepareOverlay(this.plot);
  }

  redraw() {
    if (!this.isNear) return;
    this.lines = this.options.lines(this);
    this.plot.redraw(false, false);
  }

  width() { return Math.max(200, this.root.clientWidth); }

  resize() {
    if (this.plot && Math.abs(this.width() - this.plot.width) > 1)
      this.plot.setSize({width: this.width(), height: this.options.height});
  }

  // ---- Scales

  extentOf(lines) {
    const {x, y} = this.options;
    const bounds = {x: [Infinity, -Infinity], y: [Infinity, -Infinity]};
    for (const line of lines) {
      for (let i = 0; i < line.x.length; ++i) {
        const a = line.x[i], b = line.y[i];
        if (!Number.isFinite(a) || !Number.isFinite(b) || (x.log && a <= 0) || (y.log && b <= 0)) continue;
        if (a < bounds.x[0]) bounds.x[0] = a;
        if (a > bounds.x[1]) bounds.x[1] = a;
        if (b < bounds.y[0]) bounds.y[0] = b;
        if (b > bounds.y[1]) bounds.y[1] = b;
      }
    }
    return {x: x.range ?? cadre.Chart.padded(bounds.x, x.log, x.pad ?? 0.01),
      y: y.range ?? cadre.Chart.padded(bounds.y, y.log, y.pad ?? 0.05)};
  }

  static padded([low, high], log, share) {
    if (!(low <= high)) return log ? [0.1, 1] : [0, 1];
    if (log) {
      const factor = low === high ? 2 : (high / low) ** share;
      return [low / factor, high * factor];
    }
    const pad = low === high ? Math.abs(low) * 0.1 || 1 : (high - low) * share;
    return [low - pad, high + pad];
  }

  range(side) { return this.zoom?.[side] ?? this.extent[side]; }

  static logSplits(min, max) {
    const decades = Math.log10(max / min);
    const factors = decades > 8 ? null : decades > 2.5 ? [1] : decades > 1 ? [1, 3] : decades > 0.5 ? [1, 2, 5] : [1, 1.5, 2, 3, 4, 5, 6, 7, 8, 9];
    const splits = [];
    const step = factors ? 1 : Math.ceil(decades / 8);
    for (let power = Math.floor(Math.log10(min)); power <= Math.ceil(Math.log10(max)); power += step) {
      for (const factor of factors ?? [1]) {
        const split = Number(`${factor}e${power}`);
        if (split >= min && split <= max) splits.push(split);
      }
    }
    return splits.length ? splits : [min, max].map((value) => Number(value.toPrecision(3)));
  }

  static tick(value) {
    const size = Math.abs(value);
    if (size !== 0 && (size >= 1e6 || size < 1e-3)) return value.toExponential().replace("e+", "e").replace("-", "\u2212");
    return String(Number(value.toPrecision(6))).replace("-", "\u2212");
  }

  static textWidth(text) {
    const canvas = (cadre.Chart.measure ??= document.createElement("canvas").getContext("2d"));
    canvas.font = "12px system-ui, sans-serif";
    return canvas.measureText(text).width;
  }

  setZoom(zoom, isOwn = true) {
    this.zoom = zoom;
    this.root.dataset.zoom = zoom ? JSON.stringify(zoom) : "";
    if (!this.plot) return;
    this.plot.batch(() => {
      const [a, b] = this.range("x"), [c, d] = this.range("y");
      this.plot.setScale("x", {min: a, max: b});
      this.plot.setScale("y", {min: c, max: d});
    });
    if (isOwn) for (const other of this.options.group ?? []) if (other !== this) other.setZoom(zoom?.x ? {x: zoom.x} : null, false);
    this.options.onZoom?.(zoom);
  }

  onSelect(u) {
    const {left, top, width, height} = u.select;
    if (width < 4 && height < 4) return;
    const zoom = {};
    if (width >= 4) zoom.x = [u.posToVal(left, "x"), u.posToVal(left + width, "x")];
    if (height >= 4 && height < u.over.clientHeight - 1) zoom.y = [u.posToVal(top + height, "y"), u.posToVal(top, "y")];
    u.setSelect({left: 0, top: 0, width: 0, height: 0}, false);
    this.setZoom({...this.zoom, ...zoom});
  }

  onKey(event) {
    const selection = this.options.selection;
    const [a, b] = this.range("x");
    const move = (from, to) => this.setZoom({...this.zoom, x: this.options.x.log
      ? [a * (b / a) ** from, a * (b / a) ** to] : [a + (b - a) * from, a + (b - a) * to]});
    const actions = {
      "+": () => move(0.2, 0.8), "=": () => move(0.2, 0.8), "-": () => move(-0.25, 1.25),
      ArrowLeft: () => move(-0.2, 0.8), ArrowRight: () => move(0.2, 1.2), "0": () => this.setZoom(null),
      Escape: () => { this.setZoom(null); selection?.hover(null); },
      ArrowDown: () => selection?.step(1), ArrowUp: () => selection?.step(-1),
      Enter: () => selection?.hovered !== null && selection?.open(selection.hovered),
    };
    if (event.ctrlKey || event.metaKey || event.altKey || !(event.key in actions)) return;
    event.preventDefault();
    actions[event.key]();
  }

  // ---- Drawing

  // Draws on the canvas of uPlot, and remembers where each line was drawn.
  draw(u) {
    const {left, top, width, height} = u.bbox;
    u.ctx.save();
    u.ctx.beginPath();
    u.ctx.rect(left, top, width, height);
    u.ctx.clip();
    this.options.under?.(u.ctx, u, this);
    this.drawn = [];
    let batch = [], style = "";
    const flush = () => { if (batch.length) cadre.Chart.stroke(u.ctx, batch); batch = []; };
    for (const line of this.lines) {
      const placed = this.place(line, u);
      this.drawn.push(placed);
      const key = `${line.color}|${line.width}|${line.alpha}|${line.dash}|${line.points}|${line.dots}`;
      if (key !== style || batch.length >= 64) flush();
      style = key;
      batch.push(placed);
    }
    flush();
    this.options.over?.(u.ctx, u, this);
    u.ctx.restore();
    this.drawOverlay();
    this.root.dataset.lines = this.lines.length;
  }

  // Returns the line with the positions of its points in pixels of the canvas.
  place(line, u) {
    const {x, y} = this.options;
    const {left, top, width, height} = u.bbox;
    const scale = (range, log) => (log ? [Math.log(range[0]), Math.log(range[1])] : range);
    const [a, b] = scale(this.range("x"), x.log), [c, d] = scale(this.range("y"), y.log);
    const count = line.x.length;
    const px = new Float32Array(count), py = new Float32Array(count);
    for (let i = 0; i < count; ++i) {
      px[i] = left + (((x.log ? Math.log(line.x[i]) : line.x[i]) - a) / (b - a)) * width;
      py[i] = top + height - (((y.log ? Math.log(line.y[i]) : line.y[i]) - c) / (d - c)) * height;
    }
    return {line, px, py};
  }

  // Draws lines of one style.
  static stroke(ctx, placed) {
    const {color, width = 1.5, alpha = 1, dash, points, dots} = placed[0].line;
    const ratio = devicePixelRatio;
    ctx.save();
    ctx.globalAlpha = alpha;
    ctx.strokeStyle = ctx.fillStyle = color;
    ctx.lineWidth = width * ratio;
    ctx.lineJoin = "round";
    ctx.lineCap = "round";
    ctx.setLineDash((dash ?? []).map((length) => length * ratio));
    ctx.beginPath();
    for (const {px, py} of placed) {
      let isOpen = false;
      for (let i = 0; i < px.length; ++i) {
        const isThere = Number.isFinite(px[i]) && Number.isFinite(py[i]);
        if (points) {
          if (!isThere) continue;
          ctx.moveTo(px[i] + width * ratio, py[i]);
          ctx.arc(px[i], py[i], width * ratio, 0, 2 * Math.PI);
        } else if (!isThere) {
          isOpen = false;
        } else if (isOpen) {
          ctx.lineTo(px[i], py[i]);
        } else {
          ctx.moveTo(px[i], py[i]);
          isOpen = true;
          // A value between gaps would not be seen as a line.
          if (!Number.isFinite(py[i + 1] ?? NaN)) ctx.lineTo(px[i] + 0.01, py[i]);
        }
      }
    }
    if (points) ctx.fill();
    else ctx.stroke();
    if (dots) {
      ctx.beginPath();
      for (const {px, py} of placed)
        for (let i = 0; i < px.length; ++i) {
          ctx.moveTo(px[i] + dots * ratio, py[i]);
          ctx.arc(px[i], py[i], dots * ratio, 0, 2 * Math.PI);
        }
      ctx.fill();
    }
    ctx.restore();
  }

  // ---- The layer above, for the hovered trial

  prepareOverlay(u) {
    this.overlay = cadre.element("canvas", {class: "overlay", "aria-hidden": "true"});
    u.over.append(this.overlay, this.tipBox);
    this.fitOverlay(u);
    u.over.addEventListener("pointermove", (event) => this.onPointer(event, u));
    u.over.addEventListener("pointerleave", () => { this.tipBox.hidden = true; this.options.selection?.hover(null); });
    u.over.addEventListener("click", (event) => {
      const moved = Math.abs(event.offsetX - (this.pressed?.[0] ?? 0)) + Math.abs(event.offsetY - (this.pressed?.[1] ?? 0));
      if (moved < 4 && this.options.selection?.hovered != null) this.options.selection.open(this.options.selection.hovered);
    });
    u.over.addEventListener("pointerdown", (event) => { this.pressed = [event.offsetX, event.offsetY]; });
    u.over.addEventListener("dblclick", () => this.setZoom(null));
  }

  fitOverlay(u) {
    if (!this.overlay) return;
    this.overlay.width = u.over.clientWidth * devicePixelRatio;
    this.overlay.height = u.over.clientHeight * devicePixelRatio;
  }

  onPointer(event, u) {
    const ratio = devicePixelRatio;
    const box = u.over.getBoundingClientRect();
    const at = this.nearest((event.clientX - box.left) * ratio + u.bbox.left, (event.clientY - box.top) * ratio + u.bbox.top, 24 * ratio);
    this.options.selection?.hover(at ? at.line.item : null);
    this.tipBox.hidden = !at || !this.options.tip;
    if (this.tipBox.hidden) return;
    cadre.replaceChildren(this.tipBox, this.options.tip(at.line.item, at.line.x[at.index], at.line.y[at.index], at.line));
    const left = event.clientX - box.left, top = event.clientY - box.top;
    const isRight = left > box.width / 2;
    this.tipBox.style.left = isRight ? "" : `${left + 14}px`;
    this.tipBox.style.right = isRight ? `${box.width - left + 14}px` : "";
    this.tipBox.style.top = `${Math.min(top, Math.max(0, box.height - this.tipBox.offsetHeight))}px`;
  }

  // Returns the line nearest to a position on the canvas, with the index of its nearest point; null if all are far.
  nearest(x, y, reach) {
    let best = null, least = reach * reach;
    for (const placed of this.drawn ?? []) {
      const {line, px, py} = placed;
      if (line.item === null || line.item === undefined) continue;
      for (let i = 0; i < px.length; ++i) {
        let distance = (px[i] - x) ** 2 + (py[i] - y) ** 2;
        if (i > 0 && !line.points && Number.isFinite(px[i - 1] + py[i - 1])) {
          const dx = px[i] - px[i - 1], dy = py[i] - py[i - 1];
          const length = dx * dx + dy * dy;
          const along = length > 0 ? Math.max(0, Math.min(1, ((x - px[i - 1]) * dx + (y - py[i - 1]) * dy) / length)) : 0;
          distance = Math.min(distance, (px[i - 1] + along * dx - x) ** 2 + (py[i - 1] + along * dy - y) ** 2);
        }
        if (distance < least) {
          least = distance;
          const isFirst = i > 0 && (px[i - 1] - x) ** 2 < (px[i] - x) ** 2 && Number.isFinite(py[i - 1]);
          best = {line, index: isFirst ? i - 1 : i};
        }
      }
    }
    return best;
  }

  drawOverlay() {
    if (!this.plot || !this.overlay) return;
    const u = this.plot;
    const ctx = this.overlay.getContext("2d");
    ctx.setTransform(1, 0, 0, 1, 0, 0);
    ctx.clearRect(0, 0, this.overlay.width, this.overlay.height);
    const trial = this.options.selection?.hovered ?? null;
    this.root.dataset.hovered = trial ?? "";
    if (trial === null) return;
    ctx.fillStyle = cadre.theme.css("--veil");
    ctx.fillRect(0, 0, this.overlay.width, this.overlay.height);
    ctx.translate(-u.bbox.left, -u.bbox.top);
    const lines = this.options.emphasis ? this.options.emphasis(trial, this) : this.lines.filter((line) => line.item === trial);
    for (const line of lines) {
      const placed = this.place(line, u);
      if (!line.points) cadre.Chart.stroke(ctx, [{...placed, line: {...line, color: cadre.theme.css("--card"), width: (line.width ?? 1.5) + 5, alpha: 1, dash: null, dots: 0}}]);
      cadre.Chart.stroke(ctx, [{...placed, line: {...line, color: line.strong ?? line.color, alpha: 1, width: (line.width ?? 1.5) + (line.points ? 2.5 : 1.2)}}]);
    }
  }
};

// Returns the content of the box beside the pointer: a title and rows of names and values.
cadre.tip = (title, rows) => [
  cadre.element("strong", {}, title),
  cadre.element("dl", {}, rows.map(([name, value]) => [cadre.element("dt", {}, cadre.line(name)), cadre.element("dd", {}, value)])),
];
