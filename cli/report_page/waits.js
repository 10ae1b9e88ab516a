// The section of timelines (which step, which runs), and what every rank's time went to over the whole run.

const SOURCES = ["measured", "replayed", "predicted"];
const available = (run, source) => (run.timelines[source] ?? []).length > 0;

function pressed(label, on, act) {
  return el("button", { type: "button", "aria-pressed": String(on), onclick: act }, label);
}

function timelineSection(place) {
  place.append(el("h2", { id: "timeline-title" }, "What every rank did"));
  const sources = SOURCES.filter((source) => data.runs.some((run) => available(run, source)));
  if (sources.length === 0) {
    place.append(el("p", { class: "none" }, "These runs have no timeline."));
    return;
  }
  place.append(el("p", {}, "All rows share one time scale; 0 is the step's begin. At the right, the share of the step that the rank worked."));
  const first = data.runs.some((run) => run.source === "replayed") && sources.includes("replayed") ? "replayed" : sources[0];
  const state = { runs: new Set(data.runs.keys()), sources: new Set([first]), step: "median" };
  const view = {
    from: 0, to: 1, colour: "kind", longest: 1,
    zoom(from, to) {
      const least = view.longest * 1e-5;
      if (to - from < least) { const middle = (from + to) / 2; [from, to] = [middle - least / 2, middle + least / 2]; }
      view.from = Math.max(0, from);
      view.to = Math.min(view.longest, to);
      panels.forEach((panel) => panel.draw());
    },
    scale(factor, around) { view.zoom(around - (around - view.from) * factor, around + (view.to - around) * factor); },
    reset() { view.zoom(0, view.longest); },
  };
  let panels = [];
  const lanes = el("div", {});
  const controls = el("div", { class: "controls" });
  const steps = [...new Set(data.runs.flatMap((run) => Object.values(run.timelines).flatMap((list) => list.map((s) => s.step))))].sort((a, b) => a - b);

  // The embedded step of a run that is nearest its median, or slowest, in the figure that the run is judged by.
  function stepOf(run, list) {
    if (!["median", "slowest"].includes(state.step)) return list.find((s) => String(s.step) === state.step);
    const all = run.steps.step.map((step, i) => [run.steps[run.source][i], step]).slice(data.skip_steps).filter(([time]) => isNumber(time)).sort((a, b) => a[0] - b[0]);
    const target = state.step === "slowest" ? all[all.length - 1][0] : all[Math.floor((all.length - 1) / 2)][0];
    const time = new Map(all.map(([seconds, step]) => [step, seconds]));
    const known = list.filter((s) => time.has(s.step));
    return known.reduce((best, s) => !best || Math.abs(time.get(s.step) - target) < Math.abs(time.get(best.step) - target) ? s : best, null) ?? list[0];
  }

  function rebuild() {
    panels = [];
    for (const source of SOURCES) {
      if (!state.sources.has(source)) continue;
      data.runs.forEach((run, index) => {
        if (!state.runs.has(index) || !available(run, source)) return;
        const step = stepOf(run, run.timelines[source]);
        if (step) panels.push(timelinePanel(view, run, source, step));
      });
    }
    view.longest = Math.max(1, ...panels.map((panel) => panel.step.duration));
    lanes.replaceChildren(...panels.map((panel) => panel.node));
    if (panels.length === 0) lanes.append(el("p", { class: "none" }, "No run that is chosen has a timeline of this step."));
    view.reset();
    buildControls();
  }

  function toggle(set, value, others) {
    if (set.has(value) && set.size > 1) set.delete(value); else set.add(value);
    rebuild();
    others?.focus();
  }

  function buildControls() {
    const focused = controls.contains(document.activeElement) ? document.activeElement.textContent : null;
    const select = (label, options, value, act) => el("label", {}, label + " ", el("select", { onchange: (event) => act(event.target.value) },
      ...options.map(([key, text]) => el("option", { value: key, selected: key === value ? "" : false }, text))));
    controls.replaceChildren(
      ...(data.runs.length > 1 ? [el("fieldset", {}, el("legend", {}, "Runs"), ...data.runs.map((run, index) => pressed(run.name, state.runs.has(index), () => toggle(state.runs, index))))] : []),
      el("fieldset", {}, el("legend", {}, "Source"), ...sources.map((source) => pressed(source, state.sources.has(source), () => toggle(state.sources, source)))),
      select("Step", [["median", "median of each run"], ["slowest", "slowest of each run"], ...steps.map((step) => [String(step), String(step)])], state.step, (value) => { state.step = value; rebuild(); }),
      select("Colour", [["kind", "F and B"], ["micro_batch", "micro-batch"], ["stage", "stage"]], view.colour, (value) => { view.colour = value; panels.forEach((panel) => panel.draw()); }),
      el("fieldset", {}, el("legend", {}, "Zoom"),
        el("button", { type: "button", "aria-label": "zoom in", onclick: () => view.scale(0.6, (view.from + view.to) / 2) }, "+"),
        el("button", { type: "button", "aria-label": "zoom out", onclick: () => view.scale(1 / 0.6, (view.from + view.to) / 2) }, "−"),
        el("button", { type: "button", onclick: () => view.reset() }, "Whole step")));
    if (focused) [...controls.querySelectorAll("button")].find((button) => button.textContent === focused)?.focus();
  }

  const swatches = el("div", {});
  const drawLegend = () => {
    const used = new Set(data.runs.flatMap((run) => Object.values(run.timelines).flatMap((list) => list.length ? spansOf(list[0]).flat().map((span) => span?.kind) : [])));
    const names = ["F", "B", "GATHER_KV", "REDUCE_KV", "EXCHANGE_TP", "REDUCE_GRAD", "REDUCE_TIED", "UNSHARD", "RESHARD", "AWAIT", "REDUCE_NORM", "OPTIMIZER", "LOAD", "CONTROL", "CHECKPOINT"];
    const pipeline = ["SEND_F", "RECV_F", "SEND_B", "RECV_B"].some((name) => used.has(KIND[name]));
    swatches.replaceChildren(legend([...names.filter((name) => used.has(KIND[name])).map((name) => ({ name, colour: kindColour(KIND[name]) })),
      ...(pipeline ? [{ name: "send, receive", colour: kindColour(KIND.SEND_F) }] : []),
      { name: "waits for a rank", style: "hatch" },
      ...(data.runs.some((run) => run.source === "replayed") ? [{ name: "waits for a core", style: "dots" }] : [])]));
  };
  redraws.push(() => { panels.forEach((panel) => panel.draw()); drawLegend(); });
  drawLegend();

  const summaryTable = () => ({
    columns: ["run", "source", "step", "rank", "work s", "transfer s", "waits for ranks s", "waits for a core s", "step s"],
    rows: panels.flatMap((panel) => panel.works.map((work, rank) => {
      const spans = panel.ranks[rank] ?? [];
      const sum = (get) => (spans.reduce((total, span) => total + get(span), 0) * TICK).toFixed(6);
      return [panel.run.name, panel.source, panel.step.step, rank, (work * TICK).toFixed(6), sum((s) => isCompute(s.kind) ? 0 : s.busy), sum((s) => s.ownWait), sum((s) => s.ownLease), (panel.step.duration * TICK).toFixed(6)];
    })),
  });
  const spanTable = () => ({
    columns: ["run", "source", "step", ...FIELDS.map((name) => ({ begin: "begin_seconds", length: "seconds", wait: "wait_seconds", lease: "lease_seconds" })[name] ?? name)],
    rows: panels.flatMap((panel) => panel.ranks.flat().filter(Boolean).map((span) => [panel.run.name, panel.source, panel.step.step,
      ...FIELDS.map((name) => name === "kind" ? data.kind_names[span.kind] : name === "axis" ? data.axis_names[span.axis] : ["begin", "length", "wait", "lease"].includes(name) ? (span[name] * TICK).toFixed(7) : span[name])])),
  });
  const every = tableBelow(spanTable);
  every.firstChild.textContent = "Table of every action shown";
  const byRank = tableBelow(summaryTable);
  byRank.firstChild.textContent = "Table by rank";
  place.append(el("div", { class: "card" }, controls, lanes, swatches,
    el("p", { class: "keys" }, "Drag over a range to zoom, double-click for the whole step, Ctrl + wheel; with the keyboard: arrows, +, −, 0."), byRank, every));
  rebuild();
}

// [light, dark, hatched]
const CAUSE_STYLE = {
  "forward": ["#3b7dd8", "#4f8fe6"], "backward": ["#e08a2e", "#e5953f"], "other work": ["#55606d", "#b4becb"], "transfer": ["#1f9e9e", "#3fc0c0"],
  "wait for pipeline": ["#8fcaca", "#2f6a6a", true], "wait for CP group": ["#bfa0e6", "#5f4290", true],
  "wait for gradients": ["#95cfae", "#2c6b48", true], "wait for control": ["#cfb7a8", "#6b5344", true],
  "wait for a core": ["#e6cf8a", "#6f5c22", true], "idle": ["#e4e8ec", "#2a323a"],
};
const causeColour = (name) => shade(CAUSE_STYLE[name][0], CAUSE_STYLE[name][1]);

function causeChart(run, source, longest, shown) {
  const steps = Math.max(1, run.steps.step.length - data.skip_steps);
  const rows = run.causes[source].map((seconds) => seconds.map((value) => value / steps));
  const bar = rows.length <= 16 ? 22 : rows.length <= 64 ? 12 : 6;
  const height = rows.length * bar + 42;
  return figure({
    id: undefined, height, title: `${run.name} · ${source}`, about: `Mean over ${steps} steps.`,
    draw: (width) => {
      const { node, sx, area } = frame(width, height, { x: [0, longest], y: [0, 1], yTicks: [], xFormat: axisDuration, yFormat: String, xLabel: "time a step", xTicks: ticks(0, longest, width < 420 ? 3 : 5) });
      const pattern = svg("pattern", { id: "stripes", width: 6, height: 6, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" }, svg("rect", { width: 2, height: 6, fill: shade("#ffffff", "#000000"), opacity: 0.45 }));
      node.append(svg("defs", {}, pattern));
      const stops = rows.map((seconds, rank) => {
        const y = area.top + rank * bar;
        let begin = 0;
        if (bar >= 12 || rank % 4 === 0) node.append(svg("text", { class: "row-label", x: area.left - 7, y: y + bar / 2 + 4, "text-anchor": "end" }, width < 420 ? rank : "rank " + rank));
        for (const index of shown) {
          const name = data.cause_names[index];
          if (seconds[index] <= 0) continue;
          const box = { class: "cause", x: sx(begin), width: Math.max(0, sx(begin + seconds[index]) - sx(begin)), y: y + 1, height: bar - 3 };
          node.append(svg("rect", { ...box, fill: causeColour(name) }));
          if (CAUSE_STYLE[name][2]) node.append(svg("rect", { ...box, class: "stripe", fill: "url(#stripes)" }));
          begin += seconds[index];
        }
        const total = seconds.reduce((a, b) => a + b, 0);
        return { x: sx(begin / 2), y: y + bar / 2, title: `${run.name}, rank ${rank} (${coordinate(run.dims, rank)})`,
                 lines: shown.filter((index) => seconds[index] > 0).map((index) => [data.cause_names[index], `${duration(seconds[index])} · ${percent(seconds[index] / total)}`]) };
      });
      return { node, stops, direction: "y" };
    },
    table: () => ({ columns: ["rank", ...shown.map((index) => data.cause_names[index] + " s")], rows: rows.map((seconds, rank) => [rank, ...shown.map((index) => seconds[index].toFixed(6))]) }),
  });
}

function waitsSection(place) {
  place.append(el("h2", { id: "waits-title" }, "What each rank's time went to"));
  const sources = SOURCES.filter((source) => data.runs.some((run) => run.causes[source]));
  if (sources.length === 0) {
    place.append(el("p", { class: "none" }, "These runs have no timeline."));
    return;
  }
  place.append(el("p", {}, "Work in full colour, waits striped by what was waited for. Each rank's bar is as long as the step."));
  let source = data.runs.every((run) => run.causes.replayed) ? "replayed" : sources[0];
  const grid = el("div", { class: "grid" });
  const swatches = el("div", {});
  const controls = el("div", { class: "controls", style: "margin-top:10px" });
  const rebuild = () => {
    const runs = data.runs.filter((run) => run.causes[source]);
    const perStep = (run) => Math.max(1, run.steps.step.length - data.skip_steps);
    const longest = Math.max(...runs.flatMap((run) => run.causes[source].map((seconds) => seconds.reduce((a, b) => a + b, 0) / perStep(run))), 1e-9);
    const shown = data.cause_names.map((_, index) => index).filter((index) => runs.some((run) => run.causes[source].some((seconds) => seconds[index] > 0)));
    grid.replaceChildren(...runs.map((run) => causeChart(run, source, longest, shown)));
    swatches.replaceChildren(legend(shown.map((index) => ({ name: data.cause_names[index], colour: causeColour(data.cause_names[index]) }))));
    controls.replaceChildren(el("fieldset", {}, el("legend", {}, "Source"), ...sources.map((name) => pressed(name, name === source, () => { source = name; rebuild(); }))));
  };
  redraws.push(rebuild);
  place.append(sources.length > 1 ? controls : "", grid, swatches);
  rebuild();
}
