// The data, and how its values read. Names from outside reach the page as text nodes only.
const data = JSON.parse(document.getElementById("data").textContent);

function el(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes)) {
    if (key === "class") node.className = value;
    else if (key === "style") node.style.cssText = value;
    else if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else if (value !== false && value !== null && value !== undefined) node.setAttribute(key, value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

function svg(tag, attributes = {}, ...children) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.append(...children);
  return node;
}

const isNumber = (value) => typeof value === "number" && Number.isFinite(value);
const grouped = (value) => isNumber(value) ? Math.round(value).toLocaleString("en-US") : "–";
const ratio = (value, digits = 2) => isNumber(value) ? value.toFixed(digits) + "×" : "–";
const fixed = (value, digits) => isNumber(value) ? value.toFixed(digits) : "–";
const signed = (value, digits) => {  // no sign before a zero
  if (!isNumber(value)) return "–";
  const size = Math.abs(value).toFixed(digits);
  return Number(size) === 0 ? size : (value < 0 ? "−" : "+") + size;
};
const percent = (share) => isNumber(share) ? (100 * share).toFixed(Math.abs(share) < 0.0995 ? 1 : 0) + "\u00a0%" : "–";

// 1.234 s, 12.3 ms, 4.5 µs: three figures that count.
function duration(seconds) {
  if (!isNumber(seconds)) return "–";
  const size = Math.abs(seconds);
  const [scale, unit] = size >= 1 || size === 0 ? [1, "s"] : size >= 1e-3 ? [1e3, "ms"] : [1e6, "µs"];
  const value = seconds * scale;
  return value.toFixed(Math.abs(value) >= 100 || value === 0 ? 0 : Math.abs(value) >= 10 ? 1 : 2) + " " + unit;
}

// On an axis: without the zeros that say nothing.
const axisDuration = (seconds) => duration(seconds).replace(/(\.\d*?)0+ /, "$1 ").replace(". ", " ");

// As many digits as tell values of this list apart.
function ratioFormat(values) {
  const known = values.filter(isNumber);
  const span = Math.max(...known, 1) - Math.min(...known, 1);
  return (value) => value.toFixed(span < 0.003 ? 5 : span < 0.03 ? 4 : span < 0.3 ? 3 : 2);
}

function bytes(count) {
  const units = ["B", "KiB", "MiB", "GiB"];
  let unit = 0;
  while (count >= 1024 && unit + 1 < units.length) { count /= 1024; ++unit; }
  return (unit === 0 ? count : count.toFixed(1)) + " " + units[unit];
}

// 512, 4K, 1M: lengths are powers of two here.
function power(exponent) {
  return exponent < 10 ? String(2 ** exponent) : exponent < 20 ? 2 ** (exponent - 10) + "K" : 2 ** (exponent - 20) + "M";
}

// Round values that cover [low, high], about `count` of them.
function ticks(low, high, count) {
  if (!(high > low)) return [low];
  const rough = (high - low) / count;
  const scale = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((factor) => factor * scale).find((candidate) => candidate >= rough);
  const values = [];
  for (let value = Math.ceil(low / step - 1e-9) * step; value <= high + step * 1e-6; value += step) {
    values.push(Math.abs(value) < step * 1e-6 ? 0 : value);
  }
  return values;
}

const dark = matchMedia("(prefers-color-scheme: dark)");
const shade = (light, night) => dark.matches ? night : light;

// The base in slate, the others in colour: the eye goes to what changed.
const RUN_COLOURS = [["#64707e", "#97a3b1"], ["#1a62d6", "#6ea8ff"], ["#c2500f", "#ff9d5c"], ["#17804d", "#5fd39a"],
                     ["#8540c4", "#c492f5"], ["#a8780a", "#e0b64a"]];
const runColour = (index) => shade(...RUN_COLOURS[index % RUN_COLOURS.length]);
const DOMAIN_COLOURS = [["#2f6fd0", "#6ea8ff"], ["#d9772b", "#ffa766"], ["#2a9d6f", "#63d3a4"], ["#b0479a", "#e58fd2"],
                        ["#8a8f1c", "#cfd35a"], ["#5a4fc4", "#a39bf5"], ["#b3434b", "#f08f95"], ["#4b8fa3", "#8fcfe0"]];
const domainColour = (index) => shade(...DOMAIN_COLOURS[index % DOMAIN_COLOURS.length]);

const tag = (source) => el("span", { class: "tag" }, source);
const causeIndex = (name) => data.cause_names.indexOf(name);
const coordinate = (dims, rank) =>
  `dp ${Math.floor(rank / (dims.pp * dims.cp))}, pp ${Math.floor(rank / dims.cp) % dims.pp}, cp ${rank % dims.cp}`;
