// The page inside another, as on the documentation site: it takes that page's colours and tells its own height.

if (window.parent !== window) {
  const tell = () => window.parent.postMessage({ explorer: document.body.offsetHeight }, "*");
  document.documentElement.classList.add("embedded");
  window.addEventListener("message", (event) => {
    const { theme } = event.data ?? {};
    if (event.source !== window.parent || !["light", "dark"].includes(theme)) return;
    document.getElementById("dark").media = theme === "dark" ? "all" : "not all";
    tell();
  });
  new ResizeObserver(tell).observe(document.body);
}
