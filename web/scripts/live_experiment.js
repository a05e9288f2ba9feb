// The page of one experiment in the dashboard, or of several side by side, which grows with them.
"use strict";

cadre.startLiveExperiment = () => {
  const page = document.getElementById("page");
  const live = new cadre.Live(new URLSearchParams(location.search).getAll("id"));
  const title = cadre.element("h1");
  const host = cadre.element("div", {class: "experiment"}, cadre.element("p", {class: "note"}, "Reading \u2026"));
  page.append(cadre.element("header", {class: "top"}, cadre.element("div", {class: "top-bar"},
    cadre.element("a", {class: "brand", href: "./"}, "\u2190 all experiments"), cadre.liveState(live)), title), cadre.element("main", {}, host));
  let experiments = null, view = null;

  const begin = () => {
    experiments = live.feeds.map((feed, index) => Object.assign(new cadre.Experiment(feed.document, index), {id: feed.id}));
    host.replaceChildren();
    view = experiments.length === 1 ? cadre.buildExperiment(host, experiments[0]) : cadre.buildComparison(host, experiments);
    page.removeAttribute("aria-busy");
    page.dataset.ready = "";
  };

  // Returns a function that gives an experiment what has arrived for it, and returns the keys that have changed.
  const news = (experiment) => () => {
    const changed = live.feeds[experiment.index].take();
    experiment.setDocument(live.feeds[experiment.index].document);
    return changed;
  };

  cadre.follow(live, () => {
    if (!view) {
      for (const feed of live.feeds) feed.take();
      if (live.feeds.some((feed) => !feed.document)) return;  // not all have been read
      begin();
    } else if (experiments.length === 1) {
      view = view.update(news(experiments[0]));
    } else {
      view.update(experiments.map((experiment) => (live.feeds[experiment.index].news.length ? news(experiment) : null)));
    }
    const names = experiments.length === 1 ? cadre.userText(experiments[0].name) : `${experiments.length} experiments`;
    cadre.replaceChildren(title, names);
    document.title = `${experiments.map((experiment) => cadre.line(experiment.name)).join(", ")} \u2013 cadre dashboard`;
    page.dataset.after = live.feeds.map((feed) => feed.after).join(" ");
  });
};

cadre.startLiveExperiment();
