// Opens the fold that the address names, with all folds around it; opens every fold for print.
const reveal = (hash) => {
  const target = document.getElementById(decodeURIComponent(hash.slice(1)));
  if (!target) return;
  for (let one = target; one; one = one.parentElement) if (one.tagName === "DETAILS") one.open = true;
  target.scrollIntoView();
};
addEventListener("hashchange", () => reveal(location.hash));
addEventListener("click", (event) => {
  const link = event.target.closest('a[href^="#"]');
  if (link && link.hash === location.hash) reveal(link.hash); // the address stays, so there is no hashchange
});
let closed = [];
addEventListener("beforeprint", () => {
  closed = [...document.querySelectorAll("details:not([open])")];
  closed.forEach((fold) => { fold.open = true; });
});
addEventListener("afterprint", () => closed.forEach((fold) => { fold.open = false; }));
reveal(location.hash);
