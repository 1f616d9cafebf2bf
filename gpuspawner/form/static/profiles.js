/* Keeps the states of KubeSpawner's profiles current. The page also works without this script. */
"use strict";

(() => {
  const root = document.querySelector(".gpuspawner-profiles[data-states]");
  if (!root) return;
  const form = root.closest("form");
  const said = root.querySelector(".gpuspawner-answer");
  const colours = JSON.parse(root.dataset.colours);
  const REFRESH = 10_000;
  const SHOWN = "[data-gpuspawner-profile], #kubespawner-profiles-list";
  /* The hub's own script may be blocked, but the form's address has the token as well: the last one
     is the page's. */
  const xsrf = new URL(form.action).searchParams.getAll("_xsrf").at(-1) ?? "";

  /* KubeSpawner 7.0 gives its lists no ids, and takes the name of one while a value is written in. */
  const named = new Map([...document.querySelectorAll("select[name]")].map((it) => [it.name, it]));

  const write = (element, text) => {
    if (element.textContent !== text) element.textContent = text;
  };

  /* A template of the administrator's may show no description; then there is no state either. */
  function place({ profile: slug, state }) {
    const found = document.querySelector(`[data-gpuspawner-profile="${CSS.escape(slug)}"]`);
    if (found || !state) return found;
    const text = document.querySelector(`label[for="profile-item-${CSS.escape(slug)}"] > div:last-child`);
    if (!text) return null;
    const made = document.createElement("span");
    made.className = "gpuspawner-state";
    made.dataset.gpuspawnerProfile = slug;
    made.append(document.createElement("span"), "");
    text.append(made);
    return made;
  }

  function draw(row) {
    const shown = place(row);
    if (shown) {
      shown.hidden = !row.state;
      const [badge] = shown.children;
      badge.className = `badge text-bg-${colours[row.state] ?? "secondary"}`;
      write(badge, row.word);
      const detail = shown.lastChild;
      if (detail.data !== ` ${row.detail}`) detail.data = ` ${row.detail}`;
    }
    for (const { option, choice, label } of [...row.choices, ...row.images]) {
      const name = `profile-option-${row.profile}--${option}`;
      const select = document.getElementById(name) ?? named.get(name);
      const drawn = [...(select?.options ?? [])].find((it) => it.value === String(choice));
      if (drawn) write(drawn, label);
    }
  }

  const isShown = () => document.querySelector(SHOWN) !== null;

  async function states() {
    if (!isShown()) return null;
    const answer = await fetch(root.dataset.states, {
      headers: { Accept: "application/json", "X-XSRFToken": xsrf },
      signal: AbortSignal.timeout(REFRESH),
    });
    return gpuspawnerAnswered(answer).json();
  }

  function show({ profiles }) {
    if (!isShown()) return;
    profiles.forEach(draw);
    judge(profiles);
    const slugs = [...document.querySelectorAll("input[type=radio][name=profile]")].map((it) => it.value);
    const changed = slugs.length > 0 &&
      (slugs.length !== profiles.length || !profiles.every((it) => slugs.includes(it.profile)));
    write(said, changed ? root.dataset.changed : "");
    root.dataset.live = "true";
  }

  /* A refusal is of what was chosen, and goes once a state that was against it is so no more, unless
     what was chosen is wrong. */
  const isWrong = form.querySelector(".gpuspawner-refusal[data-wrong]") !== null;
  const refusal = gpuspawnerRefusal(form);
  let wasTrue = false;
  function judge(profiles) {
    const starts = (choices) => {
      const row = profiles.find((it) => it.profile === choices.get("profile"));
      const told = ({ state, word, detail }) => JSON.stringify([state, word, detail]);
      /* A choice's state is that with the other options at their defaults. */
      const chosen = row?.choices.filter(({ option, choice }) =>
        choices.get(`profile-option-${row.profile}--${option}`) === String(choice));
      const own = chosen?.filter((it) => told(it) !== told(row));
      return Boolean(row) && (own.length ? own : [row]).every((it) => gpuspawnerStarts(it.state));
    };
    refusal.keep(starts);
    const canStart = starts(new URLSearchParams(new FormData(form)));
    if (canStart && wasTrue) refusal.forget();
    wasTrue = !canStart && !isWrong;
  }
  form.addEventListener("input", ({ target }) => {
    if (!target.closest(".gpuspawner-wait")) refusal.forget();
  });
  gpuspawnerFollow(root.dataset.stream, xsrf, show, states, () => write(said, root.dataset.stale));
})();
