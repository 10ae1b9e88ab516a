// The top of the page (the answer, the figures) and its end (how it was made), and the order of all sections.

const VERDICTS = { single: "one run", faster: "faster", slower: "slower", no_difference: "no difference" };

function header(place) {
  const first = data.runs[0].summary;
  place.append(
    el("div", { class: "kicker" },
      el("span", { class: "verdict " + data.story.verdict }, VERDICTS[data.story.verdict]),
      el("span", {}, data.runs.map((run) => run.name).join(" against ")),
      el("span", {}, [first.machine.device, first.machine.cores ? first.machine.cores + " cores" : ""].filter(Boolean).join(", "))),
    el("h1", {}, data.story.headline),
    el("ul", { class: "story" }, ...data.story.details.map((text) => el("li", { class: text.startsWith("Careful") ? "careful" : "" }, text))),
    ...data.runs.flatMap((run) => run.notes.map((note) => el("p", { class: "note" }, `${run.name}: ${note}`))));
}

function figuresSection(place) {
  place.append(el("h2", { id: "figures-title" }, "Figures"));
  const cell = (value, source, style = "") => el("td", { class: style }, value, source && value !== "–" ? el("span", { class: "tag" }, source) : null);
  const many = data.runs.length > 1;
  const anyReplayed = data.runs.some((run) => isNumber(run.tokens_per_second.replayed));
  const columns = ["run", "tokens / s", ...(many ? ["speed-up"] : []), ...(anyReplayed ? ["tokens / s, wall-clock"] : []), "step, median", "imbalance", "loss, last", "prediction error"];
  const rows = data.runs.map((run, index) => {
    const s = run.summary;
    const other = run.comparison;
    const speed = index === 0 ? cell("1", "the base") : el("td", { class: "lead" }, ratio(other.ratio), " ", el("small", {}, `${other.low.toFixed(2)} to ${other.high.toFixed(2)}`), tag(other.source));
    const times = judged(run).slice(data.skip_steps).filter(isNumber).sort((a, b) => a - b);
    const imbalances = run.steps.imbalance_measured.slice(data.skip_steps).filter(isNumber);
    const imbalance = imbalances.length ? imbalances.reduce((a, b) => a + b, 0) / imbalances.length : null;
    return el("tr", {}, el("th", { scope: "row", style: `border-left:4px solid ${runColour(index)};padding-left:8px;white-space:normal;overflow-wrap:anywhere;min-width:7em` }, run.name),
      cell(grouped(run.tokens_per_second[run.source]), run.source, "lead"), ...(many ? [speed] : []),
      ...(anyReplayed ? [cell(grouped(run.tokens_per_second.measured), "measured")] : []),
      cell(duration(times[Math.floor((times.length - 1) / 2)]), run.source),
      imbalance === null ? cell(fixed(s.imbalance.micro_batch, 3), "predicted") : cell(fixed(imbalance, 3), "measured"),
      cell(fixed(s.loss.last, 4), "measured"), cell(s.prediction_error ? percent(s.prediction_error.mean) : "–", "mean"));
  });
  place.append(el("div", { class: "card scroll", tabindex: "0", role: "region", "aria-label": "figures of the runs" },
    el("table", { class: "big" }, el("thead", {}, el("tr", {}, ...columns.map((name) => el("th", { scope: "col" }, name)))), el("tbody", {}, ...rows))));
  if (many) place.append(el("p", {}, "Speed-up: total tokens over total step time against the first run; the range is a 90 % bootstrap interval over steps."));
}

function aboutSection(place) {
  place.append(el("h2", { id: "about-title" }, "How it was made"));
  const facts = [
    ["model", (s) => s.model], ["precision", (s) => s.precision], ["window", (s) => grouped(s.window) + " tokens"],
    ["parallel degrees", (s) => `dp ${s.parallel.dp} × pp ${s.parallel.pp} × cp ${s.parallel.cp}` + (s.parallel.virtual_stages > 1 ? `, ${s.parallel.virtual_stages} virtual stages` : "")],
    ["packer", (s) => s.packer], ["sharding", (s) => s.sharding], ["profile", (s) => s.profile ?? "–"], ["seed", (s) => String(s.seed)],
    ["steps", (s, run) => grouped(run.steps.step.length) + (data.skip_steps ? `, the first ${data.skip_steps} left out` : "")], ["tokens", (s) => grouped(s.tokens)],
    ["documents", (s) => `${grouped(s.documents.in)} in, ${grouped(s.documents.out)} trained, ${grouped(s.documents.truncated)} truncated, ${grouped(s.documents.split)} split, ${grouped(s.documents.held)} held`],
    ["loss", (s) => `${fixed(s.loss.first, 4)} to ${fixed(s.loss.last, 4)}`],
    ["machine", (s) => [s.machine.device, s.machine.cores ? s.machine.cores + " cores" : ""].filter(Boolean).join(", ") || "–"],
    ["corpus", (s, run) => run.corpus.path ? `${run.corpus.path} (${grouped(run.corpus.documents)} documents, ${grouped(run.corpus.tokens)} tokens)` : "–"],
    ["date", (s) => s.date || "–"], ["command", (s) => s.command || "–"], ["folder", (s, run) => run.folder],
  ];
  const table = el("table", { class: "facts" },
    el("thead", {}, el("tr", {}, el("th", {}, ""), ...data.runs.map((run) => el("th", { scope: "col", style: "white-space:normal;overflow-wrap:anywhere" }, run.name)))),
    el("tbody", {}, ...facts.map(([name, get]) => el("tr", {}, el("th", { scope: "row" }, name), ...data.runs.map((run) => el("td", { class: "text" }, String(get(run.summary, run) ?? "–")))))));
  place.append(el("div", { class: "card scroll", tabindex: "0", role: "region", "aria-label": "what was run" }, table));
  const left = data.left_out;
  if (left.timeline_steps > 0) {
    place.append(el("p", { id: "left-out" }, `To keep this page small, timelines of ${grouped(left.timeline_steps_shown)} steps are in it (median, slowest, first, last and some between) and ${grouped(left.timeline_steps)} are left out; all other figures are of every step. The run folders have all.`));
  }
  place.append(el("p", {}, `Made ${data.date} by: ${data.command}`));
}

header(document.getElementById("top"));
figuresSection(document.getElementById("figures"));
timelineSection(document.getElementById("timeline"));
waitsSection(document.getElementById("waits"));
runPlacements(document.getElementById("placement"));
runZones(document.getElementById("zones"));
stepsSection(document.getElementById("steps"));
documentsSection(document.getElementById("documents"));
aboutSection(document.getElementById("about"));
document.documentElement.dataset.ready = "true";
