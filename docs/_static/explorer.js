// The interactive page inside the site: it gets the site's colours, and as much height as it needs.
{
  const frame = document.getElementById("explorer");
  const tellTheme = () => {
    const theme = document.documentElement.dataset.theme === "dark" ? "dark" : "light";
    frame.contentWindow.postMessage({ theme }, "*");
  };
  window.addEventListener("message", (event) => {
    if (event.source !== frame.contentWindow || !Number.isFinite(event.data?.explorer)) return;
    frame.style.height = `${Math.ceil(event.data.explorer)}px`;
  });
  new MutationObserver(tellTheme).observe(document.documentElement, { attributeFilter: ["data-theme"] });
  frame.addEventListener("load", tellTheme);
  tellTheme(); // if it was loaded before this script
}
