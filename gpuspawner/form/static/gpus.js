/* Keeps the page of GPUs current while it is visible: the hub says when something has changed, and
   the page asks for its parts again. It also works without this script. */
"use strict";

(() => {
  const root = document.querySelector(".gpuspawner-gpus[data-stream]");
  if (!root) return;
  const REST = 500; /* milliseconds between two questions, whatever changes */
  const AGAIN = 10_000; /* after one that failed: the hub tells no page twice of a change */
  const LONGEST = 30_000; /* for an answer; the hub itself holds one back for up to 8 s */
  const CALM = 1_500; /* after the pointer has moved over the servers, perhaps to press a button */
  const said = root.querySelector("[data-stale] [role=status]");
  let moved = -CALM;
  let known;
  let asking;
  let isOld = false;

  const parts = (of) => [...of.querySelectorAll("[data-part]")];
  const same = (element) => element.getAttribute("formaction") ?? element.getAttribute("href");

  /* A part that looks the same stays, with what is selected in it; the focus stays on its button. */
  function replace(part, made) {
    if (part.innerHTML === made.innerHTML) return;
    const focused = part.contains(document.activeElement) ? document.activeElement : null;
    const scrolled = [...part.querySelectorAll(".gpus-wide")].map((wide) => wide.scrollLeft);
    part.innerHTML = made.innerHTML;
    part.querySelectorAll(".gpus-wide").forEach((wide, at) => { wide.scrollLeft = scrolled[at]; });
    if (!focused) return;
    const all = [...part.querySelectorAll("a, button, .gpus-wide")];
    all.find((it) => it.tagName === focused.tagName && same(it) === same(focused))?.focus();
  }

  /* Rows that move under a pointer let it press the button of another server. One that rests for
     longer may have been left there. */
  async function settled() {
    while (performance.now() < moved + CALM) await pause(CALM);
    await gpuspawnerReleased();
  }

  /* After a logout, the hub's answer leads to the login, which this page must not begin. */
  async function ask() {
    const answer = await fetch(root.dataset.figures + location.search, {
      cache: "no-store",
      redirect: "manual",
      signal: AbortSignal.timeout(LONGEST),
    });
    if (!answer.ok) throw new Error(`${answer.status}`);
    const text = await answer.text();
    await settled();
    const made = new Map(
      parts(new DOMParser().parseFromString(text, "text/html")).map((it) => [it.dataset.part, it]),
    );
    for (const part of parts(root)) {
      const its = made.get(part.dataset.part);
      if (its) replace(part, its);
      else part.remove(); /* somebody may not see it any more */
    }
    root.dataset.live = "";
    said.textContent = "";
    root.querySelector(".gpuspawner-login")?.remove(); /* somebody has logged in again */
  }

  const pause = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

  /* One question at a time, within `spread` milliseconds: all open pages hear of a change at once. What
     changes meanwhile is asked for after it. */
  function renew(spread) {
    isOld = true;
    asking ??= (async () => {
      while (isOld) {
        await pause(spread * Math.random());
        isOld = false;
        let rest = REST;
        await ask().catch(async () => {
          rest = AGAIN;
          known = undefined; /* a hidden page asks nothing; it does so once it hears something */
          isOld = !document.hidden;
          await settled();
          said.textContent = said.parentElement.dataset.stale;
        });
        await pause(rest);
      }
      asking = undefined;
    })();
  }

  function show({ is }, within) {
    if (is !== known) renew(within);
    known = is;
  }

  root.addEventListener("pointermove", ({ target }) => {
    if (target.closest("[data-part=servers]")) moved = performance.now();
  });
  gpuspawnerFollow(root.dataset.stream, root.dataset.xsrf, show, async () => renew(0), () => undefined);
})();
