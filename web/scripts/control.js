// Requests to an experiment that runs: pause, resume, stop, enqueue. Only pages of a dashboard that allows them have
// this.
"use strict";

// Makes a request, a text of JSON. Returns what follows from it, as a text; throws an Error with the reason if it is
// refused.
cadre.request = async (experiment, json) => {
  let response, text;
  try {
    response = await fetch(`control?id=${encodeURIComponent(experiment.id)}`,
      {method: "POST", headers: {"Content-Type": "application/json"}, body: json});
    text = await response.text();
  } catch {
    throw new Error("The dashboard does not answer: it has ended, or cannot be reached. " +
      "Look whether the request was carried out once it is back.");
  }
  let answer = null;
  try { answer = JSON.parse(text); } catch { /* it is another program's, or too long a request's */ }
  if (!response.ok) throw new Error(answer?.error ?? text);
  return answer.message;
};

// Makes a request and says in an element how it went. Returns true if it was carried out.
cadre.sayRequest = async (said, experiment, json) => {
  const say = (outcome, text) => {
    said.dataset.outcome = outcome;
    said.textContent = cadre.printable(text);
  };
  say("asking", "The experiment is asked \u2026");
  try {
    const text = await cadre.request(experiment, json);
    say("done", `${text[0].toUpperCase()}${text.slice(1)}.`);
    return true;
  } catch (error) {
    say("refused", error.message);
    return false;
  }
};

// Opens a dialog about a request. `asker`: an element of the experiment's part of the page, with which the dialog goes
// when another experiment takes its place. `json()` returns the request when it is confirmed, and throws an Error with
// the reason if it is none.
cadre.askInDialog = (asker, experiment, {title, text, field, ok, isDanger, json}) => {
  const said = cadre.element("p", {class: "said", role: "status"});
  const cancel = cadre.button("Cancel", () => dialog.close(), {autofocus: !field});
  let isAsking = false;  // a button that is disabled loses the focus
  const confirm = cadre.button(ok, async () => {
    if (isAsking) return;
    let wanted;
    try {
      wanted = json();
    } catch (error) {
      said.dataset.outcome = "refused";
      said.textContent = error.message;
      return;
    }
    isAsking = true;
    const isDone = await cadre.sayRequest(said, experiment, wanted);
    isAsking = false;
    if (!isDone) return;
    confirm.remove();
    cancel.textContent = "Close";
    cancel.focus();
  }, {class: isDanger ? "danger" : null});
  const dialog = cadre.element("dialog", {class: "ask", "aria-label": title, onclose: () => dialog.remove()},
    cadre.element("h2", {}, title), cadre.element("p", {class: "lead"}, text), field ?? null, said,
    cadre.element("div", {class: "controls"}, cancel, confirm));
  asker.closest(".experiment").append(dialog);
  dialog.showModal();
};

// A study runs, too, but has no controller that could be asked.
cadre.hasController = ({isRun, document}) => !isRun && document.state === "running" && Boolean(document.controller);

// Returns false also for an experiment in a storage.
cadre.isControllable = (experiment) =>
  cadre.hasController(experiment) && !/^[a-z][a-z0-9+.-]*:\/\//.test(experiment.document.path);

cadre.askToStop = (asker, experiment) => cadre.askInDialog(asker, experiment, {
  title: `Stop ${cadre.line(experiment.name)}?`, ok: "Stop all trials", isDanger: true,
  text: "All trials stop at their next report, or by force after the stop_grace_period, and the experiment ends. " +
    "To continue it later, pause it instead.",
  json: () => JSON.stringify({do: "stop"}),
});

// Returns a button that stops a trial; null if it cannot be stopped.
cadre.stopTrialButton = (experiment, trial) => {
  const id = experiment.trials.id[trial];
  const runs = ["PENDING", "RUNNING", "PAUSED"].includes(experiment.trials.status[trial]);
  if (!runs || !cadre.isControllable(experiment)) return null;
  return cadre.button("Stop \u2026", (event) => cadre.askInDialog(event.target, experiment, {
    title: `Stop trial ${cadre.line(id)}?`, ok: "Stop the trial", isDanger: true,
    text: "It stops at its next report, or by force after the stop_grace_period. The other trials go on.",
    json: () => JSON.stringify({do: "stop", trial: id}),
  }), {class: "danger"});
};

cadre.askToEnqueue = (asker, experiment) => {
  // The best trial's values, to be changed: as the document has them, also integers that are no numbers of JavaScript.
  const like = experiment.best ?? 0;
  const entries = experiment.parameters.map((column) => [column.name, column.cells[like] ?? null])
    .filter(([, cell]) => cell !== null && !["NaN", "Infinity", "-Infinity"].includes(cell.number));
  const valueOf = (cell) => (typeof cell === "object" ? cadre.cellExact(cell) : JSON.stringify(cell));
  const lines = entries.map(([name, cell]) => `  ${JSON.stringify(name)}: ${valueOf(cell)}`);
  const area = cadre.element("textarea", {id: "values", spellcheck: "false", autofocus: true});
  area.value = `{\n${lines.join(",\n")}\n}`;
  cadre.askInDialog(asker, experiment, {
    title: "Add a trial", ok: "Enqueue",
    text: "It is the next trial, in addition to num_samples, with these values. " +
      "Keys that you leave out are drawn from the search space.",
    field: cadre.element("div", {}, cadre.element("label", {for: "values"}, "Its config, as JSON"), area),
    json: () => {
      const values = JSON.parse(area.value);
      if (values === null || typeof values !== "object" || Array.isArray(values))
        throw new Error('Write an object, as in {"lr": 0.1}.');
      return `{"do": "enqueue", "values": ${area.value}}`;
    },
  });
};

cadre.sections.push({
  id: "control", title: "Control",
  isThere: cadre.hasController,
  build(host, {experiment}) {
    if (!cadre.isControllable(experiment)) {
      host.append(cadre.element("p", {class: "note"}, "This experiment is in a storage, so this page only shows it. " +
        "Its directory is on the machine where its controller runs."));
      return () => {};
    }
    const said = cadre.element("p", {class: "said", role: "status"});
    let isAsking = false;
    const pause = cadre.button("", async () => {
      if (isAsking) return;
      isAsking = true;
      await cadre.sayRequest(said, experiment, JSON.stringify({do: experiment.document.paused ? "resume" : "pause"}));
      isAsking = false;
    });
    const update = () => { pause.textContent = experiment.document.paused ? "Resume" : "Pause"; };
    update();
    host.append(cadre.element("div", {class: "controls"}, pause,
      cadre.button("Add a trial \u2026", () => cadre.askToEnqueue(host, experiment)),
      cadre.button("Stop \u2026", () => cadre.askToStop(host, experiment), {class: "danger"})), said);
    return update;
  },
});
