// The demonstration: gives the widget the visitor who has said what the example says, and has the inspector beside it
// show each new turn.

const chat = document.getElementById("chat");
const { key, visitor, token, session, heading } = chat.dataset;
const address = new URL("/widget.js", location.href);

// The widget keeps who is there under this name; a visitor who is there already stays.
const name = `nitka:${new URL(".", address).href}:${key}`;
const known = () => {
  try {
    return JSON.parse(localStorage.getItem(name));
  } catch {
    return null; // storage is blocked: the widget begins with a new visitor, and the example stays in the inspector
  }
};
if (!known()?.visitor) {
  try {
    const record = { who: "", session, visitor: { id: visitor, token, session }, said: "" };
    localStorage.setItem(name, JSON.stringify(record));
  } catch {
    // As above.
  }
}

await import(address.href);
const widget = document.createElement("nitka-chat");
for (const [attribute, value] of Object.entries({ key, "text-title": heading, inline: "" })) widget.setAttribute(attribute, value);
chat.append(widget);

const inspector = document.getElementById("inspector");
widget.addEventListener("nitka-answer", ({ detail }) => {
  if (known()?.session === session && detail.seq !== null) inspector.src = inspector.dataset.turn + detail.seq;
});
widget.addEventListener("nitka-forgotten", () => {
  inspector.src = inspector.dataset.turn.replace("/turn/", "/session/").replace(/\?.*/, ""); // says that it is gone
});
