// Where documents go: what every rank holds and attends, and when. Drawn by any page that has the data; nothing here
// looks for a section itself.

// An even share is no bound: where a kernel is faster on pieces, a plan may be below it.
const overText = (over) => Math.abs(over - 1) < 5e-4 ? "an even share" : `${percent(Math.abs(over - 1))} ${over > 1 ? "over" : "under"} an even share`;
const isTimed = (placement) => isNumber(placement.slowest_seconds);

// Of a plan that gathers keys no document is in a queue, and ranks know no queues.
const inRings = (placement) => placement.ranks.some((rank) => rank.queue_tokens);
const hasQueues = ({ queues }) => queues.local + queues.intra_node + queues.inter_node > 0;

function queuesText(placement) {
  const { documents, queues } = placement;
  if (!hasQueues(placement)) return documents === 0 ? "no documents" : "keys and values are gathered on every rank";
  return [["across nodes", queues.inter_node], ["in a node", queues.intra_node], ["local", queues.local]].map(([name, count]) => `${grouped(count)} ${name}`).join(", ");
}

function placementAnswer(placement) {
  return `${shardingName(placement.sharding)}: ` + (isTimed(placement) ? `${duration(placement.slowest_seconds)} for a layer, forward and backward, ${overText(placement.over_even_share)} (${duration(placement.even_share_seconds)}). ` : "") +
    `${counted(placement.documents, "document")}, ${counted(placement.tokens, "token")}: ${queuesText(placement)}. ` +
    (placement.moved_tokens > 0 ? `${counted(placement.moved_tokens, "token")} (${percent(placement.moved_tokens / placement.tokens)}) move to even out the linear modules.` : "No tokens are moved.");
}

// Seconds by queue, when it ends, in how many parts.
function rankTimes(rank) {
  const times = { move: 0, inter_node: 0, intra_node: 0, local: 0, wait: 0, linear: 0, end: 0 };
  for (const [queue, begin, end] of rank.forward ?? []) {
    times[queue] += end - begin;
    times.end = Math.max(times.end, end);
  }
  return times;
}

function waitPattern(ink) {
  const tile = document.createElement("canvas");
  tile.width = tile.height = 6;
  const pen = tile.getContext("2d");
  const style = getComputedStyle(document.documentElement);
  pen.fillStyle = style.getPropertyValue("--wait");
  pen.fillRect(0, 0, 6, 6);
  pen.strokeStyle = style.getPropertyValue("--wait-line");
  for (const shift of [-6, 0, 6]) { pen.beginPath(); pen.moveTo(shift, 6); pen.lineTo(shift + 6, 0); pen.stroke(); }
  return ink.createPattern(tile, "repeat");
}

// A row a rank: bar of tokens by queue, then its layer in time. A canvas, as there may be many thousands of parts; above
// it, always in view, what the columns are. `scale`: {seconds, tokens} that the columns reach at least.
function ranksPanel(placement, scale) {
  const ranks = placement.ranks;
  const times = ranks.map(rankTimes);
  const timed = times.some((time) => time.end > 0);
  const slowest = times.reduce((most, time, i) => time.end > times[most].end ? i : most, 0);
  const longest = timed ? times[slowest].end : 1;
  const mean = times.reduce((sum, time) => sum + time.end, 0) / Math.max(1, ranks.length);
  const until = Math.max(longest, scale.seconds ?? 0);
  const mostTokens = Math.max(1, scale.tokens ?? 0, ...ranks.map((rank) => Math.max(rank.tokens, rank.linear_tokens)));
  const nodes = new Set(ranks.map((rank) => rank.node)).size;
  const row = ranks.length <= 16 ? 24 : ranks.length <= 32 ? 18 : ranks.length <= 64 ? 14 : ranks.length <= 128 ? 12 : ranks.length <= 1024 ? 6 : 3;
  const between = row >= 6 ? 7 : 2;
  const tops = [];
  let height = 2;
  ranks.forEach((rank, i) => {
    if (i > 0 && rank.node !== ranks[i - 1].node) height += between;
    tops.push(height);
    height += row;
  });
  height += 2;
  const head = el("canvas", { "aria-hidden": "true", style: "height:38px" });
  const canvas = el("canvas", { tabindex: "0", role: "img", style: `height:${height}px` });
  canvas.setAttribute("aria-label", `${shardingName(placement.sharding)}: ${ranks.length} ranks` + (timed ? `, rank ${ranks[slowest].rank} ends last after ${duration(longest)}` : "") + "; arrow keys go from part to part");
  const mark = el("div", { class: "mark", hidden: "" });
  let columns = null;

  function layout(width) {
    const narrow = width < 620;
    const rankEnd = nodes > 1 ? (narrow ? 62 : 78) : (narrow ? 24 : 34);
    const barFrom = rankEnd + 7;
    const numbers = !narrow && row >= 12 ? 48 : 6;
    const barTo = timed ? barFrom + Math.max(56, Math.round(width * 0.2)) - (narrow ? 6 : 0) : Math.min(width - numbers - 4, barFrom + 560);
    const timeFrom = barTo + numbers + (narrow ? 8 : 14);
    return { narrow, rankEnd, barFrom, barTo, numbers, timeFrom, timeTo: width - (narrow ? 60 : 66) };
  }
  const barX = (tokens) => columns.barFrom + tokens / mostTokens * (columns.barTo - columns.barFrom);
  const timeX = (seconds) => columns.timeFrom + seconds / until * (columns.timeTo - columns.timeFrom);

  function sized(target, width, tall) {
    // A canvas has a largest side; where density would pass it, coarser pixels do.
    const density = Math.min(devicePixelRatio || 1, 16000 / tall);
    target.width = Math.round(width * density);
    target.height = Math.round(tall * density);
    const ink = target.getContext("2d");
    ink.scale(density, density);
    ink.textBaseline = "middle";
    return ink;
  }

  function draw() {
    const width = canvas.clientWidth;
    if (width === 0) return;
    columns = layout(width);
    const style = getComputedStyle(document.documentElement);
    const colour = (name) => style.getPropertyValue(name);
    const font = (size, weight = "") => `${weight} ${size}px ${style.fontFamily}`;
    drawHead(sized(head, width, 38), colour, font);
    const ink = sized(canvas, width, height);
    const fills = Object.fromEntries(Object.keys(QUEUES).map((queue) => [queue, queue === "wait" ? waitPattern(ink) : queueColour(queue)]));
    const size = row >= 14 ? 11 : 10;
    const bar = shade("#64707e", "#7d8996");
    let drawn = 0;
    ranks.forEach((rank, i) => {
      const [y, tall] = [tops[i], row - (row >= 6 ? 2 : 1)];
      const last = timed && i === slowest;
      const middle = y + tall / 2 + 0.5;
      if (nodes > 1 && (i === 0 || rank.node !== ranks[i - 1].node)) {
        ink.font = font(row >= 6 ? 11 : 9);
        ink.fillStyle = colour("--soft");
        ink.textAlign = "left";
        ink.fillText("node " + rank.node, 0, y + Math.max(tall / 2, 5) + 0.5);
      }
      const nearSlowest = i !== slowest && Math.abs(tops[i] - tops[slowest]) < 11;
      if (last || (row >= 12 || (rank.rank % 4 === 0 && row >= 6)) && !nearSlowest || row >= 12) {
        ink.font = font(size, last ? "700" : "");
        ink.fillStyle = colour(last ? "--ink" : "--soft");
        ink.textAlign = "right";
        ink.fillText(rank.rank, columns.rankEnd, middle);
        if (timed && (row >= 12 || last)) {
          ink.textAlign = "left";
          ink.fillText(duration(times[i].end), columns.timeTo + 7, middle);
        }
      }
      ink.fillStyle = colour("--lane");
      ink.fillRect(columns.barFrom, y, columns.barTo - columns.barFrom, tall);
      let laid = 0;
      for (const [queue, tokens] of RINGS_FIRST.map((queue) => [queue, rank.queue_tokens?.[queue] ?? 0])) {
        ink.fillStyle = fills[queue];
        ink.fillRect(barX(laid), y, barX(laid + tokens) - barX(laid), tall);
        laid += tokens;
      }
      ink.fillStyle = bar;  // of a plan that knows no queues
      if (laid === 0) ink.fillRect(columns.barFrom, y, barX(rank.tokens) - columns.barFrom, tall);
      if (rank.linear_tokens !== rank.tokens || row >= 6) {  // seen on the bar and beside it
        const x = barX(rank.linear_tokens);
        ink.fillStyle = colour("--card");
        ink.fillRect(x - 2.5, y, 5, tall);
        ink.fillStyle = colour("--ink");
        ink.fillRect(x - 1, y - (row >= 12 ? 1 : 0), 2, tall + (row >= 12 ? 2 : 0));
      }
      if (columns.numbers > 6 && row >= 12) {
        ink.font = font(size);
        ink.fillStyle = colour("--soft");
        ink.textAlign = "left";
        ink.fillText(grouped(rank.tokens), columns.barTo + 6, middle);
      }
      if (!timed) return;
      ink.fillStyle = colour("--lane");
      ink.fillRect(columns.timeFrom, y, columns.timeTo - columns.timeFrom, tall);
      // Parts of one queue that are too thin to see are drawn as one.
      let open = null;
      const flush = () => {
        if (!open) return;
        ink.fillStyle = fills[open.queue];
        ink.fillRect(open.from, y, Math.max(0.6, open.to - open.from), tall);
        ++drawn;
        open = null;
      };
      const seams = [];
      for (const [queue, begin, end] of rank.forward) {
        const [x0, x1] = [timeX(begin), timeX(end)];
        if (open && open.queue === queue && x0 - open.to < 0.3) {
          if (x1 - x0 > 5) seams.push(x0);
          open.to = x1;
        } else {
          flush();
          open = { queue, from: x0, to: x1 };
        }
      }
      flush();
      ink.fillStyle = colour("--card");
      for (const x of seams) ink.fillRect(x - 0.5, y, 0.7, tall);
      if (last) {
        ink.strokeStyle = colour("--ink");
        ink.lineWidth = 2;
        ink.strokeRect(columns.timeFrom - 1, y - (row >= 6 ? 0.5 : 0), timeX(longest) - columns.timeFrom + 2, tall + (row >= 6 ? 1 : 0));
      }
    });
    if (timed && mean < 0.999 * longest) {  // how far the others are behind the last
      ink.strokeStyle = colour("--ink");
      ink.lineWidth = 1;
      ink.setLineDash([2, 3]);
      ink.beginPath();
      ink.moveTo(timeX(mean), 0);
      ink.lineTo(timeX(mean), height);
      ink.stroke();
      ink.setLineDash([]);
    }
    canvas.dataset.parts = ranks.reduce((sum, rank) => sum + (rank.forward ?? []).length, 0);
    canvas.dataset.drawn = drawn;
    choose(null);
  }

  function drawHead(ink, colour, font) {
    const { narrow, rankEnd, barFrom, timeFrom, timeTo } = columns;
    ink.font = font(11.5, "600");
    ink.fillStyle = colour("--ink");
    ink.textAlign = "left";
    ink.fillText("tokens", barFrom, 9);
    if (timed) ink.fillText(narrow ? "a layer, forward" : "one layer, forward: attention, then linear modules", timeFrom, 9);
    ink.font = font(11);
    ink.fillStyle = colour("--soft");
    ink.textAlign = "right";
    ink.fillText("rank", rankEnd, 27);
    ink.textAlign = "left";
    ink.fillText("0", barFrom, 27);
    ink.textAlign = "right";
    ink.fillText(grouped(mostTokens), columns.barTo, 27);
    if (!timed) return;
    ink.fillStyle = colour("--ink");
    ink.font = font(11.5, "600");
    if (!narrow) ink.fillText(`rank ${ranks[slowest].rank} ends last`, timeTo + 64, 9);
    ink.font = font(11);
    ink.fillStyle = colour("--soft");
    ink.strokeStyle = colour("--faint");
    const unit = until >= 1 ? [1, "s"] : until >= 1e-3 ? [1e3, "ms"] : [1e6, "µs"];
    for (const value of ticks(0, until * unit[0], narrow ? 3 : 7)) {
      const x = timeX(value / unit[0]);
      ink.beginPath();
      ink.moveTo(x, 34);
      ink.lineTo(x, 38);
      ink.stroke();
      ink.textAlign = value === 0 ? "left" : "center";
      ink.fillText(`${+value.toFixed(4)} ${unit[1]}`, x, 27);
    }
    ink.textAlign = "left";
    ink.fillText("ends", timeTo + 7, 27);
  }

  // What is pointed at: a rank, and a part of it or (-1) the rank as a whole.
  let chosen = null;
  function choose(next, point) {
    chosen = next;
    if (!next) { mark.hidden = true; hideTip(); return; }
    const [rank, time, y] = [ranks[next.rank], times[next.rank], tops[next.rank]];
    const part = rank.forward?.[next.part];
    const [x0, x1] = part ? [timeX(part[1]), timeX(part[2])] : [columns.barFrom, columns.barTo];
    mark.hidden = false;
    mark.style.cssText = `left:${x0 - 1}px;top:${y - 1}px;width:${Math.max(2, x1 - x0) + 2}px;height:${row}px`;
    const lines = part ? [["begins", duration(part[1])], ["lasts", duration(part[2] - part[1])]] : [["tokens in attention", grouped(rank.tokens)],
      ...RINGS_FIRST.filter((queue) => rank.queue_tokens?.[queue] > 0).map((queue) => ["of them " + QUEUE_OF_TOKENS[queue], grouped(rank.queue_tokens[queue])]), ["tokens in linear modules", grouped(rank.linear_tokens)]];
    for (const [queue, [name]] of Object.entries(QUEUES)) if (time[queue] > 0) lines.push([name + ", in all", duration(time[queue])]);
    if (timed) lines.push(["ends", duration(time.end) + (next.rank === slowest ? ", the last" : "")]);
    const box = canvas.getBoundingClientRect();
    showTip(point ? point.clientX : box.left + Math.min(x0, columns.timeTo), point ? point.clientY : box.top + y + row,
            `rank ${rank.rank}` + (nodes > 1 ? `, node ${rank.node}` : "") + (part ? ` · ${QUEUES[part[0]][0]}` : ""), lines);
  }
  function partAt(x, y) {
    let i = tops.findLastIndex((top) => top <= y);
    if (i < 0 || y >= tops[i] + row) return null;
    if (x < columns.timeFrom - 4) return { rank: i, part: -1 };
    const time = (x - columns.timeFrom) / (columns.timeTo - columns.timeFrom) * until;
    return { rank: i, part: (ranks[i].forward ?? []).findIndex(([, begin, end]) => begin <= time && time < end) };
  }
  canvas.addEventListener("pointermove", (event) => {
    const box = canvas.getBoundingClientRect();
    choose(columns && partAt(event.clientX - box.left, event.clientY - box.top), event);
  });
  canvas.addEventListener("pointerleave", () => choose(null));
  canvas.addEventListener("blur", () => choose(null));
  canvas.addEventListener("keydown", (event) => {
    if (event.key === "Escape") { choose(null); return; }
    const [down, right] = { ArrowDown: [1, 0], ArrowUp: [-1, 0], ArrowRight: [0, 1], ArrowLeft: [0, -1] }[event.key] ?? [0, 0];
    if (!down && !right) return;
    event.preventDefault();
    if (!ranks.length) return;
    if (!chosen) { choose({ rank: 0, part: -1 }); return; }
    const rank = Math.max(0, Math.min(ranks.length - 1, chosen.rank + down));
    choose({ rank, part: Math.max(-1, Math.min((ranks[rank].forward ?? []).length - 1, chosen.part + right)) });
  });
  redraws.push(draw);
  new ResizeObserver(draw).observe(canvas);
  const node = el("div", { class: "ranks" }, el("div", { class: "ranks-head" }, head), el("div", { class: "plot", style: `height:${height}px;margin-top:0` }, canvas, mark));
  return { node, times, timed, slowest, longest, mean };
}

// `of`: which micro-batch; `source`: what else is to be said of it, below; `scale`: as ranksPanel takes it, so that
// several may be compared.
function drawPlacement(section, placement, { title = "Where documents go", of = "", source = "", scale = {} } = {}) {
  section.append(el("h2", { id: section.id + "-title" }, title), el("p", {}, placementAnswer(placement)));
  const { ranks } = placement;
  const { node, times, timed, slowest, longest, mean } = ranksPanel(placement, scale);
  const waits = times.reduce((sum, time) => sum + time.wait, 0) / Math.max(1e-30, longest * ranks.length);
  const late = longest / Math.max(mean, 1e-30) - 1;
  const most = timed ? Object.keys(QUEUES).reduce((a, b) => times[slowest][b] > times[slowest][a] ? b : a) : null;
  const about = !isTimed(placement) ? "Tokens only: when each rank attends them is not known, as the run had no cost in seconds ([cost] profile)."
    : !timed ? "No ring: keys and values are gathered before attention, so there are no rounds to draw."
    : `Rank ${ranks[slowest].rank} ends last, after ${duration(longest)}: ${late < 1e-3 ? "all end as one" : percent(late) + " later than the mean (dotted)"}; ${percent(times[slowest][most] / longest)} of it ${MOSTLY[most]}. ` +
      `All ranks wait for their rings ${waits === 0 ? "not at all" : waits < 5e-4 ? "hardly at all" : percent(waits) + " of that time"}.` +
      (isNumber(placement.bytes?.inside_nodes) ? ` Sent: ${bytes(placement.bytes.inside_nodes)} inside nodes, ${bytes(placement.bytes.across_nodes)} across.` : "");
  const swatches = el("div", {});
  const used = Object.keys(QUEUES).filter((queue) => times.some((time) => time[queue] > 0) || ranks.some((rank) => rank.queue_tokens?.[queue] > 0));
  const drawLegend = () => swatches.replaceChildren(legend([
    ...(inRings(placement) ? [] : [{ name: "tokens in attention", colour: shade("#64707e", "#7d8996") }]), { name: "tokens in linear modules", colour: shade("#171b21", "#e8ecf0"), style: "tick" },
    ...used.map((queue) => queue === "wait" ? { name: QUEUES.wait[0], style: "hatch" } : { name: QUEUES[queue][0], colour: queueColour(queue) })]));
  redraws.push(drawLegend);
  drawLegend();
  section.append(el("figure", { class: "card", id: section.id + "-ranks" }, el("figcaption", {}, el("h3", {}, "Rank by rank" + (of ? ": " + of : "")), el("p", {}, about)), node, swatches,
    tableBelow(() => ({
      columns: ["rank", "node", "tokens", "linear tokens", ...(inRings(placement) ? RINGS_FIRST.map((queue) => "tokens " + QUEUE_OF_TOKENS[queue]) : []), ...(timed ? [...Object.values(QUEUES).map(([name]) => name + " ms"), "ends ms"] : [])],
      rows: ranks.map((rank, i) => [rank.rank, rank.node, rank.tokens, rank.linear_tokens, ...(inRings(placement) ? RINGS_FIRST.map((queue) => rank.queue_tokens[queue]) : []), ...(timed ? [...Object.keys(QUEUES), "end"].map((queue) => (1e3 * times[i][queue]).toFixed(4)) : [])]),
    }))));
  if (source) section.append(el("p", {}, source));
}

// `of` and `source` of a step's micro-batch: {step, dp_rank, micro_batch, micro_batches, zones}.
function stepPlace(shown, dp) {
  return {
    of: `step ${shown.step}, micro-batch ${shown.micro_batch}` + (dp > 1 ? ` of data parallel rank ${shown.dp_rank}` : ""),
    source: (shown.micro_batches > 1 ? `Of the step's ${grouped(shown.micro_batches)} micro-batches in rings the one with most attention. ` : "") +
      (shown.zones ? `Predicted by ${shown.zones.cost}.` : ""),
  };
}
