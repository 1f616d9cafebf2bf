/* Keeps the place in line current, and lets the hub know that a page is open. The page also works
   without this script. */
"use strict";

(() => {
  const root = document.querySelector(".gpuspawner[data-progress]");
  if (!root) return;
  const said = root.querySelector(".gpuspawner-said");
  const IN_LINE = 1; /* how far the bar is that the hub's own page hides meanwhile */
  const SILENT = 45_000; /* the hub says something every 30 seconds; a proxy may hide its end */
  const AGAIN = 5_000;
  const MOST = 60; /* after which the start has ended, or its owner has to log in */
  let events;
  let silence;
  let failures = 0;
  let isOver = false;

  function follow() {
    if (isOver) return;
    events?.close();
    events = new EventSource(root.dataset.progress);
    events.onmessage = show;
    events.onerror = followAgain;
    listen();
  }

  function listen() {
    clearTimeout(silence);
    silence = setTimeout(follow, SILENT);
  }

  /* The browser itself goes on after a lost connection, but not after an HTTP error, which the proxy
     answers while the hub restarts. */
  function followAgain() {
    if (events.readyState !== EventSource.CLOSED) return;
    clearTimeout(silence);
    failures += 1;
    if (failures < MOST) setTimeout(follow, AGAIN);
    else if (!isOver) location.reload();
  }

  async function show(event) {
    failures = 0;
    listen();
    await gpuspawnerReleased();
    if (isOver) return;
    const { message, progress } = JSON.parse(event.data);
    if (progress > IN_LINE) {
      isOver = true;
      events.close();
      location.replace(root.dataset.back);
    } else if (progress === IN_LINE && said.textContent !== message) {
      said.textContent = message;
    }
  }

  /* The hub ends the start before it answers; the page must not go elsewhere then. */
  root.closest("form").addEventListener("submit", () => {
    isOver = true;
    events.close();
  });
  follow();
})();
