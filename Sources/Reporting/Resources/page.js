// Values and zoom of a page's charts, by mouse, keyboard and touch. Without this the page has its charts, and their
// numbers in tables.
(() => {
  'use strict';
  const SVG = 'http://www.w3.org/2000/svg';
  const groups = new Map();
  let own = 0;

  const make = (name, attributes, parent) => {
    const element = document.createElementNS(SVG, name);
    for (const key in attributes) element.setAttribute(key, attributes[key]);
    return parent.appendChild(element);
  };

  // Numbers as the tables have them.
  const digits = (value, count) => {
    if (value === 0) return '0';
    const places = Math.min(100, Math.max(0, count - 1 - Math.floor(Math.log10(Math.abs(value)))));
    return Number(value.toFixed(places)).toLocaleString('en-US', { maximumFractionDigits: places });
  };
  const whole = value => Math.round(value).toLocaleString('en-US');
  const scaled = (value, size, steps) => {
    let step = steps[0];
    for (const each of steps) if (size >= each[0]) step = each;
    const number = value / (step[1]);
    return (step[3] && number === Math.round(number) ? whole(number) : digits(number, 3)) + step[2];
  };
  const times = [[0, 1e-6, ' µs'], [.000_999_9, 1e-3, ' ms'], [.999_9, 1, ' s'], [120, 60, ' min'], [7200, 3600, ' h'], [172800, 86400, ' d']];
  const bytes = end => [[0, 1, ' B', 1], [1024, 1024, ' KiB'], [2 ** 20, 2 ** 20, ' MiB'], [2 ** 30, 2 ** 30, ' GiB'], [2 ** 40, 2 ** 40, ' TiB']].map(step => [step[0], step[1], step[2] + end, step[3]]);
  const each = { seconds: 1, milliseconds: 1e-3, microseconds: 1e-6 };
  const text = (axis, value) => {
    if (axis.names) return axis.names[Math.round(value)] ?? '';
    if (axis.clock !== undefined) return clock(axis, value, 1e-3);
    switch (axis.unit) {
      case 'count': return value === Math.round(value) ? whole(value) : digits(value, 3);
      case 'perSecond': return (Math.abs(value) >= 100 || value === Math.round(value) ? whole(value) : digits(value, 3)) + '/s';
      case 'share': {
        let count = 3;
        while (value < 1 && count < 9 && digits(value * 100, count) === '100') count += 1;
        return digits(value * 100, count) + ' %';
      }
      case 'bytes': return scaled(value, Math.abs(value), bytes(''));
      case 'bytesPerSecond': return scaled(value, Math.abs(value), bytes('/s'));
      case 'plain': return digits(value, 4);
      default: {
        const seconds = value * each[axis.unit];
        return value === 0 ? '0 ' + { seconds: 's', milliseconds: 'ms', microseconds: 'µs' }[axis.unit] : scaled(seconds, Math.abs(seconds), times);
      }
    }
  };
  const clock = (axis, value, step) => {
    const places = step >= 1 ? 0 : step >= 1e-3 ? 3 : 6;
    const seconds = ((axis.clock + value) % 86400 + 86400) % 86400;
    const units = Math.round(seconds * 10 ** places);
    const rest = Math.floor(units / 10 ** places);
    const two = number => String(number).padStart(2, '0');
    const part = places ? '.' + String(units % 10 ** places).padStart(places, '0') : '';
    return `${two(Math.floor(rest / 3600) % 24)}:${two(Math.floor(rest / 60) % 60)}:${two(rest % 60)}${part}`;
  };

  // Places worth a label on a linear axis.
  const ticks = (axis, low, high) => {
    const least = (high - low) / 6, unit = each[axis.unit] ?? 1;
    const steps = [2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400];
    let step = axis.unit in each && least * unit > 1 ? (steps.find(each => each >= least * unit) ?? 86400) / unit : null;
    if (step === null) {
      const power = 10 ** Math.floor(Math.log10(least));
      step = power * ([1, 2, 5].find(each => each * power >= least * (1 - 1e-9)) ?? 10);
      if (axis.unit === 'count') step = Math.max(1, step);
    }
    const from = axis.clock ?? 0, places = [];
    for (let at = Math.ceil((low + from) / step - 1e-9); at * step - from <= high + step * 1e-9; at += 1) places.push(at * step - from);
    return { step, places };
  };

  class Chart {
    constructor(svg) {
      this.svg = svg;
      this.data = JSON.parse(svg.dataset.chart);
      this.x = this.data.x;
      this.boxes = [...svg.querySelectorAll('svg.z')];
      this.box = this.boxes.map(box => box.getAttribute('viewBox').split(' ').map(Number));
      this.movable = [...svg.querySelectorAll('[data-at]')].map(element => {
        const attribute = element.tagName === 'circle' ? 'cx' : 'x';
        return { element, attribute, full: element.getAttribute(attribute) };
      });
      this.ticks = svg.querySelector('g.t');
      this.fullTicks = this.ticks?.innerHTML;
      this.cursor = make('path', { class: 'cursor', d: '' }, svg);
      this.selection = make('rect', { class: 'selected', x: 0, y: this.data.top, height: this.data.bottom - this.data.top, width: 0 }, svg);
      svg.setAttribute('tabindex', '0');
    }
    get left() { return this.x.from }
    get right() { return this.x.to }
    // The scale is that of the whole axis; a zoom is linear in the picture.
    share(value) {
      const { low, high, layout } = this.x;
      if (layout === 'logarithmic') return Math.log(value / low) / Math.log(high / low);
      if (layout === 'percentile') return Math.log(1 - value) / Math.log(1 - high);
      return (value - low) / (high - low);
    }
    value(share) {
      const { low, high, layout } = this.x;
      if (layout === 'logarithmic') return low * (high / low) ** share;
      if (layout === 'percentile') return 1 - (1 - high) ** share;
      return low + (high - low) * share;
    }
    place(share) { return this.left + (this.right - this.left) * (share - this.group.from) / (this.group.to - this.group.from) }
    shareAt(event) {
      const box = this.svg.getBoundingClientRect();
      const place = (event.clientX - box.left) / box.width * 720;
      const share = (place - this.left) / (this.right - this.left);
      return this.group.from + Math.min(1, Math.max(0, share)) * (this.group.to - this.group.from);
    }
    draw() {
      const { from, to, at } = this.group, isWhole = from === 0 && to === 1;
      this.boxes.forEach((box, index) => {
        const [x, y, width, height] = this.box[index];
        box.setAttribute('viewBox', `${x + width * from} ${y} ${width * (to - from)} ${height}`);
      });
      for (const { element, attribute, full } of this.movable) {
        if (isWhole) { element.setAttribute(attribute, full); element.removeAttribute('visibility'); continue }
        const place = this.place((Number(element.dataset.at) - this.left) / (this.right - this.left));
        element.setAttribute(attribute, place.toFixed(1));
        element.setAttribute('visibility', place < this.left - 1 || place > this.right + 1 ? 'hidden' : 'visible');
      }
      if (this.ticks) isWhole ? this.ticks.innerHTML = this.fullTicks : this.drawTicks();
      const line = at === null || at < from || at > to ? '' : `M${this.place(at).toFixed(1)} ${this.data.top}V${this.data.bottom}`;
      this.cursor.setAttribute('d', line);
    }
    drawTicks() {
      this.ticks.textContent = '';
      const found = ticks(this.x, this.value(this.group.from), this.value(this.group.to));
      let end = -Infinity;
      for (const tick of found.places) {
        const place = this.place(this.share(tick));
        make('path', { class: 'x', d: `M${place.toFixed(1)} ${this.data.bottom}v5` }, this.ticks);
        if (this.data.hidesTicks || place < end) continue;
        const label = this.x.clock === undefined ? text(this.x, Number(tick.toPrecision(10))) : clock(this.x, tick, found.step);
        const half = label.length * 5.8, last = place + half > 719;
        const element = make('text', { class: last ? 'e' : 'm', x: last ? 719 : place.toFixed(1), y: this.data.bottom + 6, dy: '1em' }, this.ticks);
        element.textContent = label;
        end = place + 2 * half + 8;
      }
    }
    // The values at the cursor: of a bar the one it stands on, of steps the last one, else the nearest.
    values() {
      const at = this.value(this.group.at), found = [];
      for (const series of this.data.series) {
        let best = -1, distance = Infinity;
        for (let index = 0; index < series.points.length; index += 2) {
          const x = series.points[index];
          if (series.shape === 'steps' && x > at + 1e-9 * Math.abs(at)) break;
          const far = Math.abs(this.share(x) - this.group.at);
          if (far <= distance || series.shape === 'steps') { best = index; distance = far }
        }
        if (best < 0) continue;
        if (series.width && Math.abs(series.points[best] - at) > series.width / 2 + 1e-9) continue;
        if (!series.width && series.shape !== 'steps' && distance > .03 * (this.group.to - this.group.from)) continue;
        found.push((series.name ? series.name + ' ' : '') + text(this.data.y, series.points[best + 1]));
      }
      return found;
    }
    // Where the values are, for the keys.
    get stops() {
      this.found ??= [...new Set(this.data.series.flatMap(series => series.points.filter((_, index) => index % 2 === 0)))]
        .map(x => this.share(x)).filter(share => share >= -1e-9 && share <= 1 + 1e-9).sort((a, b) => a - b);
      return this.found.length > 1 ? this.found : Array.from({ length: 101 }, (_, index) => index / 100);
    }
  }

  class Group {
    constructor(isZoomable) { Object.assign(this, { charts: [], from: 0, to: 1, at: null, isZoomable }) }
    show(from, to) {
      if (!this.isZoomable) return;
      const width = Math.min(1, Math.max(1e-4, to - from));
      this.from = Math.min(1 - width, Math.max(0, from));
      this.to = width === 1 ? 1 : this.from + width;
      this.draw();
    }
    zoom(factor, around = this.at ?? (this.from + this.to) / 2) {
      this.show(around - (around - this.from) * factor, around + (this.to - around) * factor);
    }
    move(at) { this.at = at; this.draw() }
    draw() {
      for (const chart of this.charts) chart.draw();
      for (const figure of new Set(this.charts.map(chart => chart.figure))) figure.draw();
    }
  }

  // A figure's line of values and buttons, above its charts.
  class Figure {
    constructor(element) {
      this.element = element;
      this.charts = [];
      this.bar = document.createElement('div');
      this.bar.className = 'values-at';
      this.output = this.bar.appendChild(document.createElement('output'));
      this.buttons = [['all', 'Show all', group => group.show(0, 1)], ['−', 'Zoom out', group => group.zoom(2)], ['+', 'Zoom in', group => group.zoom(.5)]].map(([sign, name, act]) => {
        const button = this.bar.appendChild(document.createElement('button'));
        button.type = 'button';
        button.textContent = sign;
        button.setAttribute('aria-label', name);
        button.title = name;
        button.addEventListener('click', () => act(this.group));
        return button;
      });
    }
    get group() { return this.charts[0].group }
    finish(hint) {
      this.element.insertBefore(this.bar, this.charts[0].svg);
      this.hint = hint;
      if (!this.group.isZoomable) for (const button of this.buttons) button.hidden = true;
      this.draw();
    }
    draw() {
      const { group } = this;
      this.buttons[0].disabled = this.buttons[1].disabled = group.from === 0 && group.to === 1;
      this.output.textContent = '';
      if (group.at === null) { this.output.textContent = this.hint; return }
      const at = document.createElement('b');
      at.textContent = text(this.charts[0].x, this.charts[0].value(group.at));
      this.output.append(at, ' ', this.charts.flatMap(chart => chart.values()).join(' · '));
    }
  }

  const listen = chart => {
    const { svg } = chart, touches = new Map();
    let start = null, pinch = null;
    svg.addEventListener('pointerdown', event => {
      touches.set(event.pointerId, event.clientX);
      if (touches.size === 2) {
        const [a, b] = [...touches.values()];
        pinch = { width: Math.abs(a - b) || 1, from: chart.group.from, to: chart.group.to };
        start = null;
        return;
      }
      if (event.pointerType === 'mouse' && event.button === 0 && chart.group.isZoomable) start = chart.shareAt(event);
      chart.group.move(chart.shareAt(event));
      if (event.isTrusted) svg.setPointerCapture(event.pointerId);
    });
    svg.addEventListener('pointermove', event => {
      if (touches.has(event.pointerId)) touches.set(event.pointerId, event.clientX);
      if (pinch && touches.size === 2) {
        const [a, b] = [...touches.values()];
        const middle = (pinch.from + pinch.to) / 2, half = (pinch.to - pinch.from) / 2 * pinch.width / (Math.abs(a - b) || 1);
        chart.group.show(middle - half, middle + half);
        return;
      }
      const share = chart.shareAt(event);
      chart.group.move(share);
      if (start === null) return;
      const [a, b] = [chart.place(Math.min(start, share)), chart.place(Math.max(start, share))];
      chart.selection.setAttribute('x', a);
      chart.selection.setAttribute('width', b - a);
    });
    const end = event => {
      touches.delete(event.pointerId);
      if (touches.size < 2) pinch = null;
      chart.selection.setAttribute('x', 0);
      chart.selection.setAttribute('width', 0);
      if (start === null) return;
      const share = chart.shareAt(event), [a, b] = [Math.min(start, share), Math.max(start, share)];
      start = null;
      if (event.type === 'pointerup' && b - a > .015 * (chart.group.to - chart.group.from)) chart.group.show(a, b);
    };
    svg.addEventListener('pointerup', end);
    svg.addEventListener('pointercancel', end);
    svg.addEventListener('dblclick', () => chart.group.show(0, 1));
    svg.addEventListener('pointerleave', event => {
      if (event.pointerType === 'mouse' && document.activeElement !== svg) chart.group.move(null);
    });
    svg.addEventListener('keydown', event => {
      const { group, stops } = chart, at = group.at ?? group.from, near = 1e-9;
      const later = () => stops.find(stop => stop > at + near) ?? stops.at(-1);
      const earlier = () => stops.findLast(stop => stop < at - near) ?? stops[0];
      const go = share => {
        const width = group.to - group.from;
        if (share < group.from) group.show(share, share + width);
        if (share > group.to) group.show(share - width, share);
        group.move(share);
      };
      const keys = {
        ArrowRight: () => go(group.at === null ? stops[0] : later()), ArrowLeft: () => go(group.at === null ? stops.at(-1) : earlier()),
        Home: () => go(stops[0]), End: () => go(stops.at(-1)), '+': () => group.zoom(.5), '=': () => group.zoom(.5),
        '-': () => group.zoom(2), '0': () => group.show(0, 1), Escape: () => { group.show(0, 1); group.move(null) },
      };
      if (!(event.key in keys) || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      keys[event.key]();
    });
  };

  // Charts that are new in the page, and no longer those that are gone: a live page replaces sections.
  const prepare = (part, hint) => {
    for (const [key, group] of groups) {
      group.charts = group.charts.filter(chart => chart.svg.isConnected);
      if (!group.charts.length) groups.delete(key);
    }
    const figures = [];
    for (const element of part.querySelectorAll('figure')) {
      const charts = [...element.querySelectorAll('svg.apns-chart[data-chart]')].map(svg => new Chart(svg));
      if (!charts.length) continue;
      const figure = new Figure(element);
      for (const chart of charts) {
        const { x } = chart;
        const key = x.layout === 'linear' ? `${x.label} ${x.unit} ${x.low} ${x.high}` : `${own += 1} of its own`;
        if (!groups.has(key)) groups.set(key, new Group(x.layout === 'linear'));
        chart.group = groups.get(key);
        chart.group.charts.push(chart);
        chart.figure = figure;
        figure.charts.push(chart);
        listen(chart);
      }
      figures.push(figure);
    }
    figures.forEach((figure, place) => figure.finish(place === 0 ? hint : ''));
  };
  prepare(document, 'Point or ← → for values; drag or + to zoom.');
  document.addEventListener('apnscope:section', event => prepare(event.detail, ''));

  // What is folded is printed, and unfolds for who follows a link to it.
  let closed = [];
  addEventListener('beforeprint', () => { closed = [...document.querySelectorAll('section > details:not([open])')]; for (const fold of closed) fold.open = true });
  addEventListener('afterprint', () => { for (const fold of closed) fold.open = false });
  const unfold = () => {
    const fold = location.hash.length > 1 && document.getElementById(location.hash.slice(1))?.querySelector(':scope > details');
    if (fold) fold.open = true;
  };
  addEventListener('hashchange', unfold);
  unfold();
})();
