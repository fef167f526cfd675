// Small tools. Names come from users: they enter the page as text nodes, never as markup.
const data = JSON.parse(document.getElementById('data').textContent);
const byId = (id) => document.getElementById(id);

function make(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === 'on') for (const [event, run] of Object.entries(value)) node.addEventListener(event, run);
    else if (value !== null && value !== undefined && value !== false) node.setAttribute(name, value === true ? '' : value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

const named = (name) => make('bdi', {}, name);

function svg(tag, attributes = {}, ...children) {
  const node = document.createElementNS('http://www.w3.org/2000/svg', tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

const superscript = (power) => String(power).replace(/./g, (c) => '⁻⁰¹²³⁴⁵⁶⁷⁸⁹'['-0123456789'.indexOf(c)]);
const minus = (words) => words.replace(/-/g, '−');

function number(value, digits = 3) {
  if (value === null || value === undefined) return 'unbounded';
  if (value === 0) return '0';
  const size = Math.abs(value);
  if (size >= 1e-3 && size < 1e5) {
    const places = Math.max(0, digits - 1 - Math.floor(Math.log10(size)));
    return minus(value.toFixed(Math.min(places, 6)));
  }
  const [mantissa, power] = value.toExponential(digits - 1).split('e');
  return `${minus(mantissa)}·10${superscript(Number(power))}`;
}

const tiny = (value) => (value === 0 ? '< 10⁻³⁰⁰' : number(value, 2));
const extent = (values) => values.reduce((most, v) => (v === null ? most : Math.max(most, Math.abs(v))), 0) || 1;

const count = (value) => String(value).replace(/\B(?=(\d{3})+$)/g, '\u202f');

// −log₁₀ of the two-sided normal p-value of z, however small: erfc by Chebyshev fit (Press et al.),
// relative error 1.2e-7.
function exponent(z) {
  const x = Math.abs(z) / Math.SQRT2;
  const t = 1 / (1 + x / 2);
  const series = [-1.26551223, 1.00002368, 0.37409196, 0.09678418, -0.18628806, 0.27886807, -1.13520398, 1.48851587, -0.82215223, 0.17087277];
  const inside = series.reduceRight((sum, c) => sum * t + c, 0) - x * x;
  return Math.max(0, -(Math.log(t) + inside) / Math.LN10);
}

function probability(minusLog) {
  if (minusLog < 2.9) return number(10 ** -minusLog, 2);
  const power = Math.floor(-minusLog);
  let mantissa = (10 ** (-minusLog - power)).toFixed(1);
  if (mantissa === '10.0') return `1.0·10${superscript(power + 1)}`;
  return `${mantissa}·10${superscript(power)}`;
}

const interval = (lower, upper) =>
  lower === null && upper === null ? 'unbounded' : `${number(lower)} to ${number(upper)}`;

const tip = byId('tip');
function showTip(event, words) {
  if (!words) { tip.hidden = true; return; }
  tip.textContent = words;
  tip.hidden = false;
  const box = tip.getBoundingClientRect();
  const left = Math.min(event.clientX + 14, document.documentElement.clientWidth - box.width - 8);
  const below = event.clientY + 16 + box.height < window.innerHeight;
  tip.style.left = `${Math.max(8, left)}px`;
  tip.style.top = `${below ? event.clientY + 16 : event.clientY - box.height - 10}px`;
}

// Colours of the style sheet, read when something is drawn, so that charts follow the theme.
function colours() {
  const style = getComputedStyle(document.documentElement);
  const of = (name) => style.getPropertyValue(`--${name}`).trim();
  return { ink: of('ink'), soft: of('soft'), line: of('line'), hair: of('hair'), accent: of('accent'), signal: of('signal'), noise: of('noise'), warm: of('warm'), card: of('card'), paper: of('paper') };
}

const font = (size, weight = 400) => `${weight} ${size}px system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "DejaVu Sans", sans-serif`;

// Everything drawn on a canvas: redrawn on a change of size, theme or medium.
const drawings = [];
const redraw = () => drawings.forEach((draw) => draw());

function sharp(canvas, width, height) {
  let ratio = Math.max(2, window.devicePixelRatio || 1);
  if (width * height * ratio * ratio > 1.6e7) ratio = 1;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  const pen = canvas.getContext('2d');
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.clearRect(0, 0, width, height);
  return pen;
}

function roundTicks(low, high, most) {
  const raw = (high - low) / most;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((k) => k * power).find((s) => s >= raw - 1e-12);
  const ticks = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; k += 1) ticks.push(Number((k * step).toPrecision(12)));
  return ticks;
}
