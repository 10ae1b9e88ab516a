// Charts as SVG, each with its table: a figure is drawn to the width it has and drawn again when that changes.

const redraws = [];
dark.addEventListener("change", () => redraws.forEach((draw) => draw()));

const tip = document.getElementById("tip");
function showTip(x, y, title, lines = []) {
  tip.replaceChildren(el("b", {}, title), ...lines.map(([name, value]) => el("div", {}, el("span", {}, name), el("span", {}, value))));
  tip.hidden = false;
  const box = tip.getBoundingClientRect();
  const left = x + 14 + box.width > innerWidth - 8 ? x - 14 - box.width : x + 14;
  tip.style.left = Math.max(8, left) + "px";
  tip.style.top = Math.max(8, Math.min(y + 14, innerHeight - box.height - 8)) + "px";
}
function hideTip() { tip.hidden = true; }
addEventListener("scroll", hideTip, { passive: true });

function tableOf(columns, rows) {
  return el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "table" }, el("table", {},
    el("thead", {}, el("tr", {}, ...columns.map((name) => el("th", { scope: "col" }, name)))),
    el("tbody", {}, ...rows.map((row) => el("tr", {}, ...row.map((value) => el("td", {}, String(value ?? "–"))))))));
}

// A closed table under a chart; filled when it is opened, copied as tab-separated text.
function tableBelow(table) {
  const copy = el("button", { type: "button" }, "Copy");
  copy.addEventListener("click", async () => {
    const { columns, rows } = table();
    const text = [columns, ...rows].map((row) => row.map((value) => value ?? "").join("\t")).join("\n");
    try {
      await navigator.clipboard.writeText(text);
    } catch {  // pages opened from a file have no clipboard in some browsers
      const area = el("textarea", { style: "position:fixed;opacity:0" });
      area.value = text;
      document.body.append(area);
      area.select();
      document.execCommand("copy");
      area.remove();
    }
    copy.textContent = "Copied";
    setTimeout(() => { copy.textContent = "Copy"; }, 1500);
  });
  const details = el("details", {}, el("summary", {}, "Table"));
  details.addEventListener("toggle", () => {
    if (!details.open) return;
    const { columns, rows } = table();
    const most = 500;
    const parts = [tableOf(columns, rows.slice(0, most)), copy];
    if (rows.length > most) parts.push(el("p", {}, `The first ${most} of ${grouped(rows.length)} rows; Copy takes all.`));
    details.replaceChildren(details.firstChild, ...parts);
  });
  return details;
}

// swatches: [{name, colour, style}]; style: "" (block), "line", "line dash", "hatch", "dots"
function legend(swatches) {
  return el("div", { class: "legend" }, ...swatches.map(({ name, colour, style = "" }) => el("span", {},
    el("i", { class: "swatch " + style, style: style.startsWith("line") ? `border-color:${colour}` : colour ? `background-color:${colour}` : "" }), name)));
}

// draw(width, height) gives {node, stops, legend}; table() gives {columns, rows}. The height is fixed before anything
// is drawn, so that nothing below moves.
function figure({ id, title, about, height, draw, table }) {
  const plot = el("div", { class: "plot", style: `height:${height}px` });
  const legendPlace = el("div", {});
  const node = el("figure", { class: "card", id }, el("figcaption", {}, el("h3", {}, title), about ? el("p", {}, about) : null),
                  plot, legendPlace, table ? tableBelow(table) : null);
  let drawn = 0;
  const redraw = () => {
    const width = plot.clientWidth;
    if (width === 0) return;
    drawn = width;
    const { node: chart, stops = [], direction = "x", legend: swatches = [] } = draw(width, height);
    chart.setAttribute("width", width);
    chart.setAttribute("height", height);
    chart.setAttribute("role", "img");
    chart.setAttribute("aria-label", title + (stops.length ? "; arrow keys read the values" : ""));
    attachStops(chart, stops, direction);
    plot.replaceChildren(chart);
    legendPlace.replaceChildren(swatches.length ? legend(swatches) : "");
  };
  redraws.push(redraw);
  new ResizeObserver(() => { if (plot.clientWidth !== drawn) redraw(); }).observe(plot);
  return node;
}

// stops: [{x, y, title, lines}], what the pointer and the arrow keys go through.
function attachStops(chart, stops, direction) {
  if (stops.length === 0) return;
  chart.setAttribute("tabindex", "0");
  const marker = svg("g", { "pointer-events": "none" });
  chart.append(marker);
  let current = -1;
  const show = (index, point) => {
    current = index;
    const stop = stops[index];
    marker.replaceChildren(direction === "x"
      ? svg("line", { class: "cursor", x1: stop.x, x2: stop.x, y1: stop.top ?? 0, y2: stop.bottom ?? chart.getAttribute("height") })
      : svg("circle", { class: "cursor", cx: stop.x, cy: stop.y, r: 6, fill: "none" }));
    const box = chart.getBoundingClientRect();
    showTip(point ? point.clientX : box.left + stop.x, point ? point.clientY : box.top + stop.y, stop.title, stop.lines);
  };
  const hide = () => { marker.replaceChildren(); hideTip(); };
  chart.addEventListener("pointermove", (event) => {
    const box = chart.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    const far = (stop) => direction === "x" ? Math.abs(stop.x - x) : direction === "y" ? Math.abs(stop.y - y) : Math.hypot(stop.x - x, stop.y - y);
    let best = 0;
    stops.forEach((stop, index) => { if (far(stop) < far(stops[best])) best = index; });
    show(best, event);
  });
  chart.addEventListener("pointerleave", hide);
  chart.addEventListener("blur", hide);
  chart.addEventListener("keydown", (event) => {
    const move = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (event.key === "Escape") hide();
    if (!move) return;
    event.preventDefault();
    show(Math.max(0, Math.min(stops.length - 1, current + move)));
  });
}

// Axes with round values; gives the two scales and the group to draw into.
function frame(width, height, { x, y, xTicks, yTicks, xFormat, yFormat, xLabel, left = 52 }) {
  const area = { left, right: width - 10, top: 8, bottom: height - 34 };
  const scale = ([low, high], from, to) => (value) => high === low ? (from + to) / 2 : from + (value - low) / (high - low) * (to - from);
  const sx = scale(x, area.left, area.right);
  const sy = scale(y, area.bottom, area.top);
  const node = svg("svg", { viewBox: `0 0 ${width} ${height}` });
  for (const value of yTicks ?? ticks(y[0], y[1], 4)) {
    node.append(svg("line", { class: "gridline", x1: area.left, x2: area.right, y1: sy(value), y2: sy(value) }),
                svg("text", { x: area.left - 7, y: sy(value) + 4, "text-anchor": "end" }, yFormat(value)));
  }
  for (const value of xTicks ?? ticks(x[0], x[1], width < 420 ? 4 : 8)) {
    node.append(svg("text", { x: sx(value), y: area.bottom + 16, "text-anchor": "middle" }, xFormat(value)));
  }
  node.append(svg("line", { class: "axis", x1: area.left, x2: area.right, y1: area.bottom, y2: area.bottom }),
              svg("text", { x: (area.left + area.right) / 2, y: height - 3, "text-anchor": "middle" }, xLabel));
  return { node, sx, sy, area };
}

// series: [{name, colour, dash, xs, ys}]; a null breaks the line.
function lineChart({ series, yFormat, xLabel, from, guide, unit = yFormat }) {
  return (width, height) => {
    const values = series.flatMap((s) => s.ys.filter(isNumber));
    const xs = [...new Set(series.flatMap((s) => s.xs))].sort((a, b) => a - b);
    let [low, high] = [Math.min(...values, from ?? Infinity), Math.max(...values, guide ?? -Infinity)];
    if (low === high) { low -= Math.abs(low) * 0.05 || 1; high += Math.abs(high) * 0.05 || 1; }
    if (from === undefined) low -= (high - low) * 0.05;
    high += (high - low) * 0.05;
    const xTicks = ticks(xs[0], xs[xs.length - 1], width < 420 ? 4 : 8).filter(Number.isInteger);
    const { node, sx, sy, area } = frame(width, height, { x: [xs[0], xs[xs.length - 1]], y: [low, high], xTicks, xFormat: String, yFormat, xLabel });
    if (guide !== undefined) node.append(svg("line", { class: "guide", x1: area.left, x2: area.right, y1: sy(guide), y2: sy(guide) }));
    for (const s of series) {
      let path = "";
      let lifted = true;
      s.ys.forEach((y, i) => {
        if (!isNumber(y)) { lifted = true; return; }
        path += `${lifted ? "M" : "L"}${sx(s.xs[i]).toFixed(1)} ${sy(y).toFixed(1)}`;
        lifted = false;
      });
      node.append(svg("path", { class: "series", d: path, fill: "none", stroke: s.colour(), "stroke-width": s.dash ? 1.5 : 2, "stroke-dasharray": s.dash ? "5 4" : "none", "stroke-linejoin": "round" }));
      if (s.xs.length <= 60 && !s.dash) {
        s.ys.forEach((y, i) => { if (isNumber(y)) node.append(svg("circle", { class: "point", cx: sx(s.xs[i]), cy: sy(y), r: 2.3, fill: s.colour() })); });
      }
    }
    const stops = xs.map((x) => ({
      x: sx(x), y: area.top + 20, top: area.top, bottom: area.bottom, title: "step " + x,
      lines: series.map((s) => [s.name, s.ys[s.xs.indexOf(x)]]).filter(([, y]) => y !== undefined).map(([name, y]) => [name, isNumber(y) ? unit(y) : "–"]),
    }));
    return { node, stops, legend: series.map((s) => ({ name: s.name, colour: s.colour(), style: s.dash ? "line dash" : "line" })) };
  };
}

// Columns stacked by part: bins: [label], parts: [{name, colour, values}].
function columnChart({ bins, parts, yFormat, xLabel }) {
  return (width, height) => {
    const totals = bins.map((_, bin) => parts.reduce((sum, part) => sum + part.values[bin], 0));
    const { node, sx, sy, area } = frame(width, height, { x: [0, bins.length], y: [0, Math.max(...totals, 1e-12)], xTicks: [], xFormat: String, yFormat, xLabel });
    const every = Math.max(1, Math.ceil(bins.length / ((area.right - area.left) / 40)));
    const stops = bins.map((label, bin) => {
      let below = 0;
      for (const part of parts) {
        const value = part.values[bin];
        if (value <= 0) continue;
        node.append(svg("rect", { class: "column", x: sx(bin) + 1, width: Math.max(1, sx(bin + 1) - sx(bin) - 2), y: sy(below + value), height: Math.max(0.4, sy(below) - sy(below + value)), fill: part.colour() }));
        below += value;
      }
      if (bin % every === 0) node.append(svg("text", { x: sx(bin), y: area.bottom + 16, "text-anchor": "middle" }, label.short));
      return { x: (sx(bin) + sx(bin + 1)) / 2, y: sy(below), top: area.top, bottom: area.bottom, title: label.long,
               lines: parts.filter((part) => part.values[bin] > 0).map((part) => [part.name, yFormat(part.values[bin])]) };
    });
    return { node, stops, legend: parts.map((part) => ({ name: part.name, colour: part.colour() })) };
  };
}
