// Small conveniences. Every page works without this module.

// A part of the bar opens the block it stands for.
for (const part of document.querySelectorAll("[data-block]")) {
  part.addEventListener("click", () => {
    const block = document.getElementById(`block-${part.dataset.block}`);
    block.open = true;
    block.querySelector("summary").focus();
    block.scrollIntoView({ block: "nearest" });
  });
  part.addEventListener("pointerenter", () => point(part.dataset.block, true));
  part.addEventListener("pointerleave", () => point(part.dataset.block, false));
}

function point(number, on) {
  for (const part of document.querySelectorAll(`[data-block="${number}"]`)) part.classList.toggle("pointed", on);
  document.getElementById(`block-${number}`)?.classList.toggle("pointed", on);
}

const all = document.querySelector("[data-open-all]");
if (all) {
  all.hidden = false;
  all.addEventListener("click", () => {
    const blocks = [...document.querySelectorAll("details.block")];
    const open = blocks.some((block) => !block.open);
    for (const block of blocks) block.open = open;
  });
}

// A cookie that is only for TLS does not come back over plain HTTP: say so before somebody wonders.
if (!window.isSecureContext) {
  for (const note of document.querySelectorAll("[data-unless-secure]")) note.hidden = false;
}

// Enter sends a message, with Shift it is a line break; not in the middle of composing a letter.
for (const field of document.querySelectorAll("textarea[data-send]")) {
  field.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
      event.preventDefault();
      field.form.requestSubmit(field.form.querySelector("button.main"));
    }
  });
  if (field.form.matches(".try") && document.querySelector(".step")) field.focus();
}
