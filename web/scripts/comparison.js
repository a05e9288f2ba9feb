"use strict";
cadre.buildComparison = (main, experiments) => {
  for (const experiment of experiments) {
    const host = cadre.element("div", {class: "experiment"});
    main.append(host);
    cadre.buildExperiment(host, experiment);
  }
};
