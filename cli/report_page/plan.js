// The planner's candidates: the choice, all that were simulated as time against memory, degree by degree what became of
// the rest.

const best = data.candidates[0];
const against = (base) => (tokensPerSecond) => signed(100 * (tokensPerSecond / base - 1), 1) + " %";
const toFirst = against(best.tokens_per_second);                 // of those ranked, over all steps
const slower = against(data.simulated[0].tokens_per_second);     // of all simulated, over the first steps
const degreesText = (d) => `tp ${d.tp} cp ${d.cp} pp ${d.pp} dp ${d.dp}`;

function planHeader(place) {
  place.append(
    el("div", { class: "kicker" }, el("span", { class: "verdict" }, "predicted"), el("span", {}, data.run_toml), el("span", {}, data.cluster)),
    el("h1", {}, `${grouped(data.gpus)} GPUs: ${grouped(best.tokens_per_second)} tokens a second with ${best.text}`),
    el("ul", { class: "story" },
      el("li", {}, `A step takes ${duration(best.step_seconds)}: ${percent(best.bubble_share)} bubble, ${percent(best.exposed_communication_share)} exposed communication, the slowest rank works ${fixed(best.compute.max_over_mean, 3)} of the mean. Memory: ${bytes(best.peak_memory_bytes)} of ${bytes(data.memory_bytes)}.`),
      el("li", {}, `${grouped(data.considered)} choices were considered in ${duration(data.planning_seconds)}; ${grouped(data.simulated.length)} of them simulated. ` +
        "Turned away: " + Object.entries(data.rejected.by_reason).map(([reason, count]) => `${reason} (${grouped(count)})`).join("; ") + ".")));
}

function candidatesSection(place) {
  // Those far behind would squeeze the rest together; the table has them.
  const points = data.simulated.filter((c) => c.tokens_per_second > 0.65 * data.simulated[0].tokens_per_second);
  const far = data.simulated.length - points.length;
  const tps = [...new Set(points.map((c) => c.degrees.tp))].sort((a, b) => b - a);
  place.append(el("h2", { id: "candidates-title" }, "Candidates"), el("p", {}, "Every choice that was simulated: low and to the left is better. Point at one for what it is and why it is not the first."),
    figure({
      id: "time-memory", height: 380, title: "Time against memory", about: "Time for a million tokens, predicted over the first steps; the dashed line is the memory of a GPU." + (far ? ` ${far} choices slower by more than a third are only in the table.` : ""),
      draw: (width, height) => {
        const xs = points.map((c) => c.peak_memory_bytes / 2 ** 30);
        const ys = points.map((c) => 1e6 / c.tokens_per_second);
        const most = data.memory_bytes / 2 ** 30;
        const { node, sx, sy, area } = frame(width, height, { x: [Math.min(...xs) * 0.97, most * 1.01], y: [Math.min(...ys) * 0.98, Math.max(...ys) * 1.02], xFormat: (v) => v + " GiB", yFormat: axisDuration, xLabel: "memory of the fullest GPU", left: 62 });
        node.append(svg("line", { class: "guide", x1: sx(most), x2: sx(most), y1: area.top, y2: area.bottom }));
        const stops = points.map((c, i) => {
          const first = i === 0;
          node.append(svg("circle", { class: "point", cx: sx(xs[i]), cy: sy(ys[i]), r: first ? 6 : 3.2, fill: runColour(1 + tps.indexOf(c.degrees.tp)), opacity: first ? 1 : 0.65 }));
          return { x: sx(xs[i]), y: sy(ys[i]), title: c.text, lines: [
            ["tokens a second", grouped(c.tokens_per_second)], ["to the first", slower(c.tokens_per_second)], ["step", duration(c.step_seconds)],
            ["bubble", percent(c.bubble_share)], ["exposed communication", percent(c.exposed_communication_share)],
            ["slowest rank over mean", fixed(c.compute.max_over_mean, 3)], ["memory", bytes(c.peak_memory_bytes)]] };
        });
        return { node, stops, direction: "xy", legend: tps.map((tp, i) => ({ name: "tp " + tp, colour: runColour(1 + i) })) };
      },
      table: () => ({ columns: ["tokens a second", "step s", "to the first", "bubble", "exposed", "memory GiB", "choice"], rows: data.simulated.map((c) => [grouped(c.tokens_per_second), c.step_seconds.toFixed(4), slower(c.tokens_per_second), percent(c.bubble_share), percent(c.exposed_communication_share), (c.peak_memory_bytes / 2 ** 30).toFixed(1), c.text]) }),
    }));
  const rows = data.candidates.map((c, i) => el("tr", {}, el("th", { scope: "row" }, String(i + 1)), el("td", {}, grouped(c.tokens_per_second)), el("td", {}, toFirst(c.tokens_per_second)), el("td", {}, duration(c.step_seconds)), el("td", {}, percent(c.bubble_share)), el("td", {}, percent(c.exposed_communication_share)), el("td", {}, bytes(c.peak_memory_bytes)), el("td", { class: "text" }, c.text)));
  place.append(el("div", { class: "card scroll" }, el("table", {}, el("thead", {}, el("tr", {}, ...["rank", "tokens / s", "to the first", "step", "bubble", "exposed", "memory", "choice"].map((name) => el("th", { scope: "col" }, name)))), el("tbody", {}, ...rows))));
}

function variationsSection(place) {
  const rows = data.variations.map((v) => el("tr", {}, el("th", { scope: "row" }, v.what), el("td", {}, toFirst(v.tokens_per_second)), el("td", { class: "text" }, v.missing_bytes > 0 ? `needs ${bytes(v.missing_bytes)} more memory than there is` : "")));
  place.append(el("h2", { id: "variations-title" }, "The first with one thing changed"), el("p", {}, "What each part of the choice is worth, over the same documents."),
    el("div", { class: "card scroll" }, el("table", {}, el("thead", {}, el("tr", {}, ...["changed", "tokens / s", ""].map((name) => el("th", { scope: "col" }, name)))), el("tbody", {}, ...rows))));
}

function degreesSection(place) {
  const rows = data.degrees.map((d) => el("tr", {}, el("th", { scope: "row" }, degreesText(d.degrees)), el("td", {}, grouped(d.choices)), el("td", {}, grouped(d.fit)),
    el("td", { class: "text" }, d.verdict === "does not fit" ? `does not fit: ${bytes(d.missing_bytes)} too much at the least`
      : d.verdict === "simulated" ? `${slower(d.tokens_per_second)} (simulated): ${d.best}`
      : `at the most ${slower(d.tokens_per_second_at_most)}, without a bubble or a transfer between stages: ${d.best}`)));
  place.append(el("h2", { id: "degrees-title" }, "Degree by degree"), el("p", {}, "What became of all choices of each degrees, the best first."),
    el("div", { class: "card scroll" }, el("table", {}, el("thead", {}, el("tr", {}, ...["degrees", "choices", "fit", "at its best"].map((name) => el("th", { scope: "col" }, name)))), el("tbody", {}, ...rows))));
}

function placementSections(place, zonesPlace) {
  if (!data.placement) {
    place.remove();
    zonesPlace.remove();
    return;
  }
  const { of, zones, placement } = data.placement;
  const { of: where, source } = stepPlace(data.placement, of.dp);
  const whose = of.ranked === 1 ? "Of the first candidate. " : `Of ${of.ranked ? "candidate " + of.ranked : "a candidate that is not among those ranked"}, the best whose keys go round rings: ${of.choice}. `;
  drawPlacement(place, placement, { of: where, source: whose + source });
  drawZones(zonesPlace, zones);
}

planHeader(document.getElementById("top"));
candidatesSection(document.getElementById("candidates"));
variationsSection(document.getElementById("variations"));
placementSections(document.getElementById("placement"), document.getElementById("zones"));
degreesSection(document.getElementById("degrees"));
document.getElementById("about").append(el("h2", { id: "about-title" }, "About"), el("p", {}, `Made by ballast plan ${data.run_toml} --page; all figures are predicted by ${data.predicted_by}.`));
document.documentElement.dataset.ready = "true";
