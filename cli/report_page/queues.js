// The three queues of a ring plan and what else fills a layer: names and colours, the same in every chart.

// [light, dark]; a queue has its colour in every chart. The order is that of a pass: the longest rings first.
const QUEUES = {  // and what is no queue: moves, waits, the modules that are linear in tokens
  move: ["moves tokens", "#8540c4", "#c492f5"], inter_node: ["ring across nodes", "#c2500f", "#ff9d5c"],
  intra_node: ["ring in a node", "#1a62d6", "#6ea8ff"], local: ["local", "#17804d", "#5fd39a"], wait: ["waits for its ring", "#d3d8de", "#3a434d"],
  linear: ["linear modules", "#9aa4af", "#5a6570"],
};
const RINGS_FIRST = ["inter_node", "intra_node", "local"];
const MOSTLY = { move: "moving tokens", inter_node: "in a ring across nodes", intra_node: "in a ring in a node", local: "in local documents", wait: "waiting for its ring", linear: "in linear modules" };
const QUEUE_OF_TOKENS = { inter_node: "in rings across nodes", intra_node: "in rings in a node", local: "local" };
const queueColour = (queue) => shade(QUEUES[queue][1], QUEUES[queue][2]);
const tokensText = (length) => length >= 1024 && Number.isInteger(Math.log2(length)) ? power(Math.log2(length)) : grouped(length);
const shardingName = (name) => name.replaceAll("_", "-");
const counted = (count, one, many = one + "s") => `${grouped(count)} ${count === 1 ? one : many}`;
