// Colours: those of Okabe and Ito for categories, viridis for numbers. Both are told apart with any colour vision.
"use strict";

cadre.theme = {
  query: window.matchMedia("(prefers-color-scheme: dark)"),
  isDark: () => cadre.theme.query.matches,
  // Calls a listener when the scheme changes, as long as the element stands in the page.
  onChange: (element, listener) => {
    element.dataset.themed = "";
    element.addEventListener("theme", listener);
  },
  // Returns the value of a variable of the style sheet.
  css: (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim(),
  // Returns the colour of the winner, which no category has.
  winner: () => (cadre.theme.isDark() ? "#ff9d5c" : "#d55e00"),
  categories: () => (cadre.theme.isDark()
    ? ["#56b4e9", "#2fc49b", "#e6a5c8", "#f0e442", "#e69f00"]
    : ["#0072b2", "#009e73", "#b4558a", "#56b4e9", "#e69f00"]),
};

cadre.theme.query.addEventListener("change", () => {
  for (const element of document.querySelectorAll("[data-themed]")) element.dispatchEvent(new Event("theme"));
});

(() => {
  const stops = [[68, 1, 84], [71, 44, 122], [59, 81, 139], [44, 113, 142], [33, 144, 141], [39, 173, 129], [92, 200, 99],
    [170, 220, 50], [253, 231, 37]];
  // Returns the colour at a position from 0 to 1. The end that the background swallows is left out.
  cadre.theme.viridis = (position) => {
    const [low, high] = cadre.theme.isDark() ? [0.25, 1] : [0, 0.9];
    const at = (low + Math.max(0, Math.min(1, position)) * (high - low)) * (stops.length - 1);
    const index = Math.min(Math.floor(at), stops.length - 2);
    const mixed = stops[index].map((c, i) => Math.round(c + (stops[index + 1][i] - c) * (at - index)));
    return `rgb(${mixed.join(",")})`;
  };
})();
