/*
 * <nitka-chat key="pk_...">: a chat with a nitka server, on any page. Rules:
 * - It speaks to its own server alone.
 * - What is written becomes text, or elements made one by one, never markup; no style attribute, no inline script.
 * - Each message has one turn key. However often it is delivered, it is one turn.
 * - What is shown of an answer is what is kept of it. Where the two may differ, the server says.
 * - Whoever signs out, or in as somebody else, leaves nothing behind, on the screen or in the browser.
 * - There is one live region. It is given whole sentences, each once.
 */

const ADOPT = "v1/visitors/adopt";
const PAGE = 50; // messages of history at a time
const WAITS = [300, 1000, 3000, 8000]; // milliseconds before each new attempt
const LOOKS = [120, 400, 1200, 3000]; // and before each look at what was kept
const DOUBLE = 600;
const SILENCE = 45_000; // the server says something every 15 s
const LONGEST = 8_000; // characters of a paragraph that are searched for Markdown

const WORDS = {
  en: {
    title: "Chat",
    close: "Close the chat",
    new: "New conversation",
    know: "What do you know about me?",
    back: "Back to the conversation",
    log: "Conversation",
    you: "You:",
    ai: "AI:",
    intro: "This is an AI system. It remembers what you write, in later conversations too. See and delete what it knows:",
    hint: "Write a message",
    send: "Send",
    stop: "Stop the answer",
    private: "Private",
    privateOn: "Private: what you write now is not kept, and what is known about you is not used.",
    privateNote: "Private, not kept",
    begun: "A new conversation. What was learned about you stays.",
    earlier: "Earlier messages",
    writing: "An answer is being written…",
    stopped: "Stopped. This is what is kept.",
    unanswered: "Stopped before an answer came. Nothing was kept; your text is below.",
    broken: "The answer was cut short. This is what is kept.",
    again: "Try again",
    edit: "Edit",
    network: "Not sent. Your text is still here.",
    waiting: "Goes out when the connection is back.",
    offline: "You are offline. What you send goes out when the connection is back.",
    reconnecting: "The connection was lost. Trying again.",
    failed: "No answer came. Your text is still here.",
    busy: "Too many messages at once. Your text is still here. Try again in {n} s.",
    long: "This is too long. Shorten it and send it again.",
    signIn: "Your sign-in has ended. Sign in again, then try again. Your text is still here.",
    setUp: "This chat is not set up for this page.",
    forgotten: "This message was deleted meanwhile.",
    elsewhere: "Somebody signed in or out in another tab. Reload the page to go on.",
    reload: "Reload the page",
    moment: "One moment",
    knowIntro: "This is what is remembered about you. Delete what should not be.",
    nothing: "Nothing is remembered about you.",
    unread: "This could not be read.",
    undone: "Not deleted.",
    delete: "Delete: {what}",
    withTurns: "Also delete my messages that say it",
    deleted: "Deleted.",
    deletedTurns: "Deleted. Messages deleted with it: {n}.",
    stillSaid: "Deleted. Exchanges that still say it: {n}.",
    forget: "Forget everything about me",
    sure: "Delete all your conversations here and everything that is known about you? This cannot be undone.",
    yes: "Delete everything",
    no: "Cancel",
    gone: "Everything is deleted. Messages: {messages}. Facts: {facts}. Conversations: {sessions}.",
    pending: "Last traces on the server's disk go within a short time.",
  },
  ru: {
    title: "Чат",
    close: "Закрыть чат",
    new: "Новый разговор",
    know: "Что вы обо мне знаете?",
    back: "Назад к разговору",
    log: "Разговор",
    you: "Вы:",
    ai: "ИИ:",
    intro:
      "Вам отвечает искусственный интеллект. Он запоминает, что вы пишете, и на следующие разговоры тоже. " +
      "Посмотреть и удалить, что он знает:",
    hint: "Напишите сообщение",
    send: "Отправить",
    stop: "Остановить ответ",
    private: "Приватно",
    privateOn: "Приватно: то, что вы пишете, не сохраняется, а известное о вас не используется.",
    privateNote: "Приватно, не сохранено",
    begun: "Новый разговор. То, что о вас известно, остаётся.",
    earlier: "Более ранние сообщения",
    writing: "Ответ пишется…",
    stopped: "Остановлено. Сохранено то, что показано.",
    unanswered: "Остановлено до ответа. Ничего не сохранено, ваш текст внизу.",
    broken: "Ответ прерван. Сохранено то, что показано.",
    again: "Повторить",
    edit: "Изменить",
    network: "Не отправлено. Ваш текст на месте.",
    waiting: "Уйдёт, когда связь вернётся.",
    offline: "Нет сети. Отправленное уйдёт, когда связь вернётся.",
    reconnecting: "Связь прервалась. Пробуем ещё раз.",
    failed: "Ответ не пришёл. Ваш текст на месте.",
    busy: "Слишком много сообщений сразу. Ваш текст на месте. Повторите через {n} с.",
    long: "Слишком длинно. Сократите и отправьте снова.",
    signIn: "Вход больше не действует. Войдите снова и повторите. Ваш текст на месте.",
    setUp: "Этот чат не настроен для этой страницы.",
    forgotten: "Это сообщение тем временем удалили.",
    elsewhere: "В другой вкладке кто-то вошёл или вышел. Чтобы продолжить, обновите страницу.",
    reload: "Обновить страницу",
    moment: "Одну минуту",
    knowIntro: "Вот что о вас запомнено. Удалите то, чего здесь быть не должно.",
    nothing: "О вас ничего не запомнено.",
    unread: "Прочитать не удалось.",
    undone: "Не удалено.",
    delete: "Удалить: {what}",
    withTurns: "Удалить и мои сообщения об этом",
    deleted: "Удалено.",
    deletedTurns: "Удалено. Вместе с этим удалено сообщений: {n}.",
    stillSaid: "Удалено. Об этом ещё говорится в репликах: {n}.",
    forget: "Забыть обо мне всё",
    sure: "Удалить все ваши разговоры здесь и всё, что о вас известно? Вернуть это будет нельзя.",
    yes: "Удалить всё",
    no: "Отмена",
    gone: "Всё удалено. Сообщений: {messages}. Фактов: {facts}. Разговоров: {sessions}.",
    pending: "Последние следы на диске сервера исчезнут в скором времени.",
  },
};

// A constructed sheet: no content security policy forbids it.
const SHEET = new CSSStyleSheet();
SHEET.replaceSync(`
:host {
  --accent: var(--nitka-accent, light-dark(#0b5cad, #8cc2ff));
  --on-accent: var(--nitka-on-accent, light-dark(#fff, #06203d));
  --surface: var(--nitka-surface, light-dark(#fff, #15181d));
  --raised: var(--nitka-raised, light-dark(#f1f4f8, #22272f));
  --text: var(--nitka-text, light-dark(#1a1f26, #e9edf2));
  --muted: var(--nitka-muted, light-dark(#4d5763, #adb7c3));
  --line: var(--nitka-line, light-dark(#d3dae2, #39414c));
  --edge: var(--nitka-edge, light-dark(#75808d, #8a95a2));
  --own: var(--nitka-own, light-dark(#dcebfb, #1e3b5c));
  --on-own: var(--nitka-on-own, light-dark(#0e2740, #eef5fd));
  --error: var(--nitka-error, light-dark(#a3211b, #ffb1aa));
  --radius: var(--nitka-radius, 14px);
  color-scheme: light dark;
  position: fixed; z-index: var(--nitka-z, 2147483000);
  inset-block-end: max(16px, env(safe-area-inset-bottom)); inset-inline-end: max(16px, env(safe-area-inset-right));
  font: var(--nitka-font, 400 16px/1.5 system-ui, sans-serif);
  color: var(--text);
}
:host([theme="light"]) { color-scheme: light }
:host([theme="dark"]) { color-scheme: dark }
:host([inline]) { display: block; position: relative; inset: auto; z-index: auto; height: var(--nitka-height, 36rem) }
:host([hidden]), [hidden] { display: none !important }
* { box-sizing: border-box }
button, textarea, input { font: inherit; color: inherit }
button { min-width: 44px; min-height: 44px; padding: 0 14px; border: 1px solid transparent; border-radius: 10px;
  background: none; cursor: pointer; touch-action: manipulation }
button:hover:not(:disabled) { background: var(--raised) }
button:disabled { opacity: .55; cursor: default }
:focus-visible { outline: 3px solid var(--accent); outline-offset: 2px }
svg { display: block; width: 22px; height: 22px; fill: none; stroke: currentColor; stroke-width: 2;
  stroke-linecap: round; stroke-linejoin: round }
.icon { display: inline-grid; place-items: center; padding: 0; flex: none }
.plain { border-color: var(--edge) }
.filled, .filled:hover:not(:disabled) { background: var(--accent); color: var(--on-accent) }
.danger { border-color: var(--error); color: var(--error) }
.launcher { width: 60px; height: 60px; border-radius: 50%; box-shadow: 0 0 0 2px var(--surface), 0 4px 16px #0005 }
.launcher:focus-visible { outline-offset: 4px }

.panel { display: flex; flex-direction: column; padding: 0; margin: 0; overflow: hidden; color: inherit;
  background: var(--surface); border: 1px solid var(--line); border-radius: var(--radius) }
dialog.panel { position: absolute; inset: auto 0 72px auto; inset-inline: auto 0; box-shadow: 0 12px 40px #0004;
  width: var(--nitka-width, 400px); max-width: calc(100vw - 32px);
  height: var(--nitka-height, 640px); max-height: calc(100dvh - 104px) }
dialog.panel:not([open]) { display: none }
section.panel { width: 100%; height: 100% }
header { display: flex; align-items: center; gap: 2px; padding: 6px; padding-inline-start: 16px;
  border-block-end: 1px solid var(--line) }
h2 { flex: 1; min-width: 0; margin: 0; font-size: 1.06em; line-height: 1.25; overflow-wrap: anywhere }
.banner { padding: 8px 16px; background: var(--raised); border-block-end: 1px solid var(--line); font-size: .875em }
.banner > * + * { margin-block-start: 6px }
.main { position: relative; flex: 1; min-height: 0; overflow-y: auto; overscroll-behavior: contain; padding: 16px; scrollbar-width: thin }
.main:focus-visible { outline-offset: -3px }
.about { margin: 0 0 16px; color: var(--muted); font-size: .875em }
.about button, .earlier { display: block; margin-block-start: 8px; color: var(--text) }
.earlier { margin: 0 auto 12px }
ol.messages { display: flex; flex-direction: column; gap: 12px; margin: 0; padding: 0; list-style: none }
.messages > li { max-width: 88%; align-self: flex-start; min-width: 0 }
.messages > .user { align-self: flex-end }
.messages > .notice { align-self: center; max-width: 100%; color: var(--muted); font-size: .875em; text-align: center }
.text { padding: 9px 14px; border: 1px solid transparent; border-radius: var(--radius); background: var(--raised);
  overflow-wrap: anywhere; unicode-bidi: isolate }
.user > .text { background: var(--own); color: var(--on-own); white-space: pre-wrap }
.note { margin: 4px 4px 0; color: var(--muted); font-size: .8125em }
.note.bad { color: var(--error) }
.note > button { margin: 4px 0 0; margin-inline-end: 6px; color: var(--text) }
.text > * { margin: 0 0 .6em }
.text > :last-child { margin-block-end: 0 }
.text :is(h3, h4, h5, h6) { font-size: 1em }
.text :is(ul, ol) { padding-inline-start: 1.5em; margin-block: 0 .6em }
.text ul { list-style: disc }
.text ul ul { list-style: circle }
.text li > :is(p, ul, ol) { margin: 0 }
.text blockquote { margin-inline: 0; padding-inline-start: .8em; border-inline-start: 3px solid var(--edge) }
.text a { color: var(--accent) }
.text code { font: .9em/1.4 ui-monospace, monospace; background: light-dark(#00000012, #ffffff1c); border-radius: 4px;
  padding: .1em .3em }
.text pre { overflow-x: auto; padding: .6em .8em; border-radius: 8px; background: light-dark(#00000012, #ffffff1c) }
.text pre code { background: none; padding: 0 }
.text hr { border: 0; border-block-start: 1px solid var(--edge) }
.scroll { overflow-x: auto }
table { border-collapse: collapse }
th, td { border: 1px solid var(--edge); padding: .25em .5em; text-align: start; overflow-wrap: normal }
form { padding: 10px 12px 6px; border-block-start: 1px solid var(--line) }
.row { display: flex; align-items: end; gap: 8px }
textarea { flex: 1; min-width: 0; min-height: 46px; max-height: 9.5em; padding: 10px 12px; resize: none;
  field-sizing: content; background: var(--surface); border: 1px solid var(--edge); border-radius: 12px }
textarea:focus-visible { outline-offset: 0; outline-width: 2px }
textarea::placeholder { color: var(--muted); opacity: 1 }
.row > button { min-width: 46px; min-height: 46px }
.facts > p { margin: 0 0 12px }
.facts ul { margin: 0 0 12px; padding: 0; list-style: none }
.facts li { display: flex; align-items: center; gap: 8px; padding: 6px 0; border-block-end: 1px solid var(--line) }
.facts li > div { flex: 1; min-width: 0; overflow-wrap: anywhere }
label { display: flex; align-items: center; gap: 10px; width: fit-content; min-height: 44px; padding-inline: 4px;
  font-size: .875em }
input { width: 22px; height: 22px; margin: 0; flex: none; accent-color: var(--accent) }
.facts .ask { margin-block-start: 12px; padding: 12px; border: 1px solid var(--error); border-radius: 12px }
.facts .ask p { margin: 0 0 10px }
.facts .ask button { margin-inline-end: 8px }
.facts .told:focus { outline: none }
.hide { position: absolute; width: 1px; height: 1px; margin: -1px; overflow: hidden; clip-path: inset(50%);
  white-space: nowrap }

/* small, or zoomed in */
@media (max-width: 480px), (max-height: 480px) {
  dialog.panel { position: fixed; inset: 0; width: auto; max-width: none;
    height: auto; max-height: none; border: 0; border-radius: 0; padding-block-end: env(safe-area-inset-bottom) }
}
/* too low for a part that scrolls by itself */
@media (max-height: 360px) {
  dialog.panel { display: block; overflow-y: auto }
  dialog.panel .main { overflow: visible }
}
@media (forced-colors: active) {
  .text, .icon { border-color: currentColor }
}
`);

const ICONS = {
  chat: "M21 12a8 8 0 0 1-8 8H4l1.6-3.2A8 8 0 1 1 21 12z",
  close: "M6 6l12 12M18 6L6 18",
  new: "M12 5v14M5 12h14",
  know: "M12 11v6M12 7.5v.01M3 12a9 9 0 1 0 18 0a9 9 0 1 0-18 0",
  back: "M19 12H5M11 6l-6 6 6 6",
  send: "M12 19V5M6 11l6-6 6 6",
  stop: "M5 5h14v14H5z",
  bin: "M4 7h16M9 7V4h6v3M6 7l1 13h10l1-13",
};

function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value !== false && value != null) element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children);
  return element;
}

function icon(name) {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  const path = document.createElementNS(svg.namespaceURI, "path");
  svg.setAttribute("viewBox", "0 0 24 24");
  svg.setAttribute("aria-hidden", "true");
  path.setAttribute("d", ICONS[name]);
  svg.append(path);
  return svg;
}

// A part of CommonMark, with tables. Pictures become links: loading them would tell others who reads.

const FENCE = /^ {0,3}(`{3,}|~{3,})/;
const HEADING = /^ {0,3}(#{1,6})\s+(.*?)\s*#*\s*$/;
const RULE = /^ {0,3}([-*_])(?: *\1){2,} *$/;
const QUOTE = /^ {0,3}>/;
const ITEM = /^( *)(?:[-*+]|(\d{1,9})[.)])\s+/;
const starts = (line) => [FENCE, HEADING, RULE, QUOTE, ITEM].some((form) => form.test(line));
const isDivider = (line = "") => /^[\s|:-]+$/.test(line) && line.includes("-") && line.includes("|");

function blocksOf(text) {
  const lines = text.split(/\r\n?|\n/);
  const blocks = [];
  for (let at = 0; at < lines.length; ) {
    const end = lines[at].trim() ? endOf(lines, at) : at;
    if (end > at) blocks.push(lines.slice(at, end).join("\n"));
    at = Math.max(end, at + 1);
  }
  return blocks;
}

function endOf(lines, at) {
  const line = lines[at];
  const fence = FENCE.exec(line)?.[1];
  let end = at + 1;
  const goOn = (holds) => {
    while (end < lines.length && holds(lines[end], end)) end++;
    return end;
  };
  if (fence) return goOn((next) => !next.trim().startsWith(fence)) + 1;
  if (HEADING.test(line) || RULE.test(line)) return end;
  if (QUOTE.test(line)) return goOn((next) => QUOTE.test(next));
  if (ITEM.test(line)) {
    const [, indent, number] = ITEM.exec(line);
    const isOther = (next) => {
      const item = ITEM.exec(next);
      return item && item[1].length <= indent.length + 1 && !item[2] !== !number;
    };
    // An empty line ends a list, unless what follows belongs to it. Numbers after bullets are another list.
    const belongs = (next = "") => (ITEM.test(next) && !isOther(next)) || /^ {2,}\S/.test(next);
    return goOn((next, n) => (next.trim() ? belongs(next) || !starts(next) : belongs(lines[n + 1])));
  }
  if (line.includes("|") && isDivider(lines[end])) return goOn((next) => next.includes("|"));
  return goOn((next) => next.trim() && !starts(next));
}

function blockOf(source, depth = 0) {
  const lines = source.split("\n");
  const first = lines[0];
  if (FENCE.test(first)) {
    const isClosed = lines.length > 1 && FENCE.test(lines.at(-1));
    // What scrolls must be reached by the keyboard.
    return h("pre", { tabindex: 0, dir: "ltr" }, h("code", {}, lines.slice(1, isClosed ? -1 : undefined).join("\n")));
  }
  const heading = HEADING.exec(first);
  if (heading) return filled(h(`h${Math.min(6, heading[1].length + 2)}`, { dir: "auto" }), heading[2]);
  if (RULE.test(first)) return h("hr");
  if (depth < 6 && QUOTE.test(first)) {
    const inside = lines.map((line) => line.replace(/^ {0,3}> ?/, "")).join("\n");
    return h("blockquote", { dir: "auto" }, ...blocksOf(inside).map((block) => blockOf(block, depth + 1)));
  }
  if (depth < 6 && ITEM.test(first)) return listOf(lines, depth);
  if (first.includes("|") && isDivider(lines[1])) return tableOf(lines);
  return filled(h("p", { dir: "auto" }), source);
}

function listOf(lines, depth) {
  const [, indent, number] = ITEM.exec(lines[0]);
  const items = [];
  for (const line of lines) {
    const item = ITEM.exec(line);
    if (item && item[1].length <= indent.length + 1) items.push([line.slice(item[0].length)]);
    else items.at(-1).push(line.replace(/^ {1,4}/, ""));
  }
  const contents = items.map((item) => {
    const blocks = blocksOf(item.join("\n")).map((block) => blockOf(block, depth + 1));
    const isTight = blocks[0]?.tagName === "P" && blocks.slice(1).every((block) => /^[UO]L$/.test(block.tagName));
    return h("li", { dir: "auto" }, ...(isTight ? [...blocks.shift().childNodes, ...blocks] : blocks));
  });
  return number ? h("ol", { start: number, dir: "auto" }, ...contents) : h("ul", { dir: "auto" }, ...contents);
}

function tableOf(lines) {
  const cells = (line) => line.trim().replace(/^\||\|$/g, "").split("|", 50);
  const row = (line, tag) => h("tr", {}, ...cells(line).map((cell) => filled(h(tag, { dir: "auto" }), cell.trim())));
  const body = lines.slice(2).map((line) => row(line, "td"));
  return h("div", { class: "scroll", tabindex: 0 }, h("table", {}, row(lines[0], "th"), ...body));
}

const MARKS = { "**": "strong", __: "strong", "*": "em", _: "em", "~~": "del" };
const LINK = /!?\[((?:[^[\]\\]|\\.|\[[^[\]]*\])*)\]\(\s*<?((?:[^\s<>()]|\([^\s<>()]*\))*)>?(?:\s+"[^"]*")?\s*\)/y;
// What ends a sentence is not part of an address, nor is half a pair of brackets.
const ADDRESS = /<?((?:https?:\/\/|mailto:)(?:\([^\s<>()]*\)|[^\s<>"`()])*(?:\([^\s<>()]*\)|[^\s<>"`().,:;!?'*_~]))/iy;
const SPECIAL = /[\\`![*_~<\n]|https?:|mailto:/gi;

function filled(element, text, depth = 0) {
  if (text.length > LONGEST || depth > 6) {
    element.append(text);
    return element;
  }
  let plain = "";
  const put = (node) => {
    if (plain) element.append(plain);
    plain = "";
    element.append(node);
  };
  for (let at = 0; at < text.length; ) {
    SPECIAL.lastIndex = at;
    const next = SPECIAL.exec(text)?.index ?? text.length;
    plain += text.slice(at, next);
    at = next;
    if (at === text.length) break;
    const [node, length] = nodeAt(text, at, depth);
    if (typeof node === "string") plain += node;
    else put(node);
    at += length;
  }
  if (plain) element.append(plain);
  return element;
}

function nodeAt(text, at, depth) {
  const sign = text[at];
  if (sign === "\n") return [h("br"), 1];
  if (sign === "\\" && /[!-/:-@[-`{-~]/.test(text[at + 1] ?? "")) return [text[at + 1], 2];
  if (sign === "`") return codeAt(text, at);
  if (sign === "!" || sign === "[") {
    LINK.lastIndex = at;
    const link = LINK.exec(text);
    const node = link && linkTo(link[2], link[1], depth);
    return node ? [node, link[0].length] : link ? [link[0], link[0].length] : [sign, 1];
  }
  if (sign === "<" || /[hm]/i.test(sign)) {
    ADDRESS.lastIndex = at;
    const address = ADDRESS.exec(text)?.[1] ?? "";
    const node = linkTo(address, null, depth);
    const wraps = sign === "<" && text[at + 1 + address.length] === ">";
    if (node && (sign !== "<" || wraps)) return [node, address.length + (wraps ? 2 : 0)];
    return [sign, 1];
  }
  return markAt(text, at, depth) ?? [sign, 1];
}

function codeAt(text, at) {
  const ticks = /^`+/.exec(text.slice(at))[0];
  let end = at + ticks.length;
  do end = text.indexOf(ticks, end + 1);
  while (end > 0 && (text[end - 1] === "`" || text[end + ticks.length] === "`"));
  if (end < 0) return [ticks, ticks.length];
  const code = text.slice(at + ticks.length, end).replace(/^ (.*[^ ].*) $/, "$1");
  return [h("code", {}, code), end + ticks.length - at];
}

function markAt(text, at, depth) {
  for (const [mark, tag] of Object.entries(MARKS)) {
    if (!text.startsWith(mark, at) || /\s/.test(text[at + mark.length] ?? " ")) continue;
    const isWord = mark[0] === "_" && /[\p{L}\p{N}]/u.test(text[at - 1] ?? "");
    let end = isWord ? -1 : text.indexOf(mark, at + mark.length + 1);
    // A single closing mark is not half of a double.
    while (end > 0 && (/\s/.test(text[end - 1]) || (mark.length === 1 && text[end + 1] === mark))) {
      end = text.indexOf(mark, end + (text[end + 1] === mark ? 2 : 1));
    }
    if (end < 0 || (mark[0] === "_" && /[\p{L}\p{N}]/u.test(text[end + mark.length] ?? ""))) continue;
    return [filled(h(tag), text.slice(at + mark.length, end), depth + 1), end + mark.length - at];
  }
  return null;
}

function linkTo(address, label, depth) {
  let url;
  try {
    url = new URL(address);
  } catch {
    return null;
  }
  if (!["http:", "https:", "mailto:"].includes(url.protocol)) return null;
  const link = h("a", { href: url.href, title: url.href, target: "_blank", rel: "noopener noreferrer nofollow" });
  return label ? filled(link, label, depth + 1) : (link.append(address), link);
}

const spoken = (text) => text.replace(/!?\[([^\]]*)\]\([^)]*\)/g, "$1").replace(/[*_~`#>|]+/g, " ").trim();

const SCRIPTS = {
  Latin: ["Latn", "en"],
  Cyrillic: ["Cyrl", "ru"],
  Arabic: ["Arab", "ar"],
  Hebrew: ["Hebr", "he"],
  Greek: ["Grek", "el"],
  Devanagari: ["Deva", "hi"],
  Thai: ["Thai", "th"],
  Hangul: ["Kore", "ko"],
  Hiragana: ["Jpan", "ja"],
  Han: ["Hans", "zh"],
};

/** Of the languages that the reader reads, the first that is written in the text's script. */
function languageOf(text, reads) {
  let [most, found] = [0, ["", reads[0]]];
  for (const [name, script] of Object.entries(SCRIPTS)) {
    const count = text.slice(0, 500).match(new RegExp(`\\p{Script=${name}}`, "gu"))?.length ?? 0;
    if (count > most) [most, found] = [count, script];
  }
  const writes = (language) => {
    try {
      return new Intl.Locale(language).maximize().script === found[0];
    } catch {
      return false;
    }
  };
  return reads.find(writes) ?? found[1];
}

const randomId = () => Array.from(crypto.getRandomValues(new Uint32Array(4)), (n) => n.toString(36)).join("-");

/** A hash of a user's id (FNV-1a, 64 bits). */
function markOf(text) {
  let hash = 0xcbf29ce484222325n;
  for (const byte of new TextEncoder().encode(text)) hash = BigInt.asUintN(64, (hash ^ BigInt(byte)) * 0x100000001b3n);
  return hash.toString(36);
}

/** A value in a storage; where that is blocked, for as long as the page lives. */
class Kept {
  #own = null;
  constructor(storage, name) {
    this.storage = storage;
    this.name = name;
  }
  read() {
    try {
      return JSON.parse(window[this.storage].getItem(this.name)) ?? null;
    } catch {
      return this.#own;
    }
  }
  write(value) {
    this.#own = value;
    try {
      window[this.storage].setItem(this.name, JSON.stringify(value));
    } catch {
      // blocked or full: only this page knows
    }
  }
}

/** What a user token claims: to tell people apart. Whether it is true is for the server to say. */
function claimsOf(token) {
  try {
    const body = atob(token.split(".")[1].replace(/-/g, "+").replace(/_/g, "/"));
    const bytes = Uint8Array.from(body, (char) => char.charCodeAt(0));
    const claims = JSON.parse(new TextDecoder().decode(bytes));
    return { sub: String(claims.sub), visitor: claims.visitor };
  } catch {
    return { sub: token };
  }
}

class Refused extends Error {
  constructor(status, code, wait) {
    super(`${status} ${code}`);
    Object.assign(this, { status, code, wait });
  }
}

class Broken extends Error {}

const isAborted = (error) => error?.name === "AbortError";
const pause = (ms, signal) =>
  new Promise((resolve, reject) => {
    signal?.addEventListener("abort", () => reject(signal.reason));
    setTimeout(resolve, ms);
  });

async function ask(url, { headers, body, signal }) {
  let response;
  try {
    response = await fetch(url, {
      method: body ? "POST" : "GET",
      headers: { ...headers, ...(body && { "Content-Type": "application/json" }) },
      body: body && JSON.stringify(body),
      signal,
      cache: "no-store",
      credentials: "omit",
      referrerPolicy: "strict-origin", // a page's stricter one might hide its origin
    });
  } catch (error) {
    throw isAborted(error) ? error : new Broken();
  }
  if (response.ok) return response;
  const told = await response.json().catch(() => ({}));
  throw new Refused(response.status, told.error?.code ?? "", Number(response.headers.get("Retry-After")) || 0);
}

/** The events of a stream (HTML, 9.2). Throws `Broken` where it breaks. */
async function* eventsOf(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  try {
    for (;;) {
      let timer;
      const silence = new Promise((_, reject) => (timer = setTimeout(() => reject(new Broken()), SILENCE)));
      const { done, value } = await Promise.race([reader.read(), silence]).finally(() => clearTimeout(timer));
      if (done) return;
      const events = (rest + value).split("\n\n");
      rest = events.pop();
      for (const event of events) {
        const { event: name, id, data } = Object.fromEntries(event.split("\n").map((line) => line.split(/: (.*)/s)));
        if (data) yield { name, id: Number(id), value: JSON.parse(data) };
      }
    }
  } catch (error) {
    throw isAborted(error) ? error : new Broken();
  } finally {
    reader.cancel().catch(() => {});
  }
}

class Voice {
  constructor() {
    this.region = h("div", { class: "hide", "aria-live": "polite" });
  }
  say(text, lang) {
    if (!text) return;
    this.region.append(h("p", { lang }, text));
    while (this.region.childNodes.length > 20) this.region.firstChild.remove();
  }
  /** Says a text that grows. */
  follow(lang) {
    let said = 0;
    return (text, isAll) => {
      const language = lang(text);
      const rest = text.slice(said);
      const sentences = [...new Intl.Segmenter(language, { granularity: "sentence" }).segment(rest)];
      // The last sentence may go on.
      for (const { segment } of isAll ? sentences : sentences.slice(0, -1)) {
        said += segment.length;
        this.say(spoken(segment), language);
      }
    };
  }
}

class NitkaChat extends HTMLElement {
  static observedAttributes = ["key", "server", "user-token", "lang"];

  #shadow = this.attachShadow({ mode: "open" });
  #parts = {};
  #voice = new Voice();
  #stay = null; // ends when the element leaves the page
  #life = null; // ends, with all that is under way, when somebody else is before the screen
  #claims = null; // of the user's token
  #who = ""; // his mark; "" is a stranger
  #base = "";
  #kept = null; // for all tabs: { who, session, visitor: { id, token } | null, said }
  #record = null; // the same as this tab knows it; null: it may show nobody's
  #own = null; // for this tab: { unsent: { key, text, session, who, after, isAsked } | null, private }
  #turn = null;
  #rows = new Map(); // seq -> the list item that shows it
  #before = null; // where earlier messages begin; null: there are none
  #isLoaded = false;
  #isElsewhere = false;
  #isKept = false; // whether the record is stored, where other tabs see it
  #isHeard = false; // the server has let this page read something
  #unread = null; // the notice that history could not be read
  #opener = null;
  #unsent = new Set(); // turns that wait for a line, or for a sign-in

  constructor() {
    super();
    this.#shadow.adoptedStyleSheets = [SHEET];
  }

  /** The id of the visitor, for the host to sign; null while there is none. */
  get visitor() {
    return this.#record?.visitor?.id ?? null;
  }

  get isOpen() {
    return this.hasAttribute("inline") || Boolean(this.#parts.panel?.open);
  }

  connectedCallback() {
    this.#stay = new AbortController();
    const on = (name, act) => window.addEventListener(name, act, { signal: this.#stay.signal });
    on("storage", ({ key }) => (key ?? this.#kept.name) === this.#kept.name && this.#compare());
    on("pageshow", ({ persisted }) => persisted && this.#compare());
    on("online", () => this.#lineChanged());
    on("offline", () => this.#lineChanged());
    this.#begin();
    if (this.hasAttribute("open")) this.open();
  }

  disconnectedCallback() {
    this.#stay.abort();
    this.#life.abort();
  }

  attributeChangedCallback(name, before, now) {
    if (!this.isConnected || before === now || !this.#parts.panel) return;
    if (name === "user-token") this.#meet();
    else this.#begin();
  }

  open() {
    const { panel, launcher } = this.#parts;
    if (!panel || this.isOpen) return;
    this.#opener = this.#shadow.activeElement ?? document.activeElement;
    // Where it fills the screen the page behind is out of reach.
    if (matchMedia("(max-width: 480px), (max-height: 480px)").matches) panel.showModal();
    else panel.show();
    launcher.setAttribute("aria-expanded", "true");
    this.#parts.input.focus();
    this.#load();
    this.#tell("open");
  }

  close() {
    const { panel, launcher } = this.#parts;
    if (!panel?.open || this.hasAttribute("inline")) return;
    panel.close();
    launcher.setAttribute("aria-expanded", "false");
    (this.#opener?.isConnected && this.#opener !== document.body ? this.#opener : launcher).focus();
    this.#tell("close");
  }

  #tell(name, detail = {}) {
    this.dispatchEvent(new CustomEvent(`nitka-${name}`, { detail, bubbles: true, composed: true }));
  }

  get #language() {
    return this.closest("[lang]")?.lang || document.documentElement.lang || navigator.language || "en";
  }

  #say(name, values = {}) {
    const words = WORDS[this.#language.toLowerCase().split("-")[0]] ?? WORDS.en;
    const text = this.getAttribute(`text-${name}`) ?? words[name];
    return text.replace(/\{(\w+)\}/g, (whole, key) => values[key] ?? whole);
  }

  #languageOf = (text) => languageOf(text, [this.#language, ...navigator.languages]);

  #begin() {
    const server = new URL(this.getAttribute("server") || ".", import.meta.url).href;
    this.#isHeard = false;
    this.#base = server.endsWith("/") ? server : `${server}/`;
    const name = `nitka:${this.#base}:${this.getAttribute("key")}`;
    this.#kept = new Kept("localStorage", name);
    this.#own = new Kept("sessionStorage", name);
    const wasOpen = this.#parts.panel?.open;
    this.#build();
    this.#record = null;
    this.#meet();
    if (wasOpen && !this.hasAttribute("inline")) this.open();
  }

  /** Learns who is there now, and what of the browser's record is his. */
  #meet() {
    const token = this.getAttribute("user-token"); // "": the page does not know yet
    this.#claims = token ? claimsOf(token) : null;
    this.#who = this.#claims ? markOf(this.#claims.sub) : "";
    this.#isElsewhere = false;
    if (token === "") return this.#startOver(null);
    const before = this.#record;
    const kept = this.#kept.read();
    let record = kept;
    if (!isRecord(record) || (record.who && record.who !== this.#who)) {
      record = freshFor(this.#who); // nobody was here, or somebody else
    } else if (record.who !== this.#who) {
      // A visitor signed in. His conversation goes on once the host has signed that he is this user.
      const visitor = record.visitor && { ...record.visitor, session: record.session };
      const fresh = { ...freshFor(this.#who), visitor };
      record = this.#mayAdopt(fresh) ? { ...fresh, session: record.session } : fresh;
    }
    const unsent = this.#own.read()?.unsent;
    if (unsent && (unsent.who !== record.who || unsent.session !== record.session)) this.#setUnsent(null);
    if (before?.session !== record.session) this.#startOver(record);
    if (kept) this.#keep(record);
    else [this.#record, this.#isKept] = [record, false]; // nothing is stored of whoever only reads the page
    this.#show();
    if (record.visitor) this.#tell("visitor", { visitor: record.visitor.id });
    if (this.#mayAdopt(record)) this.#ready().catch((error) => this.#report(error));
    else if (this.isOpen) this.#load();
    this.#retry();
  }

  #mayAdopt(record) {
    return Boolean(this.#claims?.visitor && record?.visitor && this.#claims.visitor === record.visitor.id);
  }

  /** Leaves nothing of whoever was there. `record` is the next one's. */
  #startOver(record) {
    this.#life?.abort();
    this.#life = new AbortController();
    this.#record = record;
    this.#turn = null;
    this.#unsent.clear();
    this.#rows.clear();
    this.#before = null;
    this.#isLoaded = false;
    this.#unread = null;
    const { list, facts, earlier, input } = this.#parts;
    list.replaceChildren();
    facts.replaceChildren();
    this.#voice.region.replaceChildren();
    earlier.hidden = true;
    input.value = "";
    this.#view("chat");
  }

  #keep(change) {
    this.#record = { ...this.#record, ...change };
    this.#isKept = true;
    this.#kept.write(this.#record);
  }

  /** Another tab wrote, or this page comes back. */
  #compare() {
    const record = this.#kept.read();
    if (!this.#record || (!record && !this.#isKept)) return;
    if (!isRecord(record) || record.who !== this.#who) {
      // Somebody signed in or out there. What this page was given may be another's now.
      this.#isElsewhere = true;
      this.#startOver(null);
    } else if (!this.#isKept) {
      this.#join(record);
    } else if (record.session !== this.#record.session) {
      const left = [...this.#unsent, ...(this.#turn && !this.#turn.got ? [this.#turn] : [])];
      const draft = [...left.map((turn) => turn.text), this.#parts.input.value].filter(Boolean).join("\n");
      this.#startOver(record);
      this.#parts.input.value = draft;
      this.#notice(this.#say("begun"));
      this.#show();
      if (this.isOpen) this.#load();
    } else {
      this.#record = record;
      this.#look();
    }
  }

  /** Goes on with the conversation that another tab began first: in this one nothing was sent yet. */
  #join(record) {
    [this.#record, this.#isKept] = [record, true];
    const { unsent } = this.#own.read() ?? {};
    if (unsent) this.#setUnsent({ ...unsent, session: record.session });
    this.#look();
  }

  #look() {
    if (this.#turn) this.#turn.isBehind = true;
    else if (this.#isLoaded) this.#load(true);
  }

  /** Joins the visitor who signed in, or makes one. What he asked before is answered to the visitor he was. */
  async #ready(turn = null) {
    if (!this.#record) throw new Refused(401, "nobody", 0);
    while (this.#turn && this.#turn !== turn && this.#mayAdopt(this.#record)) await this.#turn.over;
    if (this.#mayAdopt(this.#record)) await this.#adopt();
    if ((turn && !this.#isKept) || !(this.#claims || this.#record.visitor)) await this.#agree();
  }

  async #adopt() {
    const { visitor } = this.#record;
    const { signal } = this.#life;
    try {
      await this.#ask(ADOPT, { body: {}, headers: { "X-Nitka-Visitor": visitor.token } });
    } catch (error) {
      // Done in another tab, or nothing is there to move.
      if (!(error instanceof Refused) || !["invalid_visitor", "other_visitor"].includes(error.code)) throw error;
    }
    if (signal.aborted) return;
    // What he said as the user goes on, or else what he said before. Rows have other numbers now.
    this.#keep({ session: this.#rows.size ? this.#record.session : visitor.session, visitor: null });
    this.#rows.forEach((row) => row.remove());
    this.#rows.clear();
    if (this.isOpen) this.#load(true);
  }

  /** Agrees with the other tabs on the conversation and the visitor, who is made here if none of them has. */
  async #agree() {
    const agree = async () => {
      const record = this.#kept.read();
      const { signal } = this.#life;
      if (isRecord(record) && record.who === this.#who && (this.#claims || record.visitor)) return this.#join(record);
      if (this.#claims) return this.#keep({});
      const { user, token } = await this.#read("v1/visitors", { body: {} });
      if (!signal.aborted) this.#keep({ visitor: { id: user, token } });
    };
    const locks = navigator.locks ?? { request: (_, act) => act() };
    await new Promise((done, fail) =>
      locks.request(this.#kept.name, async () => {
        await agree().then(done, fail);
        await pause(100); // until other tabs can read it
      }),
    );
    if (this.visitor) this.#tell("visitor", { visitor: this.visitor });
  }

  async #ask(path, { body, headers, signal } = {}, isSecond = false) {
    const token = this.getAttribute("user-token");
    const visitor = this.#record?.visitor;
    const key = this.getAttribute("key");
    const isStill = this.#mayAdopt(this.#record) && path !== ADOPT; // the visitor, until he is joined
    try {
      const response = await ask(this.#base + path, {
        body,
        signal: signal ? AbortSignal.any([signal, this.#life.signal]) : this.#life.signal,
        headers: {
          Authorization: `Bearer ${key}`,
          ...(token && !isStill ? { "X-Nitka-User-Token": token } : visitor && { "X-Nitka-Visitor": visitor.token }),
          ...headers,
        },
      });
      this.#isHeard = true;
      return response;
    } catch (error) {
      this.#isHeard ||= error instanceof Refused;
      if (this.#isHeard || !(error instanceof Broken)) throw error;
      // A refusal that this page may not read looks like a broken line.
      const found = await fetch(`${this.#base}healthz`, { mode: "no-cors", cache: "no-store" }).catch(() => null);
      if (!found) throw error;
      if (!isSecond) return this.#ask(path, { body, headers, signal }, true); // it may have come back just now
      console.error(`nitka-chat: the server does not take the key ${key?.slice(0, 12)}… from ${location.origin}.`);
      throw new Refused(403, "not_set_up", 0);
    }
  }

  async #read(path, options) {
    return (await this.#ask(path, options)).json();
  }

  get #inSession() {
    return { "X-Nitka-Session": this.#record.session };
  }

  #button(name, glyph, onclick, more = {}) {
    const label = this.#say(name);
    const attributes = { type: "button", class: "icon", "aria-label": label, title: label, onclick, ...more };
    return h("button", attributes, icon(glyph));
  }

  #plain(name, onclick, kind = "plain") {
    return h("button", { type: "button", class: kind, onclick }, this.#say(name));
  }

  #build() {
    const isInline = this.hasAttribute("inline");
    const p = (this.#parts = {});
    p.launcher = this.#button("title", "chat", () => (this.isOpen ? this.close() : this.open()), {
      class: "icon filled launcher",
      "aria-expanded": "false",
      "aria-haspopup": "dialog",
    });
    p.title = h("h2", { id: "title" }, this.#say("title"));
    p.back = this.#button("back", "back", () => this.#view("chat", true));
    p.know = this.#button("know", "know", () => this.#openFacts());
    p.fresh = this.#button("new", "new", () => this.#newConversation());
    p.shut = this.#button("close", "close", () => this.close(), { hidden: isInline });
    p.banner = h("div", { class: "banner", hidden: true });
    p.earlier = this.#plain("earlier", () => this.#loadEarlier(), "plain earlier");
    p.list = h("ol", { class: "messages" });
    const about = h("p", { class: "about" }, this.#say("intro"), " ", this.#plain("know", () => this.#openFacts()));
    const isFocusable = { tabindex: 0, role: "region" };
    p.log = h("div", { class: "main", ...isFocusable, "aria-label": this.#say("log") }, about, p.earlier, p.list);
    p.facts = h("div", { class: "main facts", hidden: true, ...isFocusable, "aria-labelledby": "title" });
    p.form = this.#buildForm();
    p.panel = h(
      isInline ? "section" : "dialog",
      { class: "panel", "aria-labelledby": "title", lang: this.#language, onkeydown: this.#onKey },
      h("header", {}, p.back, p.title, p.know, p.fresh, p.shut),
      p.banner,
      p.log,
      p.facts,
      p.form,
      this.#voice.region,
    );
    p.panel.addEventListener("cancel", (event) => (event.preventDefault(), this.#escape()));
    this.#shadow.replaceChildren(...(isInline ? [p.panel] : [p.panel, p.launcher]));
  }

  #buildForm() {
    const p = this.#parts;
    p.input = h("textarea", {
      rows: 1,
      placeholder: this.#say("hint"),
      "aria-label": this.#say("hint"),
      enterkeyhint: "send",
      dir: "auto",
      autocomplete: "off",
      oninput: () => this.#show(),
    });
    p.send = h("button", { type: "submit", class: "icon filled" });
    const checked = Boolean(this.#own.read()?.private);
    p.private = h("input", { type: "checkbox", role: "switch", checked, onchange: () => this.#privacyChanged() });
    const onsubmit = (event) => {
      event.preventDefault();
      if (!this.#turn) this.#submit();
      else if (!this.#turn.isFresh) {
        this.#turn.stop();
        p.input.focus(); // the button may be of no use in a moment
      }
    };
    return h(
      "form",
      { onsubmit },
      h("div", { class: "row" }, p.input, p.send),
      h("label", {}, p.private, this.#say("private")),
    );
  }

  #onKey = (event) => {
    if (event.isComposing || event.keyCode === 229) return; // the key belongs to an input method
    if (event.key === "Escape") {
      event.preventDefault();
      event.stopPropagation();
      this.#escape();
    } else if (event.key === "Enter" && !event.shiftKey && event.target === this.#parts.input) {
      event.preventDefault();
      if (!this.#turn) this.#submit();
    }
  };

  #escape() {
    const no = this.#shadow.querySelector(".ask > .plain");
    if (no) no.click();
    else if (!this.#parts.facts.hidden) this.#view("chat", true);
    else this.close();
  }

  #view(name, isAsked = false) {
    const p = this.#parts;
    const isFacts = name === "facts";
    const wasFacts = !p.facts.hidden;
    p.facts.hidden = p.back.hidden = !isFacts;
    p.log.hidden = p.form.hidden = p.know.hidden = p.fresh.hidden = isFacts;
    p.title.textContent = isFacts ? this.#say("know") : this.#say("title");
    this.#show();
    if (isFacts) p.back.focus();
    else if (wasFacts && isAsked) p.input.focus();
  }

  #show() {
    const { banner, facts, input, send, fresh, know, private: toggle } = this.#parts;
    const isWaiting = !this.#record && !this.#isElsewhere;
    const told = [
      this.#isElsewhere && "elsewhere",
      isWaiting && "moment",
      !navigator.onLine && "offline",
      toggle.checked && facts.hidden && "privateOn",
    ].filter(Boolean);
    this.#keepingEnd(() => {
      banner.hidden = !told.length;
      banner.replaceChildren(...told.map((name) => h("div", {}, this.#say(name))));
      if (this.#isElsewhere) banner.append(this.#plain("reload", () => location.reload()));
    });
    const name = this.#turn ? "stop" : "send";
    if (send.dataset.name !== name) {
      send.dataset.name = name;
      send.replaceChildren(icon(name));
      send.setAttribute("aria-label", this.#say(name));
      send.title = this.#say(name);
    }
    send.ariaDisabled = Boolean(this.#turn?.isFresh);
    send.disabled = !this.#record || (!this.#turn && !input.value.trim());
    for (const part of [input, fresh, know, toggle]) part.disabled = !this.#record;
  }

  #item(row) {
    const isUser = row.role === "user";
    const text = h("div", { class: "text", dir: "auto" });
    const item = h(
      "li",
      { class: isUser ? "user" : "bot" },
      h("span", { class: "hide" }, this.#say(isUser ? "you" : "ai")),
      text,
    );
    item.write = (value) => {
      item.value = value;
      text.lang = this.#languageOf(value);
      if (isUser) text.textContent = value;
      else writeInto(text, value);
    };
    item.note = (told, { isBad = false, buttons = [] } = {}) => {
      item.querySelector(".note")?.remove();
      if (told) item.append(h("div", { class: isBad ? "note bad" : "note" }, h("span", {}, told), h("br"), ...buttons));
    };
    item.write(row.text);
    if (row.interrupted) item.note(this.#say("broken"));
    if (row.seq !== undefined) this.#place(item, row.seq);
    return item;
  }

  #place(item, seq) {
    if (this.#rows.get(seq) !== item) this.#rows.get(seq)?.remove();
    item.seq = seq;
    this.#rows.set(seq, item);
  }

  #notice(text, ...more) {
    const notice = h("li", { class: "notice" }, h("div", {}, text), ...more);
    this.#keepingEnd(() => this.#parts.list.append(notice), true);
    this.#voice.say(text);
    return notice;
  }

  /** Does something that changes the list; whoever was at its end stays there. */
  #keepingEnd(change, isForced = false) {
    const { log, panel } = this.#parts;
    const box = getComputedStyle(log).overflowY === "visible" ? panel : log;
    const isAtEnd = isForced || box.scrollHeight - box.scrollTop - box.clientHeight < 60;
    change();
    if (isAtEnd) box.scrollTop = box.scrollHeight;
  }

  #lineChanged() {
    this.#show();
    this.#voice.say(navigator.onLine ? "" : this.#say("offline"));
    this.#retry();
  }

  async #load(isAgain = false) {
    const isSomebody = this.#claims || this.#record?.visitor;
    if (!this.#record || (this.#isLoaded && !isAgain)) return;
    this.#isLoaded = true;
    const { signal } = this.#life;
    try {
      if (isSomebody) {
        await this.#ready();
        const shown = [...this.#rows.keys()]; // a row that comes meanwhile may be newer than the page
        const page = await this.#read(`v1/me/conversation?limit=${PAGE}`, { headers: this.#inSession });
        if (signal.aborted) return;
        this.#keepingEnd(() => this.#merge(page, shown), !isAgain);
      }
      this.#unread?.remove();
      this.#unread = null;
      this.#restore();
    } catch (error) {
      if (signal.aborted) return;
      if (error.code === "invalid_visitor") return this.#keep({ visitor: null });
      this.#isLoaded = false;
      const name = nameOf(error);
      const again = this.#plain("again", () => this.#load());
      // An unsent message says it already.
      const told = this.#say(["signIn", "setUp"].includes(name) ? name : "unread");
      if (name !== "signIn" || !this.#unsent.size) this.#unread ??= this.#notice(told, again);
      if (error instanceof Broken) pause(WAITS.at(-1), signal).then(() => navigator.onLine && this.#load(), () => {});
      this.#report(error);
    }
  }

  #merge({ data, next }, shown) {
    const { list, earlier } = this.#parts;
    const later = (seq) => [...list.children].find((item) => item.seq > seq) ?? this.#turn?.ask ?? null;
    const known = new Set(data.map((row) => row.seq));
    const first = next ?? 0;
    for (const seq of shown) {
      if (seq >= first && !known.has(seq)) {
        this.#rows.get(seq)?.remove();
        this.#rows.delete(seq);
      }
    }
    for (const row of data.toReversed()) {
      const item = this.#rows.get(row.seq);
      if (item && item.value !== row.text) item.write(row.text);
      if (!item) list.insertBefore(this.#item(row), later(row.seq));
    }
    if (this.#before === null || next === null) this.#before = next;
    earlier.hidden = this.#before === null;
  }

  async #loadEarlier() {
    const { list, log, earlier } = this.#parts;
    const { signal } = this.#life;
    try {
      const path = `v1/me/conversation?limit=${PAGE}&before=${this.#before}`;
      const { data, next } = await this.#read(path, { headers: this.#inSession });
      if (signal.aborted) return;
      const height = log.scrollHeight;
      const items = data.toReversed().map((row) => this.#item(row));
      list.prepend(...items);
      log.scrollTop += log.scrollHeight - height; // what was read stays under the eye
      this.#before = next;
      earlier.hidden = next === null;
      if (next === null) log.focus();
    } catch (error) {
      this.#report(error);
    }
  }

  #restore() {
    const unsent = this.#own.read()?.unsent;
    if (!unsent || this.#turn || unsent.who !== this.#who || unsent.session !== this.#record.session) return;
    const latest = [...this.#rows.values()].filter((item) => item.classList.contains("user")).at(-1);
    if (latest?.value === unsent.text && latest.seq > unsent.after) return this.#setUnsent(null);
    if ([...this.#unsent].some((turn) => turn.key === unsent.key)) return;
    const turn = { key: unsent.key, text: unsent.text, isPrivate: false };
    this.#keepingEnd(() => this.#open(turn), true);
    // Left in mid-answer: under its key the server gives what it kept of it.
    if (unsent.isAsked) this.#run(turn);
    else this.#fail(turn, new Broken());
  }

  #setUnsent(unsent) {
    this.#own.write({ ...this.#own.read(), unsent });
  }

  #privacyChanged() {
    const isPrivate = this.#parts.private.checked;
    this.#own.write({ ...this.#own.read(), private: isPrivate });
    this.#show();
    if (isPrivate) this.#voice.say(this.#say("privateOn"));
  }

  #newConversation() {
    const { input } = this.#parts;
    const draft = input.value;
    this.#startOver({ ...this.#record, session: randomId() });
    input.value = draft;
    this.#keep({});
    this.#setUnsent(null);
    this.#isLoaded = true;
    this.#notice(this.#say("begun"));
    this.#show();
    input.focus();
  }

  #submit() {
    const { input, private: toggle } = this.#parts;
    const text = input.value.trim();
    if (!text || !this.#record) return;
    input.value = "";
    const turn = { key: randomId(), text, isPrivate: toggle.checked };
    this.#keepingEnd(() => this.#open(turn), true);
    this.#run(turn);
  }

  #open(turn) {
    turn.ask = this.#item({ role: "user", text: turn.text });
    if (turn.isPrivate) turn.ask.note(this.#say("privateNote"));
    this.#parts.list.append(turn.ask);
  }

  #run(turn) {
    turn.over = this.#hold(turn);
  }

  async #hold(turn) {
    const { signal } = this.#life;
    const stopping = new AbortController();
    turn.stop = () => stopping.abort();
    turn.isFresh = true; // a second click on what was Send is not meant for Stop
    setTimeout(() => ((turn.isFresh = false), this.#show()), DOUBLE);
    turn.ask.note(turn.isPrivate ? this.#say("privateNote") : "");
    turn.answer = this.#item({ role: "assistant", text: this.#say("writing") });
    turn.follow = this.#voice.follow(this.#languageOf);
    turn.got = ""; // what came of the answer
    this.#turn = turn;
    this.#unsent.delete(turn);
    if (!turn.isPrivate) {
      const { key, text } = turn;
      const after = Math.max(-1, ...this.#rows.keys());
      this.#setUnsent({ key, text, session: this.#record.session, who: this.#who, after, isAsked: true });
    }
    this.#keepingEnd(() => turn.ask.after(turn.answer), true);
    this.#parts.log.setAttribute("aria-busy", "true");
    this.#show();
    const ended = await this.#deliver(turn, stopping.signal).catch((error) => {
      if (signal.aborted) return null;
      return isAborted(error) ? this.#stopped(turn) : this.#failed(turn, error);
    });
    if (signal.aborted) return;
    this.#turn = null;
    this.#parts.log.removeAttribute("aria-busy");
    if (!turn.isPrivate) this.#keep({ said: randomId() }); // tells other tabs
    this.#show();
    if (turn.isBehind) this.#load(true);
    if (ended) this.#retry();
  }

  async #deliver(turn, signal) {
    for (let attempt = 0; ; attempt++) {
      try {
        await this.#ready(turn);
        return await this.#stream(turn, signal);
      } catch (error) {
        const isPassing = error instanceof Broken || error.status === 503;
        const isBroken = isPassing && navigator.onLine && attempt < WAITS.length;
        if (error.code === "invalid_visitor" && !attempt) {
          this.#keep({ visitor: null });
        } else if (isBroken) {
          turn.answer.note(this.#say("reconnecting"));
          if (attempt === 0) this.#voice.say(this.#say("reconnecting"));
          await pause(WAITS[attempt], signal);
        } else {
          throw error;
        }
      }
    }
  }

  async #stream(turn, signal) {
    const headers = { ...this.#inSession, "Idempotency-Key": turn.key };
    if (turn.got) headers["Last-Event-ID"] = String([...turn.got].length);
    const body = { text: turn.text, stream: true, ...(turn.isPrivate && { private: true }) };
    const response = await this.#ask("v1/turns", { body, headers, signal });
    for await (const { name, id, value } of eventsOf(response)) {
      if (name === "error") throw new Refused(502, value.error?.code ?? "", 0);
      turn.answer.note("");
      if (name === "done") return this.#done(turn, value);
      // The id says where a piece ends. An answer may begin anew: then nothing of the first was kept.
      const start = id - [...value.text].length;
      const have = [...turn.got];
      turn.got = (start === have.length ? turn.got : have.slice(0, start).join("")) + value.text;
      this.#draw(turn);
    }
    throw new Broken();
  }

  #draw(turn) {
    if (turn.isDue) return;
    turn.isDue = true;
    requestAnimationFrame(() => {
      turn.isDue = false;
      if (turn.isOver || !turn.got.trim()) return;
      this.#keepingEnd(() => turn.answer.write(turn.got));
      turn.follow(turn.got, false);
    });
  }

  #done(turn, { text, seq, interrupted }) {
    turn.isOver = true;
    this.#keepingEnd(() => {
      turn.answer.write(text);
      turn.answer.note(interrupted ? this.#say("broken") : "");
    });
    turn.follow(text, true);
    if (interrupted) this.#voice.say(this.#say("broken"));
    return this.#settle(turn, seq);
  }

  #settle(turn, seq) {
    if (!turn.isPrivate) this.#setUnsent(null);
    if (seq != null) {
      this.#place(turn.ask, seq);
      this.#place(turn.answer, seq + 1);
    }
    this.#tell("answer", { seq: seq ?? null });
    return true;
  }

  async #stopped(turn) {
    const { signal } = this.#life;
    turn.isOver = true;
    const kept = !turn.isPrivate && (await this.#whatIsKept(turn));
    if (signal.aborted) return;
    if (kept || (turn.isPrivate && turn.got.trim())) {
      const [seq, text] = kept ? [kept.seq, kept.text] : [null, turn.got];
      const told = this.#say(turn.isPrivate ? "privateNote" : "stopped");
      this.#keepingEnd(() => (turn.answer.write(text), turn.answer.note(told)));
      turn.follow(text, true);
      this.#voice.say(told);
      return this.#settle(turn, seq);
    }
    // Whether it is kept nobody can say now: under its key the server will.
    if (turn.got.trim()) return this.#fail(turn, new Broken());
    turn.answer.remove();
    turn.ask.remove();
    this.#setUnsent(null);
    const { input } = this.#parts;
    input.value = input.value ? `${turn.text}\n${input.value}` : turn.text;
    this.#notice(this.#say("unanswered"));
    input.focus();
  }

  /** What was kept of a turn whose line was cut. The server may need a moment to notice. */
  async #whatIsKept(turn) {
    for (const wait of LOOKS) {
      try {
        await pause(wait, this.#life.signal);
        const { data } = await this.#read("v1/me/conversation?limit=2", { headers: this.#inSession });
        const [answer, question] = data;
        if (question && !this.#rows.has(question.seq) && question.role === "user" && answer.seq === question.seq + 1) {
          return { seq: question.seq, text: answer.text };
        }
        if (!turn.got && wait > 1000) return null;
      } catch (error) {
        if (isAborted(error)) return null;
      }
    }
    return null;
  }

  async #failed(turn, error) {
    if (turn.got && !turn.isPrivate && error instanceof Refused) {
      const { signal } = this.#life;
      const kept = await this.#whatIsKept(turn);
      if (signal.aborted) return;
      if (kept) return this.#done(turn, { ...kept, interrupted: true });
    }
    this.#fail(turn, error);
  }

  #fail(turn, error) {
    turn.answer?.remove();
    const isWaiting = error instanceof Broken && !navigator.onLine;
    const name = isWaiting ? "waiting" : nameOf(error);
    if (["forgotten", "turn_key_reused"].includes(error.code)) turn.key = randomId();
    if (isWaiting || ["network", "signIn"].includes(name)) this.#unsent.add(turn);
    const { unsent } = this.#own.read() ?? {};
    if (unsent?.key === turn.key) this.#setUnsent({ ...unsent, isAsked: false });
    const again = () => {
      this.#parts.input.focus();
      if (!this.#turn) this.#run(turn);
    };
    const edit = () => {
      this.#parts.input.value = turn.text;
      this.#drop(turn);
      this.#parts.input.focus();
      this.#show();
    };
    if (name === "signIn") this.#unread?.remove();
    const told = `${turn.isPrivate ? `${this.#say("privateNote")}. ` : ""}${this.#say(name, { n: error.wait || 1 })}`;
    const buttons = [...(isWaiting || name === "long" ? [] : [this.#plain("again", again)]), this.#plain("edit", edit)];
    this.#keepingEnd(() => turn.ask.note(told, { isBad: !isWaiting, buttons }), true);
    this.#voice.say(told);
    this.#report(error);
  }

  #drop(turn) {
    turn.ask.remove();
    this.#unsent.delete(turn);
    if (this.#own.read()?.unsent?.key === turn.key) this.#setUnsent(null);
  }

  #retry() {
    const [turn] = this.#unsent;
    if (turn && !this.#turn && this.#record && navigator.onLine) this.#run(turn);
    if (this.isOpen && !this.#isLoaded) this.#load();
  }

  #report(error) {
    if (isAborted(error)) return;
    if (error instanceof Refused) {
      console.error(`nitka-chat: the server refused (${error.message}).`);
      this.#tell("error", { status: error.status, code: error.code });
      if (error.code === "invalid_user_token") this.#tell("token-needed");
    } else if (!(error instanceof Broken)) {
      console.error("nitka-chat:", error);
    }
  }

  async #openFacts() {
    const { facts } = this.#parts;
    this.#view("facts");
    facts.replaceChildren(h("p", {}, this.#say("moment")));
    const { signal } = this.#life;
    try {
      const found = await this.#facts();
      if (!signal.aborted) this.#showFacts(found);
    } catch (error) {
      if (signal.aborted) return;
      facts.replaceChildren(h("p", {}, this.#say("unread")), this.#plain("again", () => this.#openFacts()));
      this.#voice.say(this.#say("unread"));
      this.#report(error);
    }
  }

  async #facts() {
    if (!this.#claims && !this.#record.visitor) return [];
    await this.#ready();
    const found = [];
    let cursor = "";
    do {
      const page = await this.#read(`v1/me/facts?limit=200${cursor && `&cursor=${encodeURIComponent(cursor)}`}`);
      found.push(...page.data);
      cursor = page.next;
    } while (cursor);
    return found;
  }

  #showFacts(found) {
    const { facts } = this.#parts;
    const told = h("p", { class: "told", tabindex: -1, hidden: true });
    const list = h("ul", {}, ...found.map((fact) => this.#fact(fact)));
    const intro = h("p", {}, this.#say(found.length ? "knowIntro" : "nothing"));
    const box = h("input", { type: "checkbox" });
    const withTurns = h("label", {}, box, this.#say("withTurns"));
    const forget = this.#plain("forget", () => this.#askOnce(forget), "danger");
    // Where no fact is, conversations may be.
    const isSomebody = this.#claims || this.#record.visitor;
    Object.assign(facts, { told, box });
    facts.replaceChildren(intro, told, ...(found.length ? [withTurns, list] : []), ...(isSomebody ? [forget] : []));
    this.#voice.say(intro.textContent);
  }

  #fact(fact) {
    const whose = fact.about === "user" ? "" : `${fact.about}: `;
    const label = this.#say("delete", { what: whose + fact.statement });
    const bin = h("button", { type: "button", class: "icon", "aria-label": label, title: label }, icon("bin"));
    const lang = this.#languageOf(fact.statement);
    const words = h("div", {}, h("bdi", {}, whose), h("span", { lang, dir: "auto" }, fact.statement));
    const item = h("li", {}, words, bin);
    bin.addEventListener("click", () => this.#forgetFact(fact, item, bin));
    return item;
  }

  async #forgetFact(fact, item, bin) {
    const { facts } = this.#parts;
    const { signal } = this.#life;
    const isWithTurns = facts.box.checked;
    bin.disabled = true;
    try {
      const erased = await this.#read("v1/me/forget", { body: { fact: fact.id, with_turns: isWithTurns } });
      if (signal.aborted) return;
      const next = item.nextElementSibling ?? item.previousElementSibling;
      item.remove();
      if (!next) this.#showFacts([]);
      const name = erased.messages ? "deletedTurns" : erased.still_said ? "stillSaid" : "deleted";
      this.#tellInFacts(this.#say(name, { n: erased.messages || erased.still_said }), next?.querySelector("button"));
      if (isWithTurns) await this.#load(true);
      this.#keep({ said: randomId() });
    } catch (error) {
      if (signal.aborted) return;
      bin.disabled = false;
      this.#tellInFacts(this.#say("undone"), bin);
      this.#report(error);
    }
  }

  #tellInFacts(text, next) {
    const { told } = this.#parts.facts;
    told.textContent = text;
    told.hidden = false;
    (next ?? told).focus();
    this.#voice.say(text);
  }

  #askOnce(button) {
    const sure = h("p", { id: "sure" }, this.#say("sure"));
    const yes = this.#plain("yes", () => this.#forgetAll(yes), "danger");
    const no = this.#plain("no", () => (group.replaceWith(button), button.focus()));
    const group = h("div", { class: "ask", role: "group", "aria-labelledby": "sure" }, sure, yes, no);
    button.replaceWith(group);
    group.scrollIntoView({ block: "nearest" });
    no.focus();
  }

  async #forgetAll(yes) {
    const { signal } = this.#life;
    yes.disabled = true;
    try {
      await this.#ready();
      const erased = await this.#read("v1/me/forget", { body: { everything: true } });
      if (signal.aborted) return;
      this.#startOver(freshFor(this.#who));
      this.#keep({});
      this.#setUnsent(null);
      this.#isLoaded = true;
      this.#view("facts");
      this.#showFacts([]);
      const told = this.#say("gone", erased);
      this.#tellInFacts(erased.erasure === "pending" ? `${told} ${this.#say("pending")}` : told);
      this.#tell("forgotten");
    } catch (error) {
      if (signal.aborted) return;
      yes.disabled = false;
      this.#tellInFacts(this.#say("undone"), yes);
      this.#report(error);
    }
  }
}

const freshFor = (who) => ({ who, session: randomId(), visitor: null });
const isRecord = (value) => typeof value?.who === "string" && typeof value.session === "string";

/** Writes Markdown into an element. Blocks that stand there already stay: an answer grows at its end. */
function writeInto(element, text) {
  const blocks = blocksOf(text);
  const before = element.blocks ?? [];
  let same = 0;
  while (same < blocks.length && blocks[same] === before[same]) same++;
  if (element.blocks) [...element.childNodes].slice(same).forEach((node) => node.remove());
  else element.replaceChildren();
  element.append(...blocks.slice(same).map((block) => blockOf(block)));
  element.blocks = blocks;
}

function nameOf(error) {
  if (!(error instanceof Refused)) return "network";
  if (error.status === 429) return "busy";
  if (error.status === 413 || ["context_length_exceeded", "bad_text"].includes(error.code)) return "long";
  if (error.code === "invalid_user_token") return "signIn";
  if (error.code === "forgotten") return "forgotten";
  if ([401, 403, 404].includes(error.status)) return "setUp";
  return "failed";
}

customElements.define("nitka-chat", NitkaChat);
