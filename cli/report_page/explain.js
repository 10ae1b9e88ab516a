// The page of `ballast explain`: the answer on top, then where documents go, what other sharders take, the zones.

const { placement, trials, zones } = data;
const sectionOf = (id) => document.getElementById(id);

sectionOf("top").append(
  el("div", { class: "kicker" }, el("span", { class: "verdict" }, "predicted"), el("span", {}, zones.cost)),
  el("h1", {}, placement ? `${shardingName(placement.sharding)}, ${overText(placement.over_even_share)}; ${hasQueues(placement) ? "documents: " : ""}${queuesText(placement)}` : "Where a document may go: " + zonesShort(zones)),
  placement ? el("ul", { class: "story" }, el("li", {}, shardersAnswer(placement, trials)), el("li", {}, zonesAnswer(zones))) : "");
if (placement) {
  drawPlacement(sectionOf("placement"), placement);
  drawSharders(sectionOf("sharders"), placement, trials, data.why);
} else {  // a page of zones alone
  sectionOf("placement").remove();
  sectionOf("sharders").remove();
  Object.assign(document.querySelector(".skip"), { href: "#zones", textContent: "Skip to the zones" });
}
drawZones(sectionOf("zones"), zones);
document.documentElement.dataset.ready = "true";
