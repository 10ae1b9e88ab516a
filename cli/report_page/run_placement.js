// The placements of runs whose keys go round rings, below each other and to one scale, and the zones they were made by.
// Without such a run there is neither section.

// A section for each of `all`, in the place of `place`.
function sectionEach(place, all, draw) {
  const sections = all.map((_, i) => {
    const id = i === 0 ? place.id : `${place.id}-${i + 1}`;
    return el("section", { id, "aria-labelledby": id + "-title" });
  });
  place.replaceWith(...sections);
  sections.forEach((section, i) => draw(section, all[i]));
}

const placedRuns = () => data.runs.filter((run) => run.placement);

function runPlacements(place) {
  const runs = placedRuns();
  const placements = runs.map((run) => run.placement.placement);
  const scale = {
    seconds: Math.max(0, ...placements.flatMap(({ ranks }) => ranks.map((rank) => rankTimes(rank).end))),
    tokens: Math.max(0, ...placements.flatMap(({ ranks }) => ranks.map((rank) => Math.max(rank.tokens, rank.linear_tokens)))),
  };
  sectionEach(place, runs, (section, run) => drawPlacement(section, run.placement.placement, {
    title: "Where documents go" + (data.runs.length > 1 ? ": " + run.name : ""), scale, ...stepPlace(run.placement, run.dims.dp) }));
}

// Runs of one cost have the same zones, looked for up to lengths of their own: the longest is drawn.
function runZones(place) {
  const byCost = new Map();
  for (const { name, placement: { zones } } of placedRuns()) {
    if (!zones) continue;
    const key = zones.cost + " " + zones.ranks_per_node;
    const known = byCost.get(key) ?? { zones, names: [] };
    byCost.set(key, { zones: zones.longest_tokens > known.zones.longest_tokens ? zones : known.zones, names: [...known.names, name] });
  }
  const each = [...byCost.values()];
  sectionEach(place, each, (section, { zones, names }) => drawZones(section, zones, "Zones by length" + (each.length > 1 ? ": " + names.join(", ") : "")));
}
