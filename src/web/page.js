// Takes in a fresh page every few seconds. Without scripts the page stays as it is, with its ages.
setInterval(async () => {
  try {
    const answer = await fetch(location.href, { cache: "no-store", signal: AbortSignal.timeout(4000) });
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
    // A proxy answers in the place of a replica that is gone.
    if (!answer.ok || !fresh.querySelector("main#main")) throw new Error("not a status page");
    document.getElementById("away").hidden = true;
    // Whoever reads inside of a table is not interrupted.
    if (document.querySelector("main").contains(document.activeElement)) return;
    // The header says which replica it is and when the page was made.
    for (const part of ["header", "main"]) document.querySelector(part).replaceWith(fresh.querySelector(part));
    document.title = fresh.title;
  } catch {
    document.getElementById("away").hidden = false;
  }
}, 5000);
