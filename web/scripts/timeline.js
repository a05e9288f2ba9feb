// The timeline of a training run: its worker groups, uploads and validations.
"use strict";

cadre.sections.push({
  id: "timeline", title: "Timeline", parts: ["run"],
  isThere: (experiment) => experiment.isRun,
  build(host, {experiment}) {
    const run = experiment.document.run;
    const duration = Math.max(run.duration, 1e-3);
    const most = 2000;
    const percent = (seconds) => `${(100 * seconds) / duration}%`;
    const picture = cadre.element("div", {class: "timeline-picture"});
    for (const lane of run.lanes) {
      // A span stands in the first row that is free when it begins.
      const ends = [];
      const track = cadre.element("div", {class: "track", "data-lane": lane.name, "data-spans": lane.spans.length});
      for (const [kind, begin, end, label] of lane.spans.slice(0, most).sort((a, b) => a[1] - b[1])) {
        let row = ends.findIndex((free) => free <= begin);
        if (row < 0) row = ends.push(0) - 1;
        ends[row] = end;
        const text = `${cadre.line(label)}: ${cadre.number(begin, 4)} s to ${cadre.number(end, 4)} s${kind === "failed" ? ", failed" : ""}`;
        const span = cadre.element("div", {class: `span span-${kind}`, title: text}, cadre.element("span", {}, cadre.line(label)));
        span.style.left = percent(begin);
        span.style.width = `max(2px, ${percent(end - begin)})`;
        span.style.top = `${row * 22 + 2}px`;
        track.append(span);
      }
      track.style.height = `${Math.max(1, ends.length) * 22 + 2}px`;
      if (!lane.spans.length) track.append(cadre.element("span", {class: "note"}, "none"));
      picture.append(cadre.element("div", {class: "lane-name"}, lane.name), track);
    }
    const reports = cadre.element("div", {class: "track reports"});
    for (const at of run.reports.slice(0, most)) {
      const mark = cadre.element("i", {title: `report at ${cadre.number(at, 4)} s`});
      mark.style.left = percent(at);
      reports.append(mark);
    }
    const ticks = cadre.element("div", {class: "track ticks", "aria-hidden": "true"});
    for (const split of cadre.niceSplits(0, duration, 6)) {
      const tick = cadre.element("span", {}, `${cadre.Chart.tick(split)} s`);
      tick.style.left = percent(split);
      ticks.append(tick);
    }
    picture.append(cadre.element("div", {class: "lane-name"}, "reports"), reports, cadre.element("div"), ticks);
    host.append(picture, cadre.element("div", {class: "legend"}, ["training", "upload", "validation", "failed"].map((kind) =>
      cadre.element("span", {class: "legend-item"}, cadre.element("span", {class: `swatch span-${kind}`}), kind))));
    if (run.lanes.some((lane) => lane.spans.length > most) || run.reports.length > most)
      host.append(cadre.element("p", {class: "note"}, `The first ${cadre.count(most)} of each lane are shown.`));
  },
});
