// From which lengths on a ring hides its messages. Drawn by any page that has the data.

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
  const longest = tokensText(zones.longest_tokens);
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

function drawZones(section, zones, title = "Zones by length") {
  section.append(el("h2", { id: section.id + "-title" }, title), el("p", {}, zonesAnswer(zones)),
    figure({
      id: section.id + "-chart", height: 380, title: "One layer by length of a document, forward and backward",
      about: "Attention and linear modules on one rank; the transfer of all keys, values and their gradients once. " +
        (zoneBands(zones).length > 1 ? "Dashed: from here on a ring of two hides its messages. A round attends a quarter of the document and sends half, so attention must take about twice the transfer." : "A round of a ring of two attends a quarter of the document and sends half, so attention must take about twice the transfer to hide it."),
      draw: (width, height) => drawZoneChart(zones, width, height),
      table: () => ({ columns: ["tokens", "attention s", "linear modules s", "transfer in a node s", "transfer across nodes s"], rows: zones.points.map((point) => [point.length_tokens, point.attention_seconds, point.linear_seconds, point.intra_node_seconds, point.inter_node_seconds].map((value, i) => i ? Number(value.toPrecision(6)) : value)) }),
    }));
}
