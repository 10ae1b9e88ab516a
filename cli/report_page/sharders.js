// What each sharder would have taken for the same micro-batch.

const sortedTrials = (trials) => Object.entries(trials).map(([name, trial]) => ({ name: shardingName(name), ...trial })).sort((a, b) => (a.seconds ?? Infinity) - (b.seconds ?? Infinity));

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

function drawSharders(section, placement, trials, why) {
  const rows = sortedTrials(trials);
  const bar = 28;
  const answer = shardersAnswer(placement, trials);
  section.append(el("h2", { id: section.id + "-title" }, "What each sharder would take"), el("p", {}, answer));
  section.append(figure({
    id: section.id + "-trials", height: rows.length * bar + 26, title: "One layer of the slowest rank, forward and backward",
    draw: (width, height) => {
      const narrow = width < 560;
      const left = 12 + 7.2 * Math.max(8, ...rows.map((trial) => trial.name.length));
      const right = width - (narrow ? 108 : 260);
      const even = placement.even_share_seconds;
      const most = Math.max(even || 0, ...rows.map((trial) => trial.seconds ?? 0), 1e-30);
      const x = (seconds) => left + seconds / most * (right - left);
      const node = svg("svg", { viewBox: `0 0 ${width} ${height}` });
      const stops = [];
      const texts = [];
      rows.forEach((trial, i) => {
        const y = 20 + i * bar;
        const own = trial.name === shardingName(placement.sharding);
        const known = isNumber(trial.seconds);
        const text = !known ? "no plan" : duration(trial.seconds) + ` · ${ratio(trial.over_even_share)}` + (narrow ? "" : " an even share") + (own ? narrow ? " ✓" : " · chosen" : "");
        node.append(svg("text", { class: "row-label" + (own ? " chosen" : ""), x: left - 8, y: y + 15, "text-anchor": "end" }, trial.name),
                    svg("rect", { class: "trial" + (own ? " chosen" : ""), x: left, width: known ? Math.max(1, x(trial.seconds) - left) : 0, y: y + 2, height: bar - 8, rx: 2 }));
        texts.push(svg("text", { class: "halo row-label" + (own ? " chosen" : ""), x: (known ? x(trial.seconds) : left) + 8, y: y + 15 }, text));
        stops.push({ x: known ? x(trial.seconds) : left, y: y + 12, title: trial.name + (own ? ", chosen" : ""), lines: [["slowest rank", duration(trial.seconds)], ["times an even share", ratio(trial.over_even_share, 3)]] });
      });
      if (even > 0) {
        const end = x(even) > width / 2;
        node.append(svg("line", { class: "even-share", x1: x(even), x2: x(even), y1: 4, y2: height - 4 }),
                    svg("text", { class: "halo", x: x(even) + (end ? -6 : 6), y: 13, "text-anchor": end ? "end" : "start" }, `even share ${duration(even)}`));
      }
      node.append(...texts);
      return { node, stops, direction: "y" };
    },
    table: () => ({ columns: ["sharder", "slowest rank s", "times an even share", ""], rows: rows.map((trial) => [trial.name, trial.seconds, isNumber(trial.over_even_share) ? trial.over_even_share.toFixed(4) : null, trial.name === shardingName(placement.sharding) ? "chosen" : ""]) }),
  }));
  if (why) section.append(el("p", { class: "why" }, why));
}
