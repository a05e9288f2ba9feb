// Failures with their last lines, grouped by the line that says what happened.
"use strict";

cadre.sections.push({
  id: "failures", title: "Failures", parts: ["failures"],
  isThere: (experiment) => experiment.document.failures.in_all > 0,
  build(host, {experiment}) {
    const {in_all: all, items} = experiment.document.failures;
    const groups = new Map();
    for (const item of items) {
      const reason = cadre.reasonLine(item.error ?? item.last_lines ?? "") || "no message";
      const key = item.error ? reason : reason.replace(/^Attempt \d+: /, "");
      if (!groups.has(key)) groups.set(key, []);
      groups.get(key).push(item);
    }
    if (all > items.length) host.append(cadre.element("p", {class: "note"}, `The first ${items.length} of ${cadre.count(all)} trials with failures are here.`));
    for (const [reason, group] of groups) {
      const ended = group.filter((item) => item.error).length;
      host.append(cadre.element("details", {class: "failure", open: groups.size === 1 && group.length <= 3, "data-trials": group.map((item) => item.id).join(" ")},
        cadre.element("summary", {}, cadre.element("strong", {}, experiment.isRun ? "" : `${cadre.plural(group.length, "trial")}${ended < group.length ? `, ${ended === 0 ? "all" : group.length - ended} of which went on` : ""}: `), cadre.userText(reason)),
        group.slice(0, 10).map((item) => cadre.element("div", {}, experiment.isRun ? null : cadre.element("h3", {}, `Trial ${item.id}, ${item.status}, ${cadre.plural(item.failures, "failure")}`),
          cadre.element("pre", {"data-trial": item.id, tabindex: "0"}, cadre.printable(item.last_lines ?? item.error ?? "")))),
        group.length > 10 ? cadre.element("p", {class: "note"}, `and ${group.length - 10} more: ${group.slice(10).map((item) => item.id).join(", ")}`) : null));
    }
  },
});
