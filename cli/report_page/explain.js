// The page of `ballast explain`: the answer on top, then where documents go, what other sharders take, the zones.

const { placement, trials, zones } = data;

document.getElementById("top").append(
  el("div", { class: "kicker" }, el("span", { class: "verdict" }, "predicted"), el("span", {}, zones.cost)),
  el("h1", {}, placement ? `${shardingName(placement.sharding)}, ${gapText(placement.lower_bound_gap)}; ${hasQueues(placement) ? "documents: " : ""}${queuesText(placement)}` : "Where a document may go: " + zonesShort(zones)),
  placement ? el("ul", { class: "story" }, ...(trials ? [el("li", {}, shardersAnswer(placement, trials))] : []), el("li", {}, zonesAnswer(zones))) : "");
if (placement) {
  drawPlacement(document.getElementById("placement"), placement, trials, data.why, document.getElementById("sharders"));
} else {  // a page of zones alone
  document.getElementById("placement").remove();
  Object.assign(document.querySelector(".skip"), { href: "#zones", textContent: "Skip to the zones" });
}
if (!placement || !trials) document.getElementById("sharders").remove();
drawZones(document.getElementById("zones"), zones);
document.documentElement.dataset.ready = "true";
