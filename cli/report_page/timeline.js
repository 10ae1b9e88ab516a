// What every rank did in one step, runs and sources below one another on one time scale.

const FIELDS = ["rank", "kind", "stage", "micro_batch", "layer", "begin", "length", "wait", "lease", "bytes", "peer", "axis"];
const TICK = 1e-7;  // seconds
const KIND = Object.fromEntries(data.kind_names.map((name, index) => [name, index]));
const isCompute = (kind) => [KIND.F, KIND.B, KIND.LOAD, KIND.OPTIMIZER, KIND.CHECKPOINT].includes(kind);

// [light, dark]: F cold, B warm, what belongs to the cp group purple, gradients green, the pipeline teal.
const KIND_COLOURS = {
  LOAD: ["#7b8794", "#8e9aa8"], F: ["#3b7dd8", "#4f8fe6"], B: ["#e08a2e", "#e5953f"], OPTIMIZER: ["#55606d", "#b4becb"],
  SEND_F: ["#1f9e9e", "#3fc0c0"], RECV_F: ["#1f9e9e", "#3fc0c0"], SEND_B: ["#1f9e9e", "#3fc0c0"], RECV_B: ["#1f9e9e", "#3fc0c0"],
  GATHER_KV: ["#7a3fc0", "#b184f0"], REDUCE_KV: ["#b0389a", "#e57fd0"], REDUCE_GRAD: ["#1f8a4c", "#58c988"],
  EXCHANGE_TP: ["#b8860b", "#e2c16a"], UNSHARD: ["#3a7d44", "#86bf8f"], RESHARD: ["#2f6d6d", "#7fb3b3"], AWAIT: ["#777777", "#bbbbbb"], REDUCE_TIED: ["#4f9e2f", "#93d673"], REDUCE_NORM: ["#6b8e23", "#b3cf6a"], CONTROL: ["#8c6d5a", "#c4a48f"], CHECKPOINT: ["#8c5a2b", "#cf9a66"],
};
const kindColour = (kind) => shade(...(KIND_COLOURS[data.kind_names[kind]] ?? ["#777", "#aaa"]));
const mixed = (colour, amount) => {  // towards white or black, so that neighbouring micro-batches differ
  const towards = dark.matches ? 0 : 255;
  const channels = [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16));
  return `rgb(${channels.map((c) => Math.round(c + (towards - c) * amount)).join(",")})`;
};

// Dark or light ink, whichever a reader sees better on the colour.
function readableOn(colour) {
  const channels = colour.startsWith("#") ? [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16)) : colour.match(/\d+/g).map(Number);
  return 0.299 * channels[0] + 0.587 * channels[1] + 0.114 * channels[2] > 115 ? "#10151b" : "#f4f7fa";
}

function spanColour(span, mode) {
  if (!isCompute(span.kind) || span.micro_batch < 0) return kindColour(span.kind);
  if (mode === "stage") return mixed(domainColour(Math.max(0, span.stage)), span.kind === KIND.B ? 0.32 : 0);
  if (mode === "micro_batch") return mixed(domainColour(span.micro_batch), span.kind === KIND.B ? 0.32 : 0);
  return mixed(kindColour(span.kind), [0, 0.3, 0.15, 0.42][span.micro_batch % 4]);
}

// The flat list of a step as spans by rank, with their depth and what is theirs alone.
function spansOf(step) {
  if (step.ranks) return step.ranks;
  const ranks = [];
  for (let at = 0; at < step.spans.length; at += FIELDS.length) {
    const span = Object.fromEntries(FIELDS.map((name, i) => [name, step.spans[at + i]]));
    span.end = span.begin + span.length;
    (ranks[span.rank] ??= []).push(span);
  }
  for (const spans of ranks) {
    const open = [];
    for (const span of spans ?? []) {
      while (open.length && open[open.length - 1].end <= span.begin) open.pop();
      span.depth = open.length;
      span.ownWait = span.wait;
      span.ownLease = span.lease;
      span.busy = span.length;
      const outer = open[open.length - 1];
      if (outer) {
        outer.ownWait = Math.max(0, outer.ownWait - span.wait);
        outer.ownLease = Math.max(0, outer.ownLease - span.lease);
        outer.busy -= span.length;
      }
      open.push(span);
    }
    for (const span of spans ?? []) span.busy = Math.max(0, span.busy - span.ownWait - span.ownLease);
  }
  step.ranks = ranks;
  return ranks;
}

const workOf = (spans) => (spans ?? []).reduce((sum, span) => sum + (isCompute(span.kind) ? span.busy : 0), 0);

function spanTip(run, span) {
  const at = (ticks) => duration(ticks * TICK);
  const lines = [["begins", at(span.begin)], ["lasts", at(span.length)]];
  if (span.wait > 0) lines.push(["waits for ranks", at(span.wait)]);
  if (span.lease > 0) lines.push(["waits for a core", at(span.lease)]);
  if (span.length !== span.busy) lines.push(["busy itself", at(span.busy)]);
  if (span.stage >= 0) lines.push(["stage", span.stage]);
  if (span.micro_batch >= 0) lines.push(["micro-batch", span.micro_batch]);
  if (span.layer >= 0) lines.push(["layer", span.layer]);
  if (span.bytes > 0) lines.push(["sends", bytes(span.bytes)]);
  if (span.peer >= 0) lines.push(["with rank", span.peer]);
  if (span.axis > 0) lines.push(["group", data.axis_names[span.axis]]);
  return [`${data.kind_names[span.kind]} · rank ${span.rank} (${coordinate(run.dims, span.rank)})`, lines];
}

function hatch(context, dots) {
  const size = dots ? 4 : 6;
  const tile = document.createElement("canvas");
  tile.width = tile.height = size;
  const ink = tile.getContext("2d");
  const style = getComputedStyle(document.documentElement);
  ink.fillStyle = style.getPropertyValue("--wait");
  ink.fillRect(0, 0, size, size);
  ink.strokeStyle = ink.fillStyle = style.getPropertyValue("--wait-line");
  if (dots) ink.fillRect(1, 1, 1.4, 1.4);
  else for (const shift of [-size, 0, size]) { ink.beginPath(); ink.moveTo(shift, size); ink.lineTo(shift + size, 0); ink.stroke(); }
  return context.createPattern(tile, "repeat");
}

// One run and source: a canvas with a row a rank.
function timelinePanel(view, run, source, step) {
  const ranks = spansOf(step);
  const count = run.dims.dp * run.dims.pp * run.dims.cp;
  const row = count <= 16 ? 24 : count <= 64 ? 14 : 8;
  const height = count * row + 24;
  const canvas = el("canvas", { tabindex: "0", role: "img", style: `height:${height}px` });
  const narrow = () => canvas.clientWidth < 520;
  const gutter = () => narrow() ? 26 : 58;
  const right = () => narrow() ? 34 : 44;
  const works = Array.from({ length: count }, (_, rank) => workOf(ranks[rank]));
  const mean = works.reduce((a, b) => a + b, 0) / count;
  const most = Math.max(...works);
  canvas.setAttribute("aria-label", `${run.name}, ${source}, step ${step.step}: ${count} ranks, ${duration(step.duration * TICK)}; arrow keys go from action to action`);
  const title = el("h3", {}, run.name + " ", el("span", {}, `· ${source} · step ${step.step} · ${duration(step.duration * TICK)}` +
    (mean > 0 ? ` · slowest rank works ${ratio(most / mean)} the mean` : "")));
  let chosen = null;
  let drag = null;

  const toX = (ticks) => gutter() + (ticks - view.from) / (view.to - view.from) * (canvas.clientWidth - gutter() - right());
  const toTicks = (x) => view.from + (x - gutter()) / (canvas.clientWidth - gutter() - right()) * (view.to - view.from);

  function draw() {
    const width = canvas.clientWidth;
    if (width === 0) return;
    const density = devicePixelRatio || 1;
    canvas.width = Math.round(width * density);
    canvas.height = Math.round(height * density);
    const ink = canvas.getContext("2d");
    ink.scale(density, density);
    const style = getComputedStyle(document.documentElement);
    const colour = (name) => style.getPropertyValue(name);
    const [waitFill, leaseFill] = [hatch(ink, false), hatch(ink, true)];
    ink.font = `11px ${style.fontFamily}`;
    ink.textBaseline = "middle";
    const [left, edge] = [gutter(), width - right()];
    let drawn = 0;
    for (let rank = 0; rank < count; ++rank) {
      const y = rank * row;
      ink.fillStyle = colour("--lane");
      ink.fillRect(left, y + 1, edge - left, row - 2);
      if (row >= 14 || rank % 4 === 0) {
        ink.fillStyle = colour("--soft");
        ink.textAlign = "right";
        ink.fillText(narrow() ? rank : "rank " + rank, left - 6, y + row / 2);
        ink.textAlign = "left";
        if (row >= 14) ink.fillText(percent(works[rank] / Math.max(1, step.duration)).replace("\u00a0", ""), edge + 6, y + row / 2);
      }
    }
    ink.save();
    ink.beginPath();
    ink.rect(left, 0, edge - left, count * row);
    ink.clip();
    for (let rank = 0; rank < count; ++rank) {
      for (const span of ranks[rank] ?? []) {
        if (span.end < view.from || span.begin > view.to) continue;
        const [x0, x1] = [toX(span.begin), toX(span.end)];
        if (span.depth > 0 && x1 - x0 < 0.25) continue;
        const inset = span.depth > 0 ? Math.round(row * 0.45) : 0;
        const [top, tall] = [rank * row + 1 + inset, row - 2 - inset];
        const wide = Math.max(0.6, x1 - x0);
        ink.fillStyle = spanColour(span, view.colour);
        ink.fillRect(x0, top, wide, tall);
        ++drawn;
        if (!isCompute(span.kind) && span.length > 0) {  // what it waits comes first, then it moves bytes
          const waited = (toX(span.begin + span.ownWait) - x0);
          const leased = (toX(span.begin + span.ownLease) - x0);
          if (waited > 0.5) { ink.fillStyle = waitFill; ink.fillRect(x0, top, waited, tall); }
          if (leased > 0.5) { ink.fillStyle = leaseFill; ink.fillRect(x0 + waited, top, leased, tall); }
        }
        if (span.depth === 0 && isCompute(span.kind) && wide > 3) {
          ink.fillStyle = colour("--card");
          ink.fillRect(x1 - 0.5, top, 0.5, tall);
          if (wide > 24 && row >= 14 && span.micro_batch >= 0) {
            ink.fillStyle = readableOn(spanColour(span, view.colour));
            ink.textAlign = "left";
            ink.fillText(data.kind_names[span.kind] + span.micro_batch, Math.max(x0, left) + 4, top + (row < 20 ? tall : row * 0.55) / 2);
          }
        }
        if (span === chosen) {
          ink.strokeStyle = colour("--ink");
          ink.lineWidth = 2;
          ink.strokeRect(x0, top, wide, tall);
        }
      }
    }
    if (drag && drag.moved) {
      ink.fillStyle = colour("--focus");
      ink.globalAlpha = 0.18;
      ink.fillRect(Math.min(drag.x, drag.now), 0, Math.abs(drag.now - drag.x), count * row);
      ink.globalAlpha = 1;
    }
    ink.restore();
    ink.fillStyle = colour("--soft");
    ink.strokeStyle = colour("--line");
    ink.textAlign = "center";
    const unit = (view.to - view.from) * TICK >= 1 ? [1, "s"] : [1e3, "ms"];
    for (const value of ticks(view.from * TICK * unit[0], view.to * TICK * unit[0], narrow() ? 4 : 9)) {
      const x = toX(value / unit[0] / TICK);
      if (x < left - 1 || x > edge + 1) continue;
      ink.beginPath();
      ink.moveTo(x, count * row);
      ink.lineTo(x, count * row + 4);
      ink.stroke();
      ink.fillText(+value.toFixed(4) + (x > edge - 40 ? "" : " " + unit[1]), Math.min(x, width - 14), count * row + 14);
    }
    canvas.dataset.spans = (ranks.reduce((sum, spans) => sum + (spans ? spans.length : 0), 0));
    canvas.dataset.drawn = drawn;
  }

  function spanAt(x, y) {
    const time = toTicks(x);
    const slack = (view.to - view.from) / canvas.clientWidth;
    let best = null;
    for (const span of ranks[Math.floor(y / row)] ?? []) {
      if (span.begin - slack <= time && time <= span.end + slack && (!best || span.depth >= best.depth)) {
        if (!best || span.depth > best.depth || (span.begin <= time && time <= span.end)) best = span;
      }
    }
    return best;
  }

  function choose(span, point) {
    chosen = span;
    draw();
    if (!span) { hideTip(); return; }
    const box = canvas.getBoundingClientRect();
    const x = Math.max(gutter(), Math.min(canvas.clientWidth - right(), toX(span.begin)));
    showTip(point ? point.clientX : box.left + x, point ? point.clientY : box.top + (span.rank + 1) * row, ...spanTip(run, span));
  }

  const place = (event) => { const box = canvas.getBoundingClientRect(); return [event.clientX - box.left, event.clientY - box.top]; };
  canvas.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    const [x] = place(event);
    drag = { x, now: x, moved: false };
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointermove", (event) => {
    const [x, y] = place(event);
    if (drag) {
      drag.now = x;
      drag.moved ||= Math.abs(x - drag.x) > 5;
      if (drag.moved) { hideTip(); draw(); return; }
    }
    const span = spanAt(x, y);
    if (span !== chosen || span) choose(span, event);
  });
  canvas.addEventListener("pointerup", (event) => {
    const ended = drag;
    drag = null;
    if (ended && ended.moved) view.zoom(toTicks(Math.min(ended.x, ended.now)), toTicks(Math.max(ended.x, ended.now)));
    else { const [x, y] = place(event); choose(spanAt(x, y), event); }
  });
  canvas.addEventListener("pointercancel", () => { drag = null; draw(); });
  canvas.addEventListener("pointerleave", () => { if (!drag) choose(null); });
  canvas.addEventListener("blur", () => choose(null));
  canvas.addEventListener("dblclick", () => view.reset());
  canvas.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    view.scale(event.deltaY > 0 ? 1.25 : 0.8, toTicks(place(event)[0]));
  }, { passive: false });
  canvas.addEventListener("keydown", (event) => {
    const spans = (rank) => ranks[rank] ?? [];
    const rank = chosen ? chosen.rank : 0;
    const index = chosen ? spans(rank).indexOf(chosen) : -1;
    const nearest = (list) => list.find((span) => !chosen || span.end > chosen.begin) ?? list[list.length - 1] ?? null;
    let next;
    if (event.key === "ArrowRight") next = spans(rank)[Math.min(index + 1, spans(rank).length - 1)];
    else if (event.key === "ArrowLeft") next = spans(rank)[Math.max(index - 1, 0)];
    else if (event.key === "ArrowDown") next = chosen ? nearest(spans(Math.min(rank + 1, count - 1))) : spans(0)[0];
    else if (event.key === "ArrowUp") next = chosen ? nearest(spans(Math.max(rank - 1, 0))) : spans(0)[0];
    else if (event.key === "+" || event.key === "=") view.scale(0.6, chosen ? chosen.begin + chosen.length / 2 : (view.from + view.to) / 2);
    else if (event.key === "-") view.scale(1 / 0.6, chosen ? chosen.begin + chosen.length / 2 : (view.from + view.to) / 2);
    else if (event.key === "0") view.reset();
    else if (event.key === "Escape") choose(null);
    else return;
    event.preventDefault();
    if (next) {
      if (next.end < view.from || next.begin > view.to) view.zoom(next.begin - (view.to - view.from) / 2, next.begin + (view.to - view.from) / 2);
      choose(next);
    }
  });
  const node = el("div", { class: "panel", "data-run": run.name, "data-source": source, "data-step": step.step }, title,
                  el("div", { class: "plot", style: `height:${height}px` }, canvas));
  new ResizeObserver(draw).observe(canvas);
  return { node, draw, ranks, works, run, source, step };
}
