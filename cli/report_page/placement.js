// Where documents go: from which lengths on a ring hides its messages, what every rank attends and when, what each
// sharder would have taken. Drawn by any page that has the data; nothing here looks for a section itself.

// [light, dark]; a queue has its colour in every chart. The order is that of a pass: the longest rings first.
const QUEUES = {
  move: ["moves tokens", "#8540c4", "#c492f5"], inter_node: ["ring across nodes", "#c2500f", "#ff9d5c"],
  intra_node: ["ring in a node", "#1a62d6", "#6ea8ff"], local: ["local", "#17804d", "#5fd39a"], wait: ["waits for its ring", "#d3d8de", "#3a434d"],
};
const MOSTLY = { move: "moving tokens", inter_node: "in a ring across nodes", intra_node: "in a ring in a node", local: "in local documents", wait: "waiting for its ring" };
const queueColour = (queue) => shade(QUEUES[queue][1], QUEUES[queue][2]);
const tokensText = (length) => length >= 1024 && Number.isInteger(Math.log2(length)) ? power(Math.log2(length)) : grouped(length);
const shardingName = (name) => name.replaceAll("_", "-");
const counted = (count, one, many = one + "s") => `${grouped(count)} ${count === 1 ? one : many}`;

// ---- zones ----

const zoneSeries = (zones) => [
  ["attention", "attention_seconds", shade("#171b21", "#e8ecf0"), "attention"], ["linear modules", "linear_seconds", shade("#64707e", "#97a3b1"), "linear"],
  ["transfer in a node", "intra_node_seconds", queueColour("intra_node"), "in a node"],
  ...(zones.ranks_per_node > 0 ? [["transfer across nodes", "inter_node_seconds", queueColour("inter_node"), "across"]] : [])];

// The zones in order: {name, queue, from, to}; the last has no end.
function zoneBands(zones) {
  const across = zones.ranks_per_node > 0 ? zones.inter_node_from_tokens ?? Infinity : Infinity;
  const inside = Math.min(zones.intra_node_from_tokens ?? Infinity, across);
  return [{ name: "local", queue: "local", from: 0, to: inside }, { name: "in a node", queue: "intra_node", from: inside, to: across },
          { name: "across nodes", queue: "inter_node", from: across, to: Infinity }].filter((band) => band.from < band.to);
}

// In few words, for a title.
function zonesShort(zones) {
  const bands = zoneBands(zones);
  return bands.map((band) => band.to === Infinity && band.from === 0 ? `${band.name} at every length asked for` : band.from === 0 ? `${band.name} below ${grouped(band.to)} tokens` : `${band.name} from ${grouped(band.from)}`).join(", ");
}

function zonesAnswer(zones) {
  const [inside, across] = [zones.intra_node_from_tokens, zones.ranks_per_node > 0 ? zones.inter_node_from_tokens : undefined];
  const longest = zones.points.length ? tokensText(zones.points[zones.points.length - 1].length_tokens) : "0";
  const alone = across === undefined ? " (all ranks share a node)" : "";
  if (!isNumber(inside) && !isNumber(across)) return `No length up to ${longest} tokens hides a ring's messages${across === undefined ? " in a node" + alone : ", neither in a node nor across nodes"}.`;
  if (inside <= 1 && isNumber(inside) && !isNumber(across)) return `At every length a ring in a node hides its messages${across === undefined ? alone : `; no length up to ${longest} hides them across nodes`}.`;
  if (isNumber(across) && across <= 1) return "At every length a ring hides its messages, in a node and across nodes alike.";
  if (isNumber(across) && (!isNumber(inside) || across <= inside)) return `From ${grouped(across)} tokens on a ring hides its messages, in a node and across nodes alike; shorter documents stay on one rank.`;
  return `A document shorter than ${grouped(inside)} tokens stays on one rank; from ${grouped(inside)} on a ring in a node hides its messages` +
    (across === undefined ? alone : isNumber(across) ? `, from ${grouped(across)} on a ring across nodes.` : `; no length up to ${longest} hides them across nodes.`) + (across === undefined ? "." : "");
}

// On lines drawn between points in logarithms.
function zoneValue(points, key, length) {
  const next = Math.max(1, points.findIndex((point) => point.length_tokens >= length));
  const [a, b] = [points[next - 1], points[next]];
  if (!b || length > b.length_tokens || length < a.length_tokens || !(a[key] > 0 && b[key] > 0)) return null;
  const share = Math.log(length / a.length_tokens) / Math.log(b.length_tokens / a.length_tokens);
  return a[key] * (b[key] / a[key]) ** share;
}

function drawZoneChart(zones, width, height) {
  const points = zones.points;
  const series = zoneSeries(zones);
  const narrow = width < 560;
  const room = narrow ? 66 : 146;  // for the names of the lines
  const bands = zoneBands(zones);
  const lengths = [...points.map((point) => point.length_tokens), ...bands.slice(1).map((band) => band.from)];
  let [first, last] = [Math.log2(points.length ? points[0].length_tokens : Math.min(...lengths)), Math.log2(Math.max(...lengths))];
  if (first === last) { first -= 1; last += 1; }
  const values = series.flatMap(([, key]) => points.map((point) => point[key])).filter((value) => value > 0);
  const low = Math.log10(Math.min(...values, 1)) - 0.05;
  const high = Math.max(Math.log10(Math.max(...values, 1e-9)), low + 0.5);
  const names = 62;  // height above the lines, for the names of zones and crossings
  const top = high + (high - low) * names / (height - 42 - names);
  const whole = (from, to) => Array.from({ length: Math.max(0, Math.floor(to) - Math.ceil(from) + 1) }, (_, i) => Math.ceil(from) + i);
  const spread = (all, most) => all.filter((_, i) => i % Math.ceil(all.length / most) === 0);
  const { node, sx, sy, area } = frame(width - room, height, {
    x: [first, last], y: [low, top], xTicks: spread(whole(first, last), narrow ? 6 : 14), yTicks: spread(whole(low, high), 9),
    xFormat: power, yFormat: (exponent) => exponent >= 4 ? `1e${exponent} s` : axisDuration(10 ** exponent), xLabel: "tokens in the document", left: 54 });
  node.setAttribute("viewBox", `0 0 ${width} ${height}`);
  const x = (length) => Math.min(area.right, Math.max(area.left, sx(Math.log2(Math.max(length, 1)))));
  const y = (seconds) => sy(Math.log10(seconds));
  node.querySelectorAll(".gridline").forEach((line) => { line.style.stroke = "var(--line)"; });
  const behind = svg("g", {});
  node.prepend(behind);
  const label = (at, text, attributes) => svg("text", { class: "halo", y: at, ...attributes }, text);
  bands.forEach((band) => {
    const [left, right] = [x(band.from), band.to === Infinity ? area.right : x(band.to)];
    if (right - left < 0.5) return;
    behind.append(svg("rect", { class: "zone", x: left, width: right - left, y: area.top, height: area.bottom - area.top, fill: queueColour(band.queue), opacity: shade(0.1, 0.17) }));
    const middle = (left + right) / 2;
    if (right - left > band.name.length * 7.5 + 6) node.append(label(area.top + 15, band.name, { class: "zone-name", x: middle, "text-anchor": "middle", style: `fill:${queueColour(band.queue)}` }));
    else if (right - left > 13) {  // from below upwards, over the lines' lower right, which is empty
      node.append(label(area.bottom - 8, band.name, { class: "zone-name", x: middle + 4, style: `fill:${queueColour(band.queue)}`, transform: `rotate(-90 ${middle + 4} ${area.bottom - 8})` }));
    }
  });
  for (const [, key, colour] of series) {
    const path = points.filter((point) => point[key] > 0).map((point, i) => `${i ? "L" : "M"}${x(point.length_tokens).toFixed(1)} ${y(point[key]).toFixed(1)}`).join("");
    node.append(svg("path", { class: "series", d: path, fill: "none", stroke: colour, "stroke-width": key === "attention_seconds" ? 2.5 : 2, "stroke-linejoin": "round" }));
  }
  bands.slice(1).forEach((band, i) => {
    const at = x(band.from);
    const colour = queueColour(band.queue);
    const text = `${band.name} from ${grouped(band.from)}`;
    // Each in its own line of text, on the side that has room.
    const leftwards = at - area.left > text.length * 6.5 && (i === 0 || at + text.length * 7.2 > width);
    node.append(svg("line", { class: "crossing", x1: at, x2: at, y1: area.top + 22, y2: area.bottom, stroke: colour, "stroke-width": 1.5, "stroke-dasharray": "5 3" }),
                label(area.top + 34 + 15 * i, text, { class: "crossing-name", x: at + (leftwards ? -5 : 5), "text-anchor": leftwards ? "end" : "start" }));
    const [attention, sent] = [zoneValue(points, "attention_seconds", band.from), zoneValue(points, band.queue + "_seconds", band.from)];
    if (!attention || !sent) return;
    node.append(svg("line", { x1: at, x2: at, y1: y(attention), y2: y(sent), stroke: colour, "stroke-width": 4 }),
                svg("circle", { cx: at, cy: y(attention), r: 4, fill: colour }), svg("circle", { cx: at, cy: y(sent), r: 4, fill: colour }),
                // Where no line runs: before the crossing above attention, after it below the transfer.
                i === 0 && bands.length > 2 ? label(y(attention) - 6, ratio(attention / sent, 1), { x: at - 8, "text-anchor": "end" })
                  : label(y(sent) + (at + 44 > area.right ? 32 : 17), ratio(attention / sent, 1), at + 44 > area.right ? { x: at - 8, "text-anchor": "end" } : { x: at + 8 }));
  });
  // Names at the ends of the lines, moved apart where they would cover each other.
  const end = points[points.length - 1];
  const ends = series.filter(([, key]) => end && end[key] > 0).map(([name, key, colour, short]) => ({ name: narrow ? short : name, colour, y: y(end[key]) + 4 })).sort((a, b) => a.y - b.y);
  ends.forEach((entry, i) => { if (i) entry.y = Math.max(entry.y, ends[i - 1].y + 14); });
  ends.forEach((_, back) => { const i = ends.length - 1 - back; ends[i].y = Math.min(ends[i].y, i + 1 < ends.length ? ends[i + 1].y - 14 : area.bottom); });
  ends.forEach((entry) => node.append(svg("text", { class: "line-name", x: (end ? x(end.length_tokens) : area.right) + 6, y: entry.y, style: `fill:${entry.colour}` }, entry.name)));
  const stops = points.map((point) => ({
    x: x(point.length_tokens), y: area.top + 40, top: area.top + 22, bottom: area.bottom, title: tokensText(point.length_tokens) + " tokens",
    lines: [...series.map(([name, key]) => [name, duration(point[key])]), ["zone", bands.find((band) => point.length_tokens < band.to)?.name]],
  }));
  return { node, stops };
}

function drawZones(section, zones) {
  section.append(el("h2", { id: section.id + "-title" }, "Zones by length"), el("p", {}, zonesAnswer(zones)),
    figure({
      id: section.id + "-chart", height: 380, title: "One layer by length of a document, forward and backward",
      about: "Attention and linear modules on one rank; the transfer of all keys, values and their gradients once. " +
        (zoneBands(zones).length > 1 ? "Dashed: from here on a ring of two hides its messages. A round attends a quarter of the document and sends half, so attention must take about twice the transfer." : "A round of a ring of two attends a quarter of the document and sends half, so attention must take about twice the transfer to hide it."),
      draw: (width, height) => drawZoneChart(zones, width, height),
      table: () => ({ columns: ["tokens", "attention s", "linear modules s", "transfer in a node s", "transfer across nodes s"], rows: zones.points.map((point) => [point.length_tokens, point.attention_seconds, point.linear_seconds, point.intra_node_seconds, point.inter_node_seconds].map((value, i) => i ? Number(value.toPrecision(6)) : value)) }),
    }));
}

// ---- placement ----

const gapText = (gap) => !isNumber(gap) ? "" : Math.abs(gap) < 5e-4 ? "at the lower bound" : gap > 0 ? `${percent(gap)} above the lower bound` : `${percent(-gap)} below the estimated lower bound`;

// Of a plan that gathers keys no document is in a queue.
const hasQueues = ({ queues }) => queues.local + queues.intra_node + queues.inter_node > 0;

function queuesText(placement) {
  const { documents, queues } = placement;
  if (!hasQueues(placement)) return documents === 0 ? "no documents" : "keys and values are gathered on every rank";
  return [["across nodes", queues.inter_node], ["in a node", queues.intra_node], ["local", queues.local]].map(([name, count]) => `${grouped(count)} ${name}`).join(", ");
}

function placementAnswer(placement) {
  return `${shardingName(placement.sharding)}: ${duration(placement.slowest_seconds)} for a layer, forward and backward, ${gapText(placement.lower_bound_gap)} (${duration(placement.lower_bound_seconds)}). ` +
    `${counted(placement.documents, "document")}, ${counted(placement.tokens, "token")}: ${queuesText(placement)}. ` +
    (placement.moved_tokens > 0 ? `${counted(placement.moved_tokens, "token")} (${percent(placement.moved_tokens / placement.tokens)}) move to even out the linear modules.` : "No tokens are moved.");
}

// Seconds by queue, when it ends, in how many parts.
function rankTimes(rank) {
  const times = { move: 0, inter_node: 0, intra_node: 0, local: 0, wait: 0, end: 0 };
  for (const [queue, begin, end] of rank.forward) {
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

// A row a rank: bar of tokens, then its attention in time. A canvas, as there may be many thousands of parts; above it,
// always in view, what the columns are.
function ranksPanel(placement) {
  const ranks = placement.ranks;
  const times = ranks.map(rankTimes);
  const timed = times.some((time) => time.end > 0);
  const slowest = times.reduce((most, time, i) => time.end > times[most].end ? i : most, 0);
  const longest = timed ? times[slowest].end : 1;
  const mean = times.reduce((sum, time) => sum + time.end, 0) / Math.max(1, ranks.length);
  const mostTokens = Math.max(1, ...ranks.map((rank) => Math.max(rank.tokens, rank.linear_tokens)));
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
  const timeX = (seconds) => columns.timeFrom + seconds / longest * (columns.timeTo - columns.timeFrom);

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
      ink.fillStyle = bar;
      ink.fillRect(columns.barFrom, y, barX(rank.tokens) - columns.barFrom, tall);
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
        ink.strokeRect(columns.timeFrom - 1, y - (row >= 6 ? 0.5 : 0), columns.timeTo - columns.timeFrom + 2, tall + (row >= 6 ? 1 : 0));
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
    canvas.dataset.parts = ranks.reduce((sum, rank) => sum + rank.forward.length, 0);
    canvas.dataset.drawn = drawn;
    choose(null);
  }

  function drawHead(ink, colour, font) {
    const { narrow, rankEnd, barFrom, timeFrom, timeTo } = columns;
    ink.font = font(11.5, "600");
    ink.fillStyle = colour("--ink");
    ink.textAlign = "left";
    ink.fillText("tokens", barFrom, 9);
    if (timed) ink.fillText(narrow ? "attention, forward" : "attention of one layer, forward", timeFrom, 9);
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
    const unit = longest >= 1 ? [1, "s"] : longest >= 1e-3 ? [1e3, "ms"] : [1e6, "µs"];
    for (const value of ticks(0, longest * unit[0], narrow ? 3 : 7)) {
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
    const part = rank.forward[next.part];
    const [x0, x1] = part ? [timeX(part[1]), timeX(part[2])] : [columns.barFrom, columns.barTo];
    mark.hidden = false;
    mark.style.cssText = `left:${x0 - 1}px;top:${y - 1}px;width:${Math.max(2, x1 - x0) + 2}px;height:${row}px`;
    const lines = part ? [["begins", duration(part[1])], ["lasts", duration(part[2] - part[1])]] : [["tokens in attention", grouped(rank.tokens)], ["tokens in linear modules", grouped(rank.linear_tokens)]];
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
    const time = (x - columns.timeFrom) / (columns.timeTo - columns.timeFrom) * longest;
    return { rank: i, part: ranks[i].forward.findIndex(([, begin, end]) => begin <= time && time < end) };
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
    choose({ rank, part: Math.max(-1, Math.min(ranks[rank].forward.length - 1, chosen.part + right)) });
  });
  redraws.push(draw);
  new ResizeObserver(draw).observe(canvas);
  const node = el("div", { class: "ranks" }, el("div", { class: "ranks-head" }, head), el("div", { class: "plot", style: `height:${height}px;margin-top:0` }, canvas, mark));
  return { node, times, timed, slowest, longest, mean };
}

function drawPlacement(section, placement, trials, why, sharders = section) {
  section.append(el("h2", { id: section.id + "-title" }, "Where documents go"), el("p", {}, placementAnswer(placement)));
  const { ranks } = placement;
  const { node, times, timed, slowest, longest, mean } = ranksPanel(placement);
  const waits = times.reduce((sum, time) => sum + time.wait, 0) / Math.max(1e-30, longest * ranks.length);
  const late = longest / Math.max(mean, 1e-30) - 1;
  const most = timed ? Object.keys(QUEUES).reduce((a, b) => times[slowest][b] > times[slowest][a] ? b : a) : null;
  const about = !timed ? "No ring: keys and values are gathered before attention, so there are no rounds to draw."
    : `Rank ${ranks[slowest].rank} ends last, after ${duration(longest)}: ${late < 1e-3 ? "all end as one" : percent(late) + " later than the mean (dotted)"}; ${percent(times[slowest][most] / longest)} of it ${MOSTLY[most]}. ` +
      `All ranks wait for their rings ${waits === 0 ? "not at all" : percent(waits) + " of that time"}.` +
      (isNumber(placement.bytes?.inside_nodes) ? ` Sent: ${bytes(placement.bytes.inside_nodes)} inside nodes, ${bytes(placement.bytes.across_nodes)} across.` : "");
  const swatches = el("div", {});
  const used = Object.keys(QUEUES).filter((queue) => times.some((time) => time[queue] > 0));
  const drawLegend = () => swatches.replaceChildren(legend([
    { name: "tokens in attention", colour: shade("#64707e", "#7d8996") }, { name: "tokens in linear modules", colour: shade("#171b21", "#e8ecf0"), style: "tick" },
    ...used.map((queue) => queue === "wait" ? { name: QUEUES.wait[0], style: "hatch" } : { name: QUEUES[queue][0], colour: queueColour(queue) })]));
  redraws.push(drawLegend);
  drawLegend();
  section.append(el("figure", { class: "card", id: section.id + "-ranks" }, el("figcaption", {}, el("h3", {}, "Rank by rank"), el("p", {}, about)), node, swatches,
    tableBelow(() => ({
      columns: ["rank", "node", "tokens", "linear tokens", ...(timed ? [...Object.values(QUEUES).map(([name]) => name + " ms"), "ends ms"] : [])],
      rows: ranks.map((rank, i) => [rank.rank, rank.node, rank.tokens, rank.linear_tokens, ...(timed ? [...Object.keys(QUEUES), "end"].map((queue) => (1e3 * times[i][queue]).toFixed(4)) : [])]),
    }))));
  if (trials) drawSharders(sharders, placement, trials, why, sharders !== section);
}

// ---- sharders ----

const sortedTrials = (trials) => Object.entries(trials).map(([name, trial]) => ({ name, ...trial })).sort((a, b) => (a.seconds ?? Infinity) - (b.seconds ?? Infinity));

function shardersAnswer(placement, trials) {
  const rows = sortedTrials(trials).filter((trial) => isNumber(trial.seconds));
  if (rows.length === 0) return "No sharder was tried.";
  const chosen = rows.find((trial) => trial.name === shardingName(placement.sharding));
  const same = (a, b) => a.seconds <= b.seconds * (1 + 1e-4);
  const longer = (trial, base) => `${trial.name} takes ${percent(trial.seconds / base.seconds - 1)} longer`;
  if (!chosen) return `${shardingName(placement.sharding)} is none of those tried; ${rows[0].name} would be the fastest, ${duration(rows[0].seconds)}.`;
  if (!same(chosen, rows[0])) return `${chosen.name} is not the fastest: it takes ${percent(chosen.seconds / rows[0].seconds - 1)} longer than ${rows[0].name}.`;
  const equal = rows.filter((trial) => trial !== chosen && same(trial, chosen));
  const next = rows.find((trial) => !same(trial, chosen));
  const last = rows[rows.length - 1];
  return `${chosen.name} is the fastest of ${rows.length}` + (equal.length ? `, as fast as ${equal.map((trial) => trial.name).join(", ")}` : "") +
    (next ? `; ${longer(next, chosen)}` + (last !== next ? `, ${last.name} ${percent(last.seconds / chosen.seconds - 1)}` : "") : "") + ".";
}

function drawSharders(section, placement, trials, why, titled = true) {
  const rows = sortedTrials(trials);
  const bar = 28;
  const answer = shardersAnswer(placement, trials);
  if (titled) section.append(el("h2", { id: section.id + "-title" }, "What each sharder would take"), el("p", {}, answer));
  section.append(figure({
    id: section.id + "-trials", height: rows.length * bar + 26, title: titled ? "One layer of the slowest rank, forward and backward" : "What each sharder would take",
    about: titled ? null : answer,
    draw: (width, height) => {
      const narrow = width < 560;
      const left = 12 + 7.2 * Math.max(8, ...rows.map((trial) => trial.name.length));
      const right = width - (narrow ? 108 : 260);
      const bound = placement.lower_bound_seconds;
      const most = Math.max(bound || 0, ...rows.map((trial) => trial.seconds ?? 0), 1e-30);
      const x = (seconds) => left + seconds / most * (right - left);
      const node = svg("svg", { viewBox: `0 0 ${width} ${height}` });
      const stops = [];
      const texts = [];
      rows.forEach((trial, i) => {
        const y = 20 + i * bar;
        const own = trial.name === shardingName(placement.sharding);
        const known = isNumber(trial.seconds);
        const text = !known ? "no plan" : duration(trial.seconds) + ` · ${ratio(trial.over_lower_bound)}` + (narrow ? "" : " the lower bound") + (own ? narrow ? " ✓" : " · chosen" : "");
        node.append(svg("text", { class: "row-label" + (own ? " chosen" : ""), x: left - 8, y: y + 15, "text-anchor": "end" }, trial.name),
                    svg("rect", { class: "trial" + (own ? " chosen" : ""), x: left, width: known ? Math.max(1, x(trial.seconds) - left) : 0, y: y + 2, height: bar - 8, rx: 2 }));
        texts.push(svg("text", { class: "halo row-label" + (own ? " chosen" : ""), x: (known ? x(trial.seconds) : left) + 8, y: y + 15 }, text));
        stops.push({ x: known ? x(trial.seconds) : left, y: y + 12, title: trial.name + (own ? ", chosen" : ""), lines: [["slowest rank", duration(trial.seconds)], ["times the lower bound", ratio(trial.over_lower_bound, 3)]] });
      });
      if (bound > 0) {
        const end = x(bound) > width / 2;
        node.append(svg("line", { class: "bound", x1: x(bound), x2: x(bound), y1: 4, y2: height - 4 }),
                    svg("text", { class: "halo", x: x(bound) + (end ? -6 : 6), y: 13, "text-anchor": end ? "end" : "start" }, `lower bound ${duration(bound)}`));
      }
      node.append(...texts);
      return { node, stops, direction: "y" };
    },
    table: () => ({ columns: ["sharder", "slowest rank s", "times the lower bound", ""], rows: rows.map((trial) => [trial.name, trial.seconds, isNumber(trial.over_lower_bound) ? trial.over_lower_bound.toFixed(4) : null, trial.name === shardingName(placement.sharding) ? "chosen" : ""]) }),
  }));
  if (why) section.append(el("p", { class: "why" }, why));
}
