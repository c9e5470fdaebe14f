// Takes in a fresh page every few seconds. Without scripts the page stays as it is, with its ages.
setInterval(async () => {
  try {
    const answer = await fetch(location.href, { cache: "no-store", signal: AbortSignal.timeout(4000) });
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html").querySelector("main");
    // Whoever reads inside of a table is not interrupted.
    const main = document.querySelector("main");
    if (fresh && !main.contains(document.activeElement)) main.replaceWith(fresh);
    document.getElementById("away").hidden = true;
  } catch {
    document.getElementById("away").hidden = false;
  }
}, 5000);
