/* Keeps an open form current for its script: by a stream of the hub's, or else by asking again and
   again. A hidden page has no stream and asks nothing. */
"use strict";

/* Resolves when nothing is pressed. Scripts write after that: text that appears above a button moves
   it, and a button that moves between a press and its release isn't clicked. */
window.gpuspawnerReleased = (() => {
  const PRESSED = "a, button, input, label"; /* of a list, browsers don't tell the release */
  const CLICK = 100; /* milliseconds in which the click follows the release, on a touch screen */
  let released = Promise.resolve();
  addEventListener("pointerdown", ({ button, target }) => {
    if (button !== 0 || !target.closest(PRESSED)) return;
    released = new Promise((resolve) => {
      const release = () => setTimeout(resolve, CLICK);
      for (const end of ["pointerup", "pointercancel"]) addEventListener(end, release, { once: true });
    });
  });
  return () => released;
})();

/* Returns the hub's answer, or throws its status. A user who has logged out in another window reads so
   here: JupyterHub's answer to a form that is sent then doesn't say it. The link leads back. */
window.gpuspawnerAnswered = (answer) => {
  const root = document.querySelector("[data-login]");
  if (answer.status === 403 && root && !root.querySelector(".gpuspawner-login")) {
    const address = document.querySelector("[data-stream]").dataset.stream;
    const link = document.createElement("a");
    const next = encodeURIComponent(location.pathname);
    link.href = address.replace(/gpuspawner\/(gpus\/)?stream\/.*/, `login?next=${next}`);
    link.textContent = root.dataset.login;
    const said = document.createElement("p");
    said.className = "gpuspawner-login";
    said.setAttribute("role", "alert");
    said.append(link);
    root.append(said);
  }
  if (!answer.ok) throw new Error(`${answer.status}`);
  return answer;
};

/* Returns whether a refusal is shown, how to remove it, and how to hide buttons of what can't start
   right now. The message only hides: as long as it is there, so does the hub's own. */
window.gpuspawnerRefusal = (form) => {
  let refused = form.querySelector(".gpuspawner-refusal");
  refused?.focus();

  function forget() {
    if (refused) refused.hidden = true;
    refused = null;
    for (const old of form.querySelectorAll(".gpuspawner-error, .gpuspawner-wait")) old.remove();
    for (const field of form.querySelectorAll(".is-invalid")) {
      field.classList.remove("is-invalid");
      field.removeAttribute("aria-invalid");
    }
  }

  /* `starts` tells of the choices of a button whether they could start. */
  function keep(starts) {
    for (const button of form.querySelectorAll("button[name=gpuspawner-instead]")) {
      button.hidden = !starts(new URLSearchParams(button.value));
      const group = button.parentElement;
      group.hidden = !group.querySelector("button:not([hidden])");
    }
  }

  return { isShown: () => refused !== null, forget, keep };
};

/* Whether the hub would start a server in this state. A state of null says nothing against it. */
window.gpuspawnerStarts = (state) =>
  [null, "free", "can-scale-up", "may-scale-up", "reading", "unknown"].includes(state);

/* Calls `show` with the states whenever they change, and with the milliseconds over which all open
   pages spread what they ask next. If the page has to ask for the states itself, `ask` does, and
   `fail` says that nobody has answered. `ask` may return nothing if the page shows no states. */
window.gpuspawnerFollow = (address, xsrf, show, ask, fail) => {
  const EVERY = 10_000; /* how often a page without a stream asks */
  const FIRST = 3_000; /* the hub answers at once, but a proxy may hold the answer back */
  const HELD = 30_000; /* after which it does */
  const SILENT = 45_000; /* the hub says something every 20 to 25 seconds */
  const LATER = 300_000;
  const SPREAD = 5_000; /* so that the pages of a hub that was restarted don't all come at once */
  let spread = SPREAD;
  let stream; /* aborts the open one */
  let silence;
  let next;
  let heard = false;
  let asked = 0; /* numbers questions and events in their order */
  let shown = 0; /* the number of what the page shows */

  const random = (most) => most * Math.random();
  const follows = () => stream !== undefined && heard;

  function close() {
    clearTimeout(silence);
    clearTimeout(next);
    stream?.abort();
    stream = undefined;
    heard = false;
  }

  /* Whatever was wrong, the page asks until it hears something; not at once if it has just heard
     something: after a restart of the hub, all pages would. */
  function lose(again) {
    const asks = !heard;
    close();
    if (document.hidden) return;
    next = setTimeout(open, again);
    if (asks) refresh();
  }

  /* An answer may take longer than what the hub says meanwhile, which is newer. */
  async function refresh() {
    if (document.hidden) return;
    const mine = ++asked;
    try {
      const states = await ask().finally(gpuspawnerReleased);
      if (states && mine > shown) take(states, mine, 0);
    } catch {
      if (mine > shown) fail();
    }
  }

  function take(states, number, within) {
    show(states, within); /* raises if the page is of another version of the hub */
    shown = number;
  }

  function listen(patience) {
    clearTimeout(silence);
    const due = Date.now() + patience;
    /* After a sleep the connection is gone, and no proxy holds anything back. */
    silence = setTimeout(() => lose(Date.now() > due + SPREAD ? random(spread) : LATER), patience);
  }

  function askUnlessHeard(mine) {
    if (mine === stream && !heard) refresh();
  }

  async function open() {
    close();
    if (document.hidden) return;
    const mine = (stream = new AbortController());
    const opened = Date.now();
    listen(HELD);
    setTimeout(askUnlessHeard, FIRST, mine);
    let again;
    try {
      const answer = await fetch(address, {
        headers: { Accept: "text/event-stream", "X-XSRFToken": xsrf },
        cache: "no-store",
        signal: mine.signal,
      });
      await read(gpuspawnerAnswered(answer).body.pipeThrough(new TextDecoderStream()).getReader(), mine);
    } catch (error) {
      if (error.message === "429") again = EVERY + random(LATER);
      else if (/^4/.test(error.message)) again = LATER; /* logged out, say */
    }
    const lasted = heard && Date.now() - opened > SPREAD;
    if (mine === stream) lose(again ?? (lasted ? 0 : SPREAD) + random(spread));
  }

  /* Reads events (WHATWG HTML, 9.2.6), as far as the hub uses them, until the stream ends. */
  async function read(chunks, mine) {
    let text = "";
    for (;;) {
      const { value, done } = await chunks.read();
      await gpuspawnerReleased();
      if (done || mine !== stream) return;
      listen(SILENT);
      const events = (text + value).split("\n\n");
      text = events.pop();
      for (const event of events) hear(fields(event));
      if (mine !== stream) return;
    }
  }

  function fields(event) {
    const lines = event.split("\n").map((line) => line.split(/: ?(.*)/s, 2));
    return Object.fromEntries(lines);
  }

  function hear({ event, data, retry }) {
    if (retry) spread = Number(retry);
    if (event === "again") open();
    else if (event === "full") lose(LATER);
    else if (data) {
      take(JSON.parse(data), ++asked, spread);
      heard = true;
    }
  }

  document.addEventListener("visibilitychange", () => (document.hidden ? close() : open()));
  /* Forms that were opened together ask at different times, so that each gets an answer. */
  const tick = () => setTimeout(() => {
    if (!follows()) refresh();
    tick();
  }, EVERY * (0.9 + random(0.2)));
  tick();
  open();
};
