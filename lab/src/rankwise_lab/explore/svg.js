// Small helpers that make elements and keep attributes up to date.

const NAMESPACE = "http://www.w3.org/2000/svg";

export function svg(name, attributes = {}, text = null) {
  return set(document.createElementNS(NAMESPACE, name), attributes, text);
}

// An SVG element at the end of another.
export function draw(parent, name, attributes, text = null) {
  return parent.appendChild(svg(name, attributes, text));
}

export function html(name, attributes = {}, text = null) {
  return set(document.createElement(name), attributes, text);
}

export function set(element, attributes, text = null) {
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  if (text !== null) element.textContent = text;
  return element;
}

// A number with a true minus sign.
export function shown(value, digits = 4) {
  const text = value.toFixed(digits);
  return (Number(text) === 0 ? text.replace("-", "") : text).replace("-", "−");
}

// An SVG whose units are pixels, so that text keeps its size whatever the width.
export function resize(element, width, height) {
  set(element, { viewBox: `0 0 ${width} ${height}`, width, height });
}
