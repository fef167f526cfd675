// Charts on a canvas, with hover, selection by pointer or arrow keys, and words for a screen reader.
const MARGIN = { left: 48, right: 10, top: 22, bottom: 40 };

// describe() -> {points: [{x, y, i, colour, size}], x: [low, high], y: [low, high], xTicks, xTitle, yTitle,
//   lines: [{y, words}], bars: [{y, low, high, i}], label}; words(i) for a tip; pick(i) on selection.
function pointChart(host, { describe, words, pick, picked, height = 340, order = (a, b) => b.y - a.y }) {
  const canvas = make('canvas', { tabindex: '0', role: 'img' });
  host.replaceChildren(canvas);
  let seen = [];
  let ranked = [];
  let hovered = null;

  function draw() {
    const width = host.clientWidth;
    if (!width) return;
    const chart = describe();
    const pen = sharp(canvas, width, height);
    const colour = colours();
    const across = (v) => MARGIN.left + (v - chart.x[0]) / (chart.x[1] - chart.x[0] || 1) * (width - MARGIN.left - MARGIN.right);
    const up = (v) => height - MARGIN.bottom - (v - chart.y[0]) / (chart.y[1] - chart.y[0] || 1) * (height - MARGIN.top - MARGIN.bottom);
    canvas.setAttribute('aria-label', `${chart.label} Arrow keys go through the points, the strongest first.`);
    axes(pen, chart, colour, across, up, width, height);
    for (const bar of chart.bars || []) segment(pen, across, up, bar, chart, colour);
    seen = chart.points.map((point) => ({ ...point, px: across(point.x), py: up(point.y) }));
    ranked = [...seen].sort((a, b) => order(a, b) || a.i - b.i);
    for (const point of seen) dot(pen, point.px, point.py, point.size || 3, point.hollow ? colour.paper : point.colour, point.hollow ? point.colour : null);
    for (const i of new Set([hovered, picked()])) {
      const point = seen.find((p) => p.i === i);
      if (!point) continue;
      if (point.bar) segment(pen, across, up, { y: point.y, low: point.bar[0], high: point.bar[1], strong: true }, chart, colour);
      dot(pen, point.px, point.py, (point.size || 3) + 2, point.colour, colour.ink);
    }
  }
  function nearest(event) {
    const box = canvas.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    let best = null;
    let least = 20 * 20;
    for (const point of seen) {
      const distance = (point.px - x) ** 2 + (point.py - y) ** 2;
      if (distance < least) [best, least] = [point, distance];
    }
    return best && best.i;
  }
  canvas.addEventListener('pointermove', (event) => {
    const i = nearest(event);
    showTip(event, i === null ? null : words(i));
    if (i !== hovered) { hovered = i; draw(); }
  });
  canvas.addEventListener('pointerleave', (event) => { showTip(event, null); hovered = null; draw(); });
  canvas.addEventListener('click', (event) => { const i = nearest(event); if (i !== null) pick(i); });
  canvas.addEventListener('keydown', (event) => {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (step === undefined || !ranked.length) return;
    event.preventDefault();
    const at = ranked.findIndex((point) => point.i === picked());
    pick(ranked[at < 0 ? 0 : (at + step + ranked.length) % ranked.length].i);
  });
  drawings.push(draw);
  return draw;
}

function axes(pen, chart, colour, across, up, width, height) {
  pen.font = font(12);
  pen.lineWidth = 1;
  pen.textBaseline = 'middle';
  pen.textAlign = 'right';
  for (const tick of chart.yTicks || roundTicks(chart.y[0], chart.y[1], 5)) {
    pen.strokeStyle = colour.hair;
    stroke(pen, MARGIN.left, up(tick), width - MARGIN.right, up(tick));
    pen.fillStyle = colour.soft;
    pen.fillText(minus(String(tick)), MARGIN.left - 6, up(tick));
  }
  pen.textAlign = 'center';
  pen.textBaseline = 'top';
  let taken = -Infinity;
  for (const tick of chart.xTicks) {
    const half = pen.measureText(tick.words).width / 2;
    const at = Math.min(across(tick.at), width - half);
    if (at - half < taken + 3) continue;
    taken = at + half;
    pen.fillText(tick.words, at, height - MARGIN.bottom + 6);
  }
  pen.strokeStyle = colour.soft;
  stroke(pen, MARGIN.left, height - MARGIN.bottom, width - MARGIN.right, height - MARGIN.bottom);
  if (chart.zero) {
    pen.strokeStyle = colour.line;
    stroke(pen, across(0), MARGIN.top, across(0), height - MARGIN.bottom);
  }
  pen.fillText(chart.xTitle, (MARGIN.left + width - MARGIN.right) / 2, height - 15);
  pen.textAlign = 'left';
  pen.fillText(chart.yTitle, 2, 2);
  for (const line of chart.lines || []) {
    pen.setLineDash([5, 3]);
    pen.strokeStyle = line.colour || colour.warm;
    stroke(pen, MARGIN.left, up(line.y), width - MARGIN.right, up(line.y));
    pen.setLineDash([]);
    pen.fillStyle = line.colour || colour.warm;
    pen.textAlign = 'right';
    pen.textBaseline = 'bottom';
    pen.fillText(line.words, width - MARGIN.right - 2, up(line.y) - 2);
  }
}

function stroke(pen, x1, y1, x2, y2) {
  pen.beginPath();
  pen.moveTo(x1, y1);
  pen.lineTo(x2, y2);
  pen.stroke();
}

function dot(pen, x, y, size, fill, edge) {
  pen.beginPath();
  pen.arc(x, y, size, 0, 2 * Math.PI);
  pen.fillStyle = fill;
  pen.fill();
  if (edge) { pen.strokeStyle = edge; pen.lineWidth = 1.5; pen.stroke(); pen.lineWidth = 1; }
}

// A horizontal interval at height y; an unbounded end runs to the edge of the chart.
function segment(pen, across, up, bar, chart, colour) {
  const clamp = (v, end) => across(v === null ? chart.x[end] : Math.min(chart.x[1], Math.max(chart.x[0], v)));
  pen.strokeStyle = bar.strong ? colour.ink : colour.soft;
  pen.globalAlpha = bar.strong ? 1 : 0.45;
  pen.lineWidth = bar.strong ? 2 : 1;
  stroke(pen, clamp(bar.low, 0), up(bar.y), clamp(bar.high, 1), up(bar.y));
  pen.globalAlpha = 1;
  pen.lineWidth = 1;
}

// R² of outcomes, best first, each with its interval.
function rangeChart(host, { outcomes, pick, height = 260 }) {
  const canvas = make('canvas', { role: 'img' });
  host.replaceChildren(canvas);
  const ranked = outcomes.name.map((_, i) => i).sort((a, b) => outcomes.r2[b] - outcomes.r2[a] || a - b);
  let geometry = null;

  function draw() {
    const width = host.clientWidth;
    if (!width) return;
    const pen = sharp(canvas, width, height);
    const colour = colours();
    const top = Math.min(1, Math.max(0.1, Math.max(...outcomes.upper) * 1.05));
    const step = (width - MARGIN.left - MARGIN.right) / ranked.length;
    const up = (v) => height - MARGIN.bottom - (v / top) * (height - MARGIN.top - MARGIN.bottom);
    const across = (rank) => MARGIN.left + (rank + 0.5) * step;
    const lines = data.predicted ? [{ y: Math.min(data.predicted.ols, top), words: 'predicted without privacy', colour: colour.soft }] : [];
    const last = ranked.length;
    axes(pen, { y: [0, top], xTicks: [{ at: 0, words: '1' }, { at: last - 1, words: count(last) }], xTitle: 'outcomes, largest R² first', yTitle: 'R²', lines: data.predicted && data.predicted.ols <= top ? lines : [] }, colour, across, up, width, height);
    const wide = Math.min(5, Math.max(0.6, step * 0.5));
    ranked.forEach((i, rank) => {
      pen.strokeStyle = outcomes.trusted[i] ? (outcomes.found[i] ? colour.signal : colour.noise) : colour.warm;
      pen.globalAlpha = 0.55;
      pen.lineWidth = wide;
      stroke(pen, across(rank), up(outcomes.lower[i]), across(rank), up(outcomes.upper[i]));
    });
    pen.globalAlpha = 1;
    const size = Math.min(3.5, Math.max(1, step * 0.45));
    ranked.forEach((i, rank) => outcomes.trusted[i] && dot(pen, across(rank), up(outcomes.r2[i]), size, outcomes.found[i] ? colour.signal : colour.soft));
    geometry = { step };
    canvas.setAttribute('aria-label', `R² of ${last} outcomes with intervals; the table below has the numbers.`);
  }
  const at = (event) => ranked[Math.floor((event.clientX - canvas.getBoundingClientRect().left - MARGIN.left) / geometry.step)];
  canvas.addEventListener('pointermove', (event) => {
    const i = at(event);
    showTip(event, i === undefined ? null : `${outcomes.name[i]}\nR² ${outcomes.trusted[i] ? number(outcomes.r2[i]) : 'not determined'} (${interval(outcomes.lower[i], outcomes.upper[i])})`);
  });
  canvas.addEventListener('pointerleave', (event) => showTip(event, null));
  canvas.addEventListener('click', (event) => { const i = at(event); if (i !== undefined) pick(i); });
  drawings.push(draw);
  draw();
}
