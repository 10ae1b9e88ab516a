// What was trained: lengths by domain, and how long tokens waited for their step.

// Steps of delay put together: 0, 1, 2, 3–4, 5–8, 9–16, ...
function delayBand(delay) {
  return delay <= 2 ? Math.max(0, delay) : 2 + Math.ceil(Math.log2(delay / 2));
}
function bandName(band) {
  if (band <= 2) return band === 1 ? "1 step" : `${band} steps`;
  return `${2 ** (band - 2) + 1}–${2 ** (band - 1)} steps`;
}
const BAND_COLOURS = [["#dfe5ea", "#323b45"], ["#f3d9a4", "#6b5526"], ["#eab765", "#936f22"], ["#dd8f38", "#c08a2b"], ["#c4621f", "#e0a24a"], ["#9b3c14", "#f2bd77"], ["#6b240d", "#ffdcae"]];
const bandColour = (band) => shade(...BAND_COLOURS[Math.min(band, BAND_COLOURS.length - 1)]);

function lengthFigure(run, measure) {
  const table = run.lengths[measure];
  const count = table.length ? table[0].length : 0;
  let first = 0;
  while (first < count - 1 && table.every((row) => row[first] === 0)) ++first;
  const bins = Array.from({ length: count - first }, (_, i) => ({ short: power(first + i), long: `${power(first + i)} to ${power(first + i + 1)} tokens` }));
  const shown = run.domains.map((name, index) => ({ name, index })).filter(({ index }) => table[index].some((value) => value > 0));
  const parts = shown.map(({ name, index }) => ({ name, colour: () => domainColour(index), values: table[index].slice(first) }));
  return figure({
    id: "lengths-" + measure, height: 230, title: measure === "documents" ? "Documents by length" : "Tokens by length of their document",
    about: "Logarithmic bands, by domain; a document that a window cut counts as its parts.",
    draw: columnChart({ bins, parts, yFormat: (value) => value >= 1e6 ? (value / 1e6).toFixed(1) + "M" : value >= 1e4 ? Math.round(value / 1e3) + "k" : grouped(value), xLabel: "tokens in the document" }),
    table: () => ({ columns: ["from tokens", ...parts.map((part) => part.name)], rows: bins.map((_, bin) => [2 ** (first + bin), ...parts.map((part) => part.values[bin])]) }),
  });
}

function delayFigure() {
  const rows = data.runs.flatMap((run) => {
    const all = new Map();
    const domains = run.delays.map((pairs, index) => ({ label: run.domains[index], pairs })).filter(({ pairs }) => pairs.length > 0);
    for (const { pairs } of domains) for (const [delay, tokens] of pairs) all.set(delay, (all.get(delay) ?? 0) + tokens);
    if (all.size === 0) return [];
    return [{ run, label: "all domains", pairs: [...all.entries()], bold: true }, ...domains.map((row) => ({ run, ...row }))];
  }).map((row) => {
    const total = row.pairs.reduce((sum, [, tokens]) => sum + tokens, 0);
    const shares = [];
    for (const [delay, tokens] of row.pairs) shares[delayBand(delay)] = (shares[delayBand(delay)] ?? 0) + tokens / total;
    const sorted = [...row.pairs].sort((a, b) => a[0] - b[0]);
    let seen = 0;
    const p99 = (sorted.find(([, tokens]) => (seen += tokens) >= 0.99 * total) ?? sorted[sorted.length - 1])[0];
    return { ...row, total, shares, p99, mean: row.pairs.reduce((sum, [delay, tokens]) => sum + delay * tokens, 0) / total, most: sorted[sorted.length - 1][0] };
  });
  if (rows.length === 0) return null;
  const bands = Array.from({ length: Math.max(...rows.map((row) => row.shares.length)) }, (_, band) => band);
  const heads = data.runs.filter((run) => rows.some((row) => row.run === run));
  const height = rows.length * 22 + heads.length * 24 + 42;
  return figure({
    id: "delay", height, title: "Delay of tokens", about: "Steps between the global batch that brought a token and the step that trained it; at the right, the mean.",
    draw: (width) => {
      const left = Math.min(150, width * 0.34);
      const { node, sx, area } = frame(width, height, { x: [0, 1], y: [0, 1], yTicks: [], xFormat: percent, yFormat: String, xLabel: "share of tokens", left, xTicks: [0, 0.25, 0.5, 0.75, 1] });
      const right = area.right - 44;
      const scale = (share) => left + share * (right - left);
      node.querySelectorAll("text").forEach((text, i) => { if (i < 5) text.setAttribute("x", scale(i / 4)); });
      let y = area.top;
      const stops = [];
      let run = null;
      for (const row of rows) {
        if (row.run !== run) {
          run = row.run;
          node.append(svg("text", { class: "row-label", x: 2, y: y + 15, "font-weight": 600 }, run.name));
          y += 24;
        }
        const most = Math.max(6, Math.floor(left / 7));
        const label = row.label.length > most ? row.label.slice(0, most - 1) + "…" : row.label;
        node.append(svg("text", { class: "row-label", x: left - 7, y: y + 14, "text-anchor": "end" }, label));
        let begin = 0;
        for (const band of bands) {
          const share = row.shares[band] ?? 0;
          if (share > 0) node.append(svg("rect", { class: "band", x: scale(begin), width: Math.max(0.3, scale(begin + share) - scale(begin)), y: y + 2, height: 17, fill: bandColour(band) }));
          begin += share;
        }
        node.append(svg("text", { x: right + 6, y: y + 14 }, row.mean.toFixed(2)));
        stops.push({ x: scale(0.5), y: y + 10, title: `${run.name}, ${row.label}`, lines: [...bands.filter((band) => row.shares[band] > 0).map((band) => [bandName(band), percent(row.shares[band])]), ["mean", row.mean.toFixed(2)], ["99 % within", row.p99], ["longest", row.most]] });
        y += 22;
      }
      return { node, stops, direction: "y", legend: bands.map((band) => ({ name: bandName(band), colour: bandColour(band) })) };
    },
    table: () => ({ columns: ["run", "domain", "tokens", "mean", "99 % within", "longest", ...bands.map(bandName)], rows: rows.map((row) => [row.run.name, row.label, row.total, row.mean.toFixed(3), row.p99, row.most, ...bands.map((band) => ((row.shares[band] ?? 0) * 100).toFixed(2) + " %")]) }),
  });
}

function documentsSection(place) {
  place.append(el("h2", { id: "documents-title" }, "What was trained"));
  const runs = data.runs.filter((run) => run.lengths.documents.some((row) => row.length > 0));
  if (runs.length === 0) {
    place.append(el("p", { class: "none" }, "These runs have no plan.jsonl, so lengths and delays are unknown."));
    return;
  }
  let chosen = runs[0];
  const lengths = el("div", { class: "grid" });
  const controls = el("div", { class: "controls", style: "margin-top:10px" });
  const rebuild = () => {
    lengths.replaceChildren(lengthFigure(chosen, "documents"), lengthFigure(chosen, "tokens"));
    controls.replaceChildren(el("fieldset", {}, el("legend", {}, "Lengths in"), ...runs.map((run) => pressed(run.name, run === chosen, () => { chosen = run; rebuild(); }))));
  };
  rebuild();
  place.append(runs.length > 1 ? controls : "", lengths, delayFigure() ?? "");
}
