// The page of one experiment in the dashboard, which grows with it.
"use strict";

cadre.startLiveExperiment = () => {
  const page = document.getElementById("page");
  const live = new cadre.Live(new URLSearchParams(location.search).get("id") ?? "");
  const title = cadre.element("h1");
  const host = cadre.element("div", {class: "experiment"}, cadre.element("p", {class: "note"}, "The experiment is read \u2026"));
  page.append(cadre.element("header", {class: "top"}, cadre.element("div", {class: "top-bar"},
    cadre.element("a", {class: "brand", href: "./"}, "\u2190 all experiments"), cadre.liveState(live)), title), cadre.element("main", {}, host));
  let experiment = null, view = null;
  cadre.follow(live, () => {
    if (!view) {
      live.take();
      experiment = new cadre.Experiment(live.document, 0);
      experiment.id = live.id;
      host.replaceChildren();
      view = cadre.buildExperiment(host, experiment);
      page.removeAttribute("aria-busy");
      page.dataset.ready = "";
    } else {
      view = view.update(() => {
        const changed = live.take();
        experiment.setDocument(live.document);
        return changed;
      });
    }
    cadre.replaceChildren(title, cadre.userText(experiment.name));
    document.title = `${cadre.line(experiment.name)} \u2013 cadre dashboard`;
    page.dataset.after = live.after;
  });
};

cadre.startLiveExperiment();
