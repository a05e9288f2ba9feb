// Documents that the dashboard's server keeps up to date: a stream of events, which is opened again whenever it breaks.
"use strict";

// Carries a change out, in place where it can. docs/formats.md describes changes, "The dashboard".
cadre.applyChange = (value, change) => {
  if ("=" in change) return change["="];
  if (Array.isArray(value)) {
    if ("cut" in change) value.length = Math.min(value.length, change.cut);
    for (let i = 0; i + 1 < (change.at?.length ?? 0); i += 2) value[change.at[i]] = cadre.applyChange(value[change.at[i]], change.at[i + 1]);
    for (const item of change.add ?? []) value.push(item);
    return value;
  }
  for (const key of change.cut ?? []) delete value[key];
  for (const [key, one] of Object.entries(change.set ?? {})) value[key] = cadre.applyChange(value[key], one);
  return value;
};

// A document, and what has arrived for it: changes that nobody has looked at yet.
cadre.Feed = class {
  constructor(id) { Object.assign(this, {id, document: null, after: "", news: []}); }

  // Brings the document up to date. Returns the keys that have changed.
  take() {
    const keys = new Set();
    for (const {document: whole, change: text} of this.news) {
      if (whole !== undefined) {
        const next = JSON.parse(whole);
        for (const key of Object.keys({...this.document, ...next})) keys.add(key);
        this.document = next;
      } else {
        const change = JSON.parse(text);
        for (const key of [...(change.cut ?? []), ...Object.keys(change.set ?? {})]) keys.add(key);
        this.document = cadre.applyChange(this.document, change);
      }
    }
    this.news = [];
    return keys;
  }
};

// The stream of one or several documents, by their ids. Events: "news" when something has arrived, "state" when `state` has
// changed: "connecting", "live", "lost" (the server does not answer), "refused" (it has another token), "gone" (there is no
// such experiment, or none of several).
cadre.Live = class extends EventTarget {
  constructor(ids) {
    super();
    Object.assign(this, {feeds: ids.map((id) => new cadre.Feed(id)), state: "connecting", since: Date.now(), heard: Date.now(), opened: 0, stream: null, timer: 0});
    // A page that nobody sees holds no connection, of which browsers have few.
    document.addEventListener("visibilitychange", () => (document.hidden ? this.close() : this.open()));
    addEventListener("pagehide", () => this.close());
    addEventListener("pageshow", () => this.open());
    // A connection may be dead without an end, as through a tunnel.
    setInterval(() => { if (this.stream && Date.now() - Math.max(this.heard, this.opened) > cadre.Live.silence) this.fail(); }, 1000);
    this.open();
  }

  static silence = 25_000;  // the server says something every ten seconds
  static pause = 1000;

  hasNews() { return this.feeds.some((feed) => feed.news.length > 0); }

  url() {
    const query = new URLSearchParams();
    for (const {id, after} of this.feeds) {
      if (id) query.append("id", id);
      query.append("after", after);
    }
    return `events?${query}`;
  }

  open() {
    clearTimeout(this.timer);
    if (this.stream || document.hidden) return;
    this.opened = Date.now();
    const stream = this.stream = new EventSource(this.url());
    let feed = this.feeds[0];  // the events are about it
    const on = (name, handle) => stream.addEventListener(name, (event) => {
      if (this.stream !== stream) return;
      this.heard = Date.now();
      handle(event);
    });
    on("open", () => this.setState("live"));
    on("alive", () => {});
    on("of", (event) => { feed = this.feeds[Number(event.data)]; });
    on("document", (event) => this.hear(feed, {document: event.data}, event.lastEventId));
    on("change", (event) => this.hear(feed, {change: event.data}, event.lastEventId));
    on("gone", () => this.lose(feed));
    stream.addEventListener("error", () => { if (this.stream === stream) this.fail(); });
  }

  close() {
    clearTimeout(this.timer);
    this.stream?.close();
    this.stream = null;
  }

  again() { this.timer = setTimeout(() => this.open(), cadre.Live.pause); }

  // Handles the end of an experiment. Of several the others go on, and its tab says so.
  lose(feed) {
    feed.after = "";
    if (this.feeds.length > 1) {
      const name = feed.document?.name ?? feed.id;
      return this.hear(feed, {document: JSON.stringify({kind: "unreadable", name, reason: "It is not there any more."})}, "");
    }
    this.setState("gone");
    this.close();
    this.again();
  }

  // Finds out why there is no stream, and tries again. The answer is of no use once a later stream is open.
  async fail() {
    this.close();
    let state = "lost";
    try {
      const {status} = await fetch(this.url(), {method: "HEAD", signal: AbortSignal.timeout(cadre.Live.silence)});
      state = status === 403 ? "refused" : status === 404 ? "gone" : "lost";
    } catch { /* it does not answer */ }
    if (this.stream) return;
    this.setState(state);
    this.again();
  }

  setState(state) {
    if (state === this.state) return;
    this.state = state;
    this.since = this.heard;  // a connection may have been dead for a while when that is noticed
    this.dispatchEvent(new Event("state"));
  }

  hear(feed, one, id) {
    this.setState("live");
    feed.after = id;
    feed.news.push(one);
    this.dispatchEvent(new Event("news"));
  }
};

// Calls `show` for news, at most so often that it takes a tenth of the time. It is not called while there is none.
cadre.follow = (live, show) => {
  let free = 0, planned = false;
  const run = () => {
    planned = false;
    if (!live.hasNews()) return;
    const begin = performance.now();
    show();
    const end = performance.now();
    free = end + 9 * (end - begin);
  };
  live.addEventListener("news", () => {
    if (planned) return;
    planned = true;
    setTimeout(() => requestAnimationFrame(run), Math.max(0, free - performance.now()));
  });
};

// Returns the element that says whether the page is up to date.
cadre.liveState = (live) => {
  const text = cadre.element("span"), since = cadre.element("span", {"aria-hidden": "true"});  // changes each second: is not read out
  const box = cadre.element("div", {class: "live", role: "status"}, cadre.element("span", {class: "dot", "aria-hidden": "true"}), text, since);
  const time = (at) => new Date(at).toLocaleTimeString();
  const show = () => {
    const said = {
      connecting: "connecting \u2026",
      live: "live",
      lost: `no connection since ${time(live.since)}: the dashboard does not answer. Trying again \u2026`,
      refused: `not up to date since ${time(live.since)}: the dashboard was started again and has another address. Open the one that it has printed.`,
      gone: `not there any more since ${time(live.since)}`,
    }[live.state];
    cadre.setText(text, said);
    since.textContent = live.state === "lost" ? ` (${cadre.duration(Math.round((Date.now() - live.since) / 1000))})` : "";
    box.dataset.state = live.state;
    document.documentElement.classList.toggle("is-stale", !["live", "connecting"].includes(live.state));
  };
  live.addEventListener("state", show);
  setInterval(show, 1000);
  show();
  return box;
};
