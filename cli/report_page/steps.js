// Figures by step: imbalance, step time measured and predicted, loss, and where the prediction errs.

const judged = (run) => run.steps[run.source];  // the step time that the run's speed goes by

function byStep(run, index, key, label, dash = false) {
  return { name: label ? `${run.name}, ${label}` : run.name, colour: () => runColour(index), dash, xs: run.steps.step, ys: run.steps[key] };
}

const has = (run, key) => run.steps[key].some(isNumber);

function stepTable(series, format) {
  return () => {
    const xs = [...new Set(series.flatMap((s) => s.xs))].sort((a, b) => a - b);
    return { columns: ["step", ...series.map((s) => s.name)], rows: xs.map((x) => [x, ...series.map((s) => { const y = s.ys[s.xs.indexOf(x)]; return isNumber(y) ? format(y) : "–"; })]) };
  };
}

function stepFigure({ id, title, about, series, yFormat, tableFormat, from, guide }) {
  if (series.length === 0) return null;
  return figure({ id, title, about, height: 240, draw: lineChart({ series, yFormat, xLabel: "step", from, guide, unit: yFormat }), table: stepTable(series, tableFormat) });
}

function errorChart(run) {
  const truth = run.kinds.replayed ?? run.kinds.measured;
  const guess = run.kinds.predicted;
  const kinds = data.kind_names.map((name, index) => ({ name, measured: truth[index], predicted: guess[index] })).filter((kind) => kind.measured > 0 || kind.predicted > 0);
  const height = kinds.length * 34 + 42;
  return figure({
    id: undefined, height, title: `${run.name}: predicted against measured, by kind of action`, about: "Busy time of all ranks together a step, without waits.",
    draw: (width) => {
      const longest = Math.max(...kinds.flatMap((kind) => [kind.measured, kind.predicted]), 1e-9);
      const { node, sx, area } = frame(width, height, { x: [0, longest * 1.12], y: [0, 1], yTicks: [], xFormat: axisDuration, yFormat: String, xLabel: "time a step, all ranks", left: 96, xTicks: ticks(0, longest, width < 420 ? 3 : 5) });
      const stops = kinds.map((kind, row) => {
        const y = area.top + row * 34;
        const error = kind.measured > 0 ? (kind.predicted - kind.measured) / kind.measured : null;
        node.append(svg("text", { class: "row-label", x: area.left - 7, y: y + 19, "text-anchor": "end" }, kind.name),
          svg("rect", { class: "measured", x: sx(0), y: y + 4, height: 11, width: Math.max(0.5, sx(kind.measured) - sx(0)), fill: kindColour(KIND[kind.name]) }),
          svg("rect", { class: "predicted", x: sx(0), y: y + 16, height: 11, width: Math.max(0.5, sx(kind.predicted) - sx(0)), fill: kindColour(KIND[kind.name]), opacity: 0.45 }),
          svg("text", { x: sx(Math.max(kind.measured, kind.predicted)) + 5, y: y + 19 }, error === null ? "" : signed(100 * error, 0) + " %"));
        return { x: sx(kind.measured), y: y + 16, title: kind.name, lines: [["measured", duration(kind.measured)], ["predicted", duration(kind.predicted)], ["error", error === null ? "–" : signed(100 * error, 1) + " %"]] };
      });
      return { node, stops, direction: "y", legend: [{ name: "upper bar measured", colour: kindColour(KIND.F) }, { name: "lower bar predicted", colour: mixed(kindColour(KIND.F), 0.55) }] };
    },
    table: () => ({ columns: ["kind", "measured s", "predicted s", "error"], rows: kinds.map((kind) => [kind.name, kind.measured.toFixed(6), kind.predicted.toFixed(6), kind.measured > 0 ? signed(100 * (kind.predicted / kind.measured - 1), 1) + " %" : "–"]) }),
  });
}

function scatterFigure(runs) {
  const points = runs.flatMap(([run, index]) => run.steps.step.map((step, i) => ({ run, index, step, x: judged(run)[i], y: run.steps.predicted[i] }))).filter((p) => isNumber(p.x) && isNumber(p.y));
  if (points.length === 0) return null;
  const sources = [...new Set(runs.map(([run]) => run.source))].join(" or ");
  return figure({
    id: "predicted-scatter", height: 300, title: "Predicted against " + sources + " step time", about: "On the line the prediction is exact; dotted lines are 15 % off.",
    draw: (width, height) => {
      const high = Math.max(...points.flatMap((p) => [p.x, p.y])) * 1.05;
      const low = Math.min(...points.flatMap((p) => [p.x, p.y])) * 0.9;
      const { node, sx, sy } = frame(width, height, { x: [low, high], y: [low, high], xFormat: axisDuration, yFormat: axisDuration, xLabel: sources, left: 62, xTicks: ticks(low, high, width < 420 ? 3 : 5) });
      const line = (factor, style) => {  // y = factor * x, inside the frame
        const [from, to] = [Math.max(low, low / factor), Math.min(high, high / factor)];
        return svg("line", { class: style, x1: sx(from), y1: sy(from * factor), x2: sx(to), y2: sy(to * factor) });
      };
      node.append(line(1, "cursor"), line(1.15, "guide"), line(0.85, "guide"));
      for (const p of points) node.append(svg("circle", { class: "step", cx: sx(p.x), cy: sy(p.y), r: 4, fill: runColour(p.index), opacity: 0.75 }));
      const stops = points.map((p) => ({ x: sx(p.x), y: sy(p.y), title: `${p.run.name}, step ${p.step}`, lines: [[p.run.source, duration(p.x)], ["predicted", duration(p.y)], ["error", signed(100 * (p.y / p.x - 1), 1) + " %"]] }));
      return { node, stops, direction: "xy", legend: runs.map(([run, index]) => ({ name: run.name, colour: runColour(index) })) };
    },
    table: () => ({ columns: ["run", "step", sources + " s", "predicted s", "error"], rows: points.map((p) => [p.run.name, p.step, p.x.toFixed(6), p.y.toFixed(6), signed(100 * (p.y / p.x - 1), 1) + " %"]) }),
  });
}

function stepsSection(place) {
  place.append(el("h2", { id: "steps-title" }, "Step by step"));
  if (data.skip_steps > 0) place.append(el("p", {}, `Charts by step show every step; figures elsewhere leave out the first ${data.skip_steps}.`));
  const runs = [...data.runs.entries()].map(([index, run]) => [run, index]);
  const grid = el("div", { class: "grid" });
  const imbalance = runs.flatMap(([run, i]) => [
    ...(has(run, "imbalance_measured") ? [byStep(run, i, "imbalance_measured", "measured")] : []),
    ...(has(run, "imbalance_micro_batch") ? [byStep(run, i, "imbalance_micro_batch", "predicted", true)] : [])]);
  const overCp = runs.filter(([run]) => run.dims.cp > 1 && has(run, "imbalance_cp")).map(([run, i]) => byStep(run, i, "imbalance_cp", "predicted", true));
  const times = runs.flatMap(([run, i]) => [byStep(run, i, run.source, run.source), ...(has(run, "predicted") && run.source !== "predicted" ? [byStep(run, i, "predicted", "predicted", true)] : [])]);
  const losses = runs.filter(([run]) => has(run, "loss")).map(([run, i]) => byStep(run, i, "loss", ""));  // a simulated run has none
  const parts = [
    stepFigure({ id: "imbalance", title: "Imbalance", about: "Slowest rank over the mean (measured) and slowest micro-batch over the mean (predicted); 1 is perfect.", series: imbalance, yFormat: ratioFormat(imbalance.flatMap((s) => s.ys)), tableFormat: (v) => v.toFixed(4), from: 1, guide: 1 }),
    stepFigure({ id: "step-time", title: "Step time", about: "Solid as run, dashed as predicted before the step.", series: times, yFormat: axisDuration, tableFormat: (v) => v.toFixed(6), from: 0 }),
    stepFigure({ id: "imbalance-cp", title: "Imbalance inside CP groups, predicted", about: "Slowest rank of a group over its mean.", series: overCp, yFormat: ratioFormat(overCp.flatMap((s) => s.ys)), tableFormat: (v) => v.toFixed(4), from: 1, guide: 1 }),
    stepFigure({ id: "loss", title: "Loss", about: "Mean over all labels of the step. Packers order documents differently, so single steps differ.", series: losses, yFormat: (v) => v.toFixed(2), tableFormat: (v) => v.toFixed(6) }),
    scatterFigure(runs.filter(([run]) => has(run, "predicted") && run.source !== "predicted")),
    ...data.runs.filter((run) => run.kinds.predicted && (run.kinds.measured || run.kinds.replayed)).map(errorChart),
  ];
  grid.append(...parts.filter(Boolean));
  place.append(grid);
}
