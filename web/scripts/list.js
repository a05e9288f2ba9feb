// The list of experiments, the first page of the dashboard.
"use strict";

// Returns "3 min" for a time in the past, in seconds since 1970.
cadre.age = (time) => {
  if (!time) return "";
  const seconds = Math.max(0, Date.now() / 1000 - time);
  if (seconds < 10) return "now";
  if (seconds < 60) return `${Math.floor(seconds)} s ago`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ago`;
  return seconds < 48 * 3600 ? `${Math.floor(seconds / 3600)} h ago` : `${Math.floor(seconds / 86400)} d ago`;
};

// Columns: {key, title, isNumber, value(entry) to sort by, show(entry, id) to show}.
cadre.listColumns = [
  {key: "name", title: "experiment", value: (entry) => entry.name},
  {key: "state", title: "state", value: (entry) => entry.state ?? "unreadable",
    show: (entry) => cadre.element("span", {class: `state-${entry.state ?? "unreadable"}`}, entry.paused ? "paused" : entry.state ?? "unreadable")},
  {key: "trials", title: "trials", value: (entry) => (entry.kind === "training_run" ? entry.reports : cadre.trialCount(entry)),
    show: (entry) => (entry.kind === "unreadable" ? "" : entry.kind === "training_run" ? `run, ${cadre.plural(entry.reports ?? 0, "report")}` : cadre.trialsText(entry))},
  {key: "done", title: "done", value: (entry) => cadre.share(entry) ?? NaN, show: (entry) => cadre.doneBar(entry)},
  {key: "metric", title: "metric", value: (entry) => entry.metric ?? "", show: (entry) => (entry.metric ? [cadre.userText(entry.metric), entry.mode ? ` (${entry.mode})` : ""] : "")},
  {key: "best", title: "best", isNumber: true, value: (entry) => entry.best ?? entry.latest ?? NaN,
    show: (entry) => [cadre.element("span", {"data-value": entry.best ?? entry.latest ?? "", title: entry.best_trial ? `trial ${entry.best_trial}` : null}, cadre.number(entry.best ?? entry.latest)),
      (entry.latest ?? null) === null ? null : cadre.element("span", {class: "note", title: "of the last report: the run ranks its checkpoints by no metric"}, " last")]},
  {key: "last", title: "last event", isNumber: true, isDownFirst: true, value: (entry) => entry.last_event || NaN,
    show: (entry) => cadre.element("span", {class: "age", "data-time": entry.last_event ?? "", title: cadre.time(entry.last_event)}, cadre.age(entry.last_event))},
];

cadre.trialCount = (entry) => Object.values(entry.trials_by_status ?? {}).reduce((sum, count) => sum + count, 0);

cadre.trialsText = (entry) => {
  const counts = Object.entries(entry.trials_by_status).filter(([, count]) => count > 0);
  const text = counts.map(([status, count]) => `${cadre.count(count)} ${status.toLowerCase()}`).join(", ");
  return [cadre.count(cadre.trialCount(entry)), counts.length ? cadre.element("span", {class: "note"}, counts.length > 1 ? `: ${text}` : ` ${counts[0][0].toLowerCase()}`) : null];
};

// Returns how much of an experiment that has not finished is done, from 0 to 1; null: unknown.
cadre.share = (entry) => {
  if (entry.state === "finished") return 1;
  const {progress} = entry;
  if (!progress || entry.kind !== "experiment") return null;
  return progress.done ?? (progress.trials ? progress.ended / progress.trials : null);
};

// Returns a share in percent, rounded as `cadre ls` and the experiment's page have it: halves to the even number.
cadre.percent = (share) => {
  const rounded = Math.round(100 * share);
  return rounded - 100 * share === 0.5 && rounded % 2 === 1 ? rounded - 1 : rounded;
};

cadre.doneBar = (entry) => {
  const share = cadre.share(entry);
  if (share === null || entry.state === "finished") return "";
  const bar = cadre.element("span", {class: "done-bar"}, cadre.element("span"));
  bar.firstChild.style.width = `${100 * share}%`;
  const left = entry.progress.seconds_left;
  return cadre.element("span", {class: "done", title: left ? `about ${cadre.duration(Math.round(left))} left` : null}, bar, `${cadre.percent(share)} %`);
};

cadre.mostTogether = 12;  // experiments side by side: their colours and curves are still told apart

cadre.startList = () => {
  const page = document.getElementById("page");
  const live = new cadre.Live([""]);
  const [feed] = live.feeds;
  const state = {sort: "last", isDown: true, search: ""};
  const marked = new Set();  // ids of experiments to compare
  const compare = cadre.element("a", {class: "button", hidden: true});
  const clear = cadre.button("Unmark all", () => {
    marked.clear();
    for (const box of body.querySelectorAll("input")) box.checked = false;
    showMarked();
    search.focus();
  }, {hidden: true});
  const head = cadre.element("tr"), body = cadre.element("tbody");
  const found = cadre.element("span", {class: "note", "aria-live": "polite"});
  const faults = cadre.element("div");
  const search = cadre.element("input", {type: "search", placeholder: "Search: a name, running", "aria-label": "Search experiments", oninput: () => { state.search = search.value.toLowerCase(); show(); }});
  const columns = cadre.listColumns;
  const scroll = cadre.element("div", {class: "scroll list-scroll", tabindex: "0", role: "region", "aria-label": "Table of experiments"},
    cadre.element("table", {class: "list"}, cadre.element("caption", {class: "off-screen"}, "Experiments"), cadre.element("thead", {}, head), body));
  page.append(cadre.element("header", {class: "top"}, cadre.element("div", {class: "top-bar"}, cadre.element("div", {class: "brand"}, "cadre dashboard"), cadre.liveState(live)),
    cadre.element("h1", {}, "Experiments")), cadre.element("main", {}, faults, cadre.element("section", {class: "card"}, cadre.element("div", {class: "controls"},
    cadre.element("label", {class: "search"}, search), found, cadre.element("span", {class: "marked"}, compare, clear)), scroll)));
  const rows = new Map();  // by id: {row, text}

  const showHead = () => cadre.replaceChildren(head, columns.map((column) => cadre.element("th", {scope: "col", class: column.isNumber ? "number" : null, "data-column": column.key,
    "aria-sort": state.sort === column.key ? (state.isDown ? "descending" : "ascending") : null},
  cadre.button([column.title, cadre.element("span", {class: "arrow", "aria-hidden": "true"}, state.sort === column.key ? (state.isDown ? "\u25bc" : "\u25b2") : "")], () => {
    state.isDown = state.sort === column.key ? !state.isDown : Boolean(column.isDownFirst);
    state.sort = column.key;
    showHead();
    show();
    head.querySelector(`[data-column="${column.key}"] button`).focus();
  }, {class: "sort"}))));

  const showMarked = () => {
    for (const id of marked) if (!(id in feed.document.experiments)) marked.delete(id);
    compare.hidden = marked.size < 2;
    clear.hidden = marked.size === 0;
    compare.textContent = `Compare ${cadre.plural(marked.size, "experiment")}`;
    compare.href = `experiment?${new URLSearchParams(Array.from(marked, (id) => ["id", id]))}`;
    for (const box of body.querySelectorAll("input")) box.disabled = !box.checked && marked.size >= cadre.mostTogether;
  };

  const markBox = (id, entry) => {
    const box = cadre.element("input", {type: "checkbox", "aria-label": `Mark ${cadre.line(entry.name)} to compare it`, title: "Mark to compare", onchange: () => {
      if (box.checked) marked.add(id);
      else marked.delete(id);
      showMarked();
    }});
    box.checked = marked.has(id);
    return box;
  };

  // Returns the row of an experiment, made anew only where the experiment has changed, so that the focus stays.
  const rowOf = (id, entry) => {
    const text = JSON.stringify(entry);
    const known = rows.get(id);
    if (known?.text === text) return known.row;
    const row = known?.row ?? cadre.element("tr", {"data-id": id});
    Object.assign(row.dataset, {name: entry.name, state: entry.state ?? "unreadable"});
    cadre.keepFocus(row, () => cadre.replaceChildren(row, columns.map((column, at) => (at === 0
      ? cadre.element("th", {scope: "row"}, cadre.element("div", {class: "marking"}, markBox(id, entry),
        cadre.element("a", {href: `experiment?id=${encodeURIComponent(id)}`, title: cadre.printable(entry.path ?? "")}, cadre.userText(entry.name))))
      : entry.kind === "unreadable" && at === 2 ? cadre.element("td", {class: "reason", colspan: columns.length - 2, title: cadre.printable(entry.error)}, cadre.line(entry.error))
        : entry.kind === "unreadable" && at > 2 ? null
          : cadre.element("td", {"data-column": column.key, class: column.isNumber ? "number" : null}, column.show(entry))))));
    rows.set(id, {row, text});
    return row;
  };

  const show = () => {
    const {experiments, found: all, complete, faults: reasons} = feed.document;
    const column = columns.find((one) => one.key === state.sort);
    const isNone = (value) => typeof value === "number" && Number.isNaN(value);
    const entries = Object.entries(experiments).filter(([, entry]) => state.search.split(/\s+/).every((word) =>
      `${entry.name} ${entry.state ?? "unreadable"} ${entry.metric ?? ""}`.toLowerCase().includes(word)));
    entries.sort(([, a], [, b]) => {
      const [x, y] = [column.value(a), column.value(b)];
      if (isNone(x) || isNone(y)) return isNone(x) - isNone(y) || (a.name < b.name ? -1 : 1);
      return (x < y ? -1 : x > y ? 1 : 0) * (state.isDown ? -1 : 1) || (a.name < b.name ? -1 : 1);
    });
    const wanted = entries.map(([id, entry]) => rowOf(id, entry));
    if (wanted.length !== body.children.length || wanted.some((row, at) => body.children[at] !== row))
      cadre.keepFocus(scroll, () => body.replaceChildren(...wanted));
    const count = Object.keys(experiments).length;
    cadre.setText(found, count < all ? `${cadre.count(count)} of ${cadre.plural(all, "experiment")} read \u2026`
      : entries.length < count ? `${cadre.count(entries.length)} of ${cadre.plural(count, "experiment")}`
        : count === 0 ? (complete ? "There are no experiments yet." : "Looking for experiments \u2026") : cadre.plural(count, "experiment"));
    const alerts = reasons.map((reason) => cadre.element("p", {class: "card unreadable", role: "alert"}, cadre.line(reason)));
    if (alerts.map((one) => one.textContent).join() !== Array.from(faults.children, (one) => one.textContent).join()) cadre.replaceChildren(faults, alerts);  // is read out once
    const running = Object.values(experiments).filter((entry) => entry.state === "running").length;
    document.title = running ? `${running} running \u2013 cadre dashboard` : "cadre dashboard";
    page.removeAttribute("aria-busy");
    page.dataset.ready = "";
    page.dataset.after = feed.after;
    showMarked();
  };

  showHead();
  cadre.follow(live, () => {
    feed.take();
    show();
  });
  setInterval(() => {
    for (const age of body.querySelectorAll(".age")) age.textContent = cadre.age(Number(age.dataset.time));
  }, 5000);
};

cadre.startList();
