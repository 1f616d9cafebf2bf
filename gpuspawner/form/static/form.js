/* Keeps the spawn form current while it is open. The form also works without this script. */
"use strict";

(() => {
  const root = document.querySelector(".gpuspawner[data-states]");
  if (!root) return;
  const form = root.closest("form");
  const said = root.querySelector(".gpuspawner-answer");
  const REFRESH = 10_000;
  const PAUSE = 300;
  const OLD = 2_000; /* for how many milliseconds an answer may stand that may have changed */
  /* The hub's own script may be blocked, but the form's address has the token as well. The hub adds
     it to that of the page, which may have an old one, and reads the last. */
  const xsrf = new URL(form.action).searchParams.getAll("_xsrf").at(-1) ?? "";
  let known = new Map();
  let queue; /* what a queue of Kueue says, in a hub that has one */

  async function ask(address, options) {
    const answer = await fetch(address, {
      method: options ? "POST" : "GET",
      headers: { Accept: "application/json", "Content-Type": "application/json", "X-XSRFToken": xsrf },
      body: options && JSON.stringify(options),
      signal: AbortSignal.timeout(REFRESH),
    });
    return gpuspawnerAnswered(answer).json();
  }

  const cards = () => [...root.querySelectorAll("[data-accelerator]")];
  const chosenCard = () => cards().find((card) => card.querySelector("input[type=radio]").checked);

  /* The fields of the chosen accelerator, and the fields below the cards. */
  function chosenFields() {
    const card = chosenCard();
    return [...root.querySelectorAll("select[data-option]")].filter((select) => {
      const own = select.closest("[data-accelerator]");
      return !own || own === card;
    });
  }

  /* The lamps repeat the figures, which screen readers read. */
  function light(lamps, gpus) {
    const most = Number(lamps.dataset.most);
    const total = gpus && gpus.total <= most ? gpus.total : 0;
    const lit = Array.from({ length: total }, (_, at) => at < gpus.free);
    lamps.replaceChildren(
      ...lit.map((on) => {
        const lamp = document.createElement("i");
        if (on) lamp.className = "gpuspawner-lit";
        return lamp;
      }),
    );
  }

  const write = (element, text) => {
    if (element.textContent !== text) element.textContent = text;
  };

  function draw(card, row) {
    card.classList.replace(`gpuspawner-${card.dataset.state}`, `gpuspawner-${row.state}`);
    card.dataset.state = row.state;
    card.querySelector("use").setAttribute("href", `#gpuspawner-icon-${row.state}`);
    write(card.querySelector(".gpuspawner-word span"), row.word);
    write(card.querySelector(".gpuspawner-detail"), row.detail);
    light(card.querySelector(".gpuspawner-lamps"), row.gpus);
    const radio = card.querySelector("input[type=radio]");
    radio.disabled = row.state === "absent" && !radio.checked;
  }

  const holds = (machine, size) =>
    machine.gpus >= size.gpus && machine.memory >= size.memory && machine.cpu >= size.cpu;

  /* The values that are written in, which take precedence over the lists beside them. */
  const writtenIn = () => [...root.querySelectorAll("input[data-instead-of]")].filter((it) => it.value.trim());

  /* The size that is chosen; what isn't a number of a list counts as 0. */
  function wanted() {
    const size = { gpus: 0, memory: 0, cpu: 0 };
    const written = writtenIn().map((input) => input.dataset.insteadOf);
    for (const select of chosenFields().filter((it) => !written.includes(it.dataset.option))) {
      const amount = select.selectedOptions[0]?.dataset.amount;
      if (amount !== undefined) size[select.dataset.option] = Number(amount);
    }
    return size;
  }

  /* Disable choices that no machine has together with the other choices. */
  function mark() {
    const card = chosenCard();
    const row = card && known.get(card.dataset.accelerator);
    const fields = chosenFields();
    const size = wanted();
    for (const select of fields) markField(select, size, row);
    const images = fields.find((select) => select.dataset.option === "image");
    if (images && row) markImages(images, row.images);
  }

  /* Say which images each machine has already on which the server could start now. A narrow field
     cuts the text of the chosen one. */
  function markImages(select, ready) {
    for (const option of select.options) {
      const told = ready.includes(option.value) ? root.dataset.ready : "{choice}";
      write(option, told.replace("{choice}", () => option.dataset.label));
    }
    const hint = ready.includes(select.value) ? root.dataset.here : "";
    write(select.parentElement.querySelector(".gpuspawner-hint"), hint);
  }

  function markField(select, size, row) {
    const name = select.dataset.option;
    const machines = row?.machines;
    const left = (name === "gpus" ? row?.left : null) ?? Infinity;
    const all = [...select.options];
    if (all.some((option) => option.dataset.amount === undefined)) return;
    const fits = (some, amount) => some.some((it) => holds(it, { ...size, [name]: amount }));
    const isFree = (amount) => !machines || fits(machines.free, amount);
    const amounts = all.map((option) => Number(option.dataset.amount));
    /* If no choice of this field is free, another field is the problem. */
    const tells = name === "gpus" || amounts.some(isFree);
    let greyed = false;
    all.forEach((option, at) => {
      const never = Boolean(machines?.whole) && !fits(machines.whole, amounts[at]);
      const busy = tells && !isFree(amounts[at]);
      option.disabled = never && !option.selected;
      greyed ||= option.disabled;
      const mark = never ? "never" : amounts[at] > left ? "over" : busy ? "busy" : "";
      const told = mark ? root.dataset[mark] : "{choice}";
      write(option, told.replace("{choice}", () => option.dataset.label));
    });
    write(select.parentElement.querySelector(".gpuspawner-hint"), greyed ? root.dataset.why : "");
  }

  function options() {
    const card = chosenCard();
    const chosen = { accelerator: card?.dataset.accelerator || null };
    for (const select of chosenFields()) {
      const numeric = ["gpus", "cpu"].includes(select.dataset.option);
      chosen[select.dataset.option] = numeric ? Number(select.value) : select.value;
    }
    for (const input of writtenIn()) chosen[input.dataset.insteadOf] = input.value.trim();
    return chosen;
  }

  /* Shows only the answer to the last question, and doesn't repeat a refusal that the page shows
     above. A hidden page asks nothing until it is visible again. */
  let question = 0;
  const refusal = gpuspawnerRefusal(form);
  const sent = JSON.stringify(options());
  let answered = "";
  let asked = "";
  let spread = 0;
  let later;
  async function decide() {
    clearTimeout(later);
    later = undefined;
    if (document.hidden) return;
    const mine = ++question;
    const asking = options();
    const outlooks = { start: outlook("start"), other: outlook("other") };
    asked = outlook();
    try {
      const answer = await ask(root.dataset.decision, asking).finally(gpuspawnerReleased);
      if (mine !== question) return;
      answered = JSON.stringify(asking);
      asked = outlooks[answer.decision] ?? outlooks.other;
      if (said.dataset.decision === "refuse" && answer.decision !== "refuse") refusal.forget();
      said.dataset.decision = answer.decision;
      said.dataset.queue = answer.queue ?? "";
      write(said, refusal.isShown() && answer.decision === "refuse" ? "" : answer.message);
      tellQueue();
      decideAgain(); /* the states may have changed since the question */
    } catch (error) {
      /* If too many users ask, the last answer about the same options stays. */
      const stands = error.message === "429" && answered === JSON.stringify(asking);
      if (mine === question && !stands) write(said, "");
      if (mine === question) later ??= setTimeout(decide, REFRESH * (1 + Math.random()));
    }
  }

  /* What an answer depends on: the choices, and what is known of them. A refusal may tell figures. */
  function outlook(decision = said.dataset.decision) {
    const row = known.get(chosenCard()?.dataset.accelerator);
    const { state, left, machines, gpus } = row ?? {};
    const size = wanted();
    const fits = machines && [machines.free, machines.whole].map((some) => some?.some((it) => holds(it, size)));
    const figures = decision === "start" || [gpus, machines];
    return JSON.stringify([options(), state, left, fits, figures, queue?.version]);
  }

  /* Who waits in a queue changes often. So the hub tells it, and nobody asks. */
  function tellQueue() {
    if (said.textContent && queue && said.dataset.queue === queue.name) write(said, queue.message);
  }

  /* Ask if the answer may have changed, within `spread` milliseconds: other pages ask too. */
  function decideAgain() {
    if (asked === outlook()) return;
    if (spread > OLD) write(said, "");
    later ??= setTimeout(decide, spread * Math.random());
  }

  /* The last answer, which this replaces, is asked for again as soon as the page is current. */
  function warn(text) {
    asked = "";
    write(said, text);
  }

  const states = () => ask(root.dataset.states);

  function show({ accelerators, queue: now }, within) {
    spread = within;
    queue = now;
    if (within === 0) asked = ""; /* without a stream, nothing else tells that an answer is old */
    known = new Map(accelerators.map((row) => [row.accelerator ?? "", row]));
    const drawn = cards();
    for (const card of drawn) {
      const row = known.get(card.dataset.accelerator);
      if (row) draw(card, row);
    }
    mark();
    refusal.keep((choices) => gpuspawnerStarts(known.get(choices.get("accelerator") ?? "")?.state));
    if (drawn.length === known.size && drawn.every((card) => known.has(card.dataset.accelerator))) {
      tellQueue();
      decideAgain();
    } else {
      warn(root.dataset.changed);
    }
    root.dataset.live = "true";
  }

  root.addEventListener("input", () => {
    if (JSON.stringify(options()) !== sent) refusal.forget();
    mark();
    clearTimeout(later);
    later = setTimeout(decide, PAUSE);
  });
  /* What was answered before the page was hidden is old. */
  document.addEventListener("visibilitychange", () => {
    asked = "";
  });
  gpuspawnerFollow(root.dataset.stream, xsrf, show, states, () => warn(root.dataset.stale));
})();
