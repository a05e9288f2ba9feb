// The table of trials, with search and sort.
"use strict";

// Returns a function from a trial to whether it is searched for. Words are parts of a trial's texts; "lr < 0.1" compares a
// column.
cadre.parseSearch = (experiment, text) => {
  const tests = [];
  const rest = text.replace(/([^\s<>=!]+)\s*(<=|>=|==|!=|<|>|=)\s*("[^"]*"|[^\s]+)/g, (_, name, operation, wanted) => {
    const column = experiment.column(name) ?? experiment.column(`config/${name}`);
    const own = experiment.trials[name];
    const value = wanted.replace(/^"|"$/g, "");
    const number = Number(value);
    tests.push((trial) => {
      const cell = column ? column.cells[trial] : own ? own[trial] : null;
      if (cell === null) return false;
      const a = cadre.isNumberCell(cell) && !Number.isNaN(number) ? cadre.cellNumber(cell) : cadre.cellExact(cell);
      const b = typeof a === "number" ? number : value;
      return {"<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b, "=": a === b, "==": a === b, "!=": a !== b}[operation];
    });
    return " ";
  });
  for (const word of rest.toLowerCase().split(/\s+/).filter(Boolean)) {
    tests.push((trial) => [experiment.trials.id[trial], experiment.trials.status[trial],
      ...experiment.parameters.map((column) => cadre.cellText(column.cells[trial]))].some((one) => String(one).toLowerCase().includes(word)));
  }
  return (trial) => tests.every((test) => test(trial));
};

// Returns the columns of the table: {key, title, cell(trial), isNumber}.
cadre.tableColumns = (experiment) => {
  const own = (key, title, list) => ({key, title, cell: (trial) => list[trial], isNumber: key !== "id" && key !== "status"});
  const data = (column) => ({key: cadre.Experiment.key(column), title: column.name, kind: column.kind,
    cell: (trial) => column.cells[trial], isNumber: column.cells.some(cadre.isNumberCell)});
  const isOwn = (column) => ["training_iteration", "time_total_s", "timestamp"].includes(column.name);
  const metrics = experiment.metrics.filter((column) => !isOwn(column));
  const first = metrics.filter((column) => column.name === experiment.metric);
  return [own("id", "trial", experiment.trials.id), own("status", "status", experiment.trials.status), ...first.map(data),
    ...experiment.parameters.map(data), ...metrics.filter((column) => column.name !== experiment.metric).map(data),
    ...experiment.metrics.filter(isOwn).map(data), own("results", "results", experiment.trials.results),
    own("attempts", "attempts", experiment.trials.attempts), own("failures", "failures", experiment.trials.failures),
    {key: "exploits", title: "exploits", cell: (trial) => experiment.exploits[trial].length, isNumber: true}];
};

cadre.sections.push({
  id: "trials", title: "Trials",
  isThere: (experiment) => !experiment.isRun && experiment.count > 0,
  build(host, {experiment, selection}) {
    let all;
    const chosen = new Map();  // what the user has shown or hidden
    const isShown = new Map();
    const look = () => {
      all = cadre.tableColumns(experiment);
      const hiddenAtFirst = new Set(["timestamp", "attempts", "failures", "results", ...(experiment.hasExploits() ? [] : ["exploits"])]);
      if (experiment.trials.failures.some((count) => count > 0)) hiddenAtFirst.delete("failures");
      const parameters = new Set(experiment.parameters.map((column) => column.name));
      all.forEach((column, at) => isShown.set(column.key, chosen.get(column.key) ?? (!hiddenAtFirst.has(column.key) && !(column.kind === "metric" && parameters.has(column.key)) &&
        (at < 12 || column.kind !== "metric" || ["training_iteration", "time_total_s"].includes(column.key)))));
    };
    look();
    const state = {sort: experiment.metric && experiment.mode ? null : "id", isDown: false, search: ""};
    let trials = [];
    const head = cadre.element("tr"), body = cadre.element("tbody");
    const table = cadre.element("table", {class: "trials"}, cadre.element("caption", {class: "off-screen"}, "Trials"), cadre.element("thead", {}, head), body);
    const found = cadre.element("span", {class: "note", "aria-live": "polite"});
    const columns = () => all.filter((column) => isShown.get(column.key));

    const pages = cadre.pages(50, () => trials.length, (begin, end) => {
      cadre.replaceChildren(body, trials.slice(begin, end).map((trial) => cadre.element("tr",
        {"data-trial": experiment.trials.id[trial], class: trial === experiment.best ? "best" : null,
          onpointerenter: () => selection.hover(trial), onpointerleave: () => selection.hover(null)},
        columns().map((column, at) => {
          const cell = column.cell(trial);
          if (at === 0) return cadre.element("th", {scope: "row"}, trial === experiment.best ? "\u2605 " : "",
            cadre.button(cadre.line(cell), () => selection.open(trial), {class: "link", "data-value": cell}));
          return cadre.element("td", {"data-column": column.key, "data-value": cadre.cellExact(cell),
            class: column.key === "status" ? `status status-${String(cell).toLowerCase()}` : column.isNumber ? "number" : null,
            title: column.isNumber ? null : cadre.printable(cadre.cellExact(cell))}, cadre.cellText(cell));
        }))));
    });
    const order = () => {
      const test = cadre.parseSearch(experiment, state.search);
      trials = experiment.ranking().filter((trial) => selection.includes(trial) && test(trial));
      const column = all.find((one) => one.key === state.sort);
      if (column) {
        const value = (trial) => {
          const cell = column.cell(trial);
          return cadre.isNumberCell(cell) ? cadre.cellNumber(cell) : cell === null || cell === undefined ? NaN : cadre.cellExact(cell);
        };
        const keyed = trials.map((trial) => [value(trial), trial]);
        const isNone = (key) => typeof key === "number" && Number.isNaN(key);
        keyed.sort(([a, i], [b, j]) => {
          if (isNone(a) || isNone(b)) return isNone(a) - isNone(b) || i - j;
          if (typeof a !== typeof b) return typeof a === "number" ? -1 : 1;
          return (a < b ? -1 : a > b ? 1 : 0) * (state.isDown ? -1 : 1) || i - j;
        });
        trials = keyed.map(([, trial]) => trial);
      }
      cadre.setText(found, trials.length < experiment.count ? `${cadre.count(trials.length)} of ${cadre.plural(experiment.count, "trial")}` : "");
    };
    const sort = () => {
      order();
      pages.go(0);
    };
    const showHead = () => {
      head.dataset.heads = JSON.stringify(columns().map((column) => [column.key, column.isNumber]));
      cadre.replaceChildren(head, columns().map((column) => cadre.element("th",
      {scope: "col", class: column.isNumber ? "number" : null, "data-column": column.key,
        "aria-sort": state.sort === column.key ? (state.isDown ? "descending" : "ascending") : null},
      cadre.button([cadre.userText(column.title), cadre.element("span", {class: "arrow", "aria-hidden": "true"}, state.sort === column.key ? (state.isDown ? "\u25bc" : "\u25b2") : "")], () => {
        state.isDown = state.sort === column.key ? !state.isDown : column.key === experiment.metric && experiment.mode === "max";
        state.sort = column.key;
        showHead();
        sort();
        head.querySelector(`[data-column="${CSS.escape(column.key)}"] button`)?.focus();
      }, {class: "sort"}))));
    };

    const search = cadre.element("input", {type: "search", placeholder: "Search: error, 00012, lr < 0.1", "aria-label": "Search trials", oninput: () => { state.search = search.value; sort(); }});
    const list = cadre.element("div", {class: "chooser-list"});
    const chooser = cadre.element("details", {class: "chooser"}, cadre.element("summary", {}, "Columns"),
      list);
    const choose = () => {
      const keys = JSON.stringify(all.map((column) => [column.key, isShown.get(column.key)]));
      if (keys === list.dataset.columns) return;
      list.dataset.columns = keys;
      cadre.replaceChildren(list, all.slice(1).map((column) => cadre.toggle(cadre.line(column.title), isShown.get(column.key), (on) => { chosen.set(column.key, on); isShown.set(column.key, on); showHead(); sort(); })));
    };
    choose();
    host.append(cadre.element("div", {class: "controls"}, cadre.element("label", {class: "search"}, search), chooser, found),
      cadre.element("div", {class: "scroll", tabindex: "0", role: "region", "aria-label": "Table of trials"}, table), pages.bar);
    selection.addEventListener("filter", sort);
    showHead();
    sort();
    return () => {
      look();
      choose();
      const heads = JSON.stringify(columns().map((column) => [column.key, column.isNumber]));
      cadre.keepFocus(host, () => {
        if (heads !== head.dataset.heads) showHead();
        order();
        pages.again();
      });
    };
  },
});
