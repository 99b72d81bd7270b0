"""What the command line says, one table per language.

Rules: a text is chosen by the locale's language, English where there is none of that language. Counts stand after a
colon or a dash, so that no language needs its plurals here. What is filled in is a number, a path or a name of ours.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Texts:
    """One language. `{…}` are filled in."""

    # errors
    error: str
    unexpected: str
    no_store: str
    ask_yes: str
    errors: Mapping[str, str] = field(default_factory=dict)  # by class; English needs none, its errors say it
    hints: Mapping[str, str]  # what to do, by class

    # the first screen of a chat: four lines, and one for a conversation that goes on
    offline: str
    online: str
    where_data: str
    where_key: str
    key_made: str
    key_environment: str
    try_this: str
    continued: str

    # chat
    you: str
    help: str
    unknown_command: str
    new_session: str
    stopped: str
    stopped_early: str
    broke_off: str
    leave_hint: str
    replayed: str
    fold_failed: str
    no_summary: str
    summary_foot: str
    confirm_session: str
    confirm_user: str
    confirm_turn: str
    yes: str  # accepted answers, separated by blanks; whatever else means no
    kept: str

    # receipts
    no_receipt: str
    why_title: str
    why_head: tuple[str, str, str]
    total: str
    counted: str
    summary_covers: str
    layers: Mapping[str, str]
    outcomes: Mapping[str, str]
    reasons: Mapping[str, str] = field(default_factory=dict)  # of receipts, as patterns; English needs none

    # export
    user: str
    assistant: str
    session: str
    cut_off: str
    unreadable: str
    unreadable_rows: str
    summary: str
    other: str
    nothing_stored: str
    written: str

    # forget, settle, keys, backup
    nothing_to_forget: str
    forgotten: str
    pending: str
    settled: str
    settle_failed: str
    settling: str
    rotating: str
    rotated: str
    retired: str
    retired_kept: str
    retired_environment: str
    key_active: str
    key_kept: str
    key_elsewhere: str
    backing_up: str
    backed_up: str
    backup_keys: str
    backup_environment: str

    # doctor
    good: str
    bad: str
    note: str
    checks: Mapping[str, str]
    advice: Mapping[str, str]
    all_well: str
    not_well: str


ENGLISH = Texts(
    error="nitka: {text}",
    unexpected="nitka: unexpected: {name} (run it again with --debug for the details)",
    no_store="There is no store there yet; `nitka chat` makes one, or name the right one with --store.",
    ask_yes="Without a terminal nothing is asked: pass --yes.",
    hints={
        "KeyMissing": "If you have a copy of the key file, put it back or name it with NITKA_KEY_FILE.",
        "WrongKey": "Name the right key file with NITKA_KEY_FILE, or restore it from your copy.",
        "Damaged": "`nitka export` still gives everything else.",
        "StoreBusy": "Try again in a moment.",
    },
    offline="nitka keeps the thread. The model is an OFFLINE STAND-IN: it can only quote this conversation.",
    online="nitka keeps the thread. The model is {model}; what you say goes there, with what it needs to know.",
    where_data="Data: {path} (encrypted)",
    where_key="Key:  {path}; whoever loses it loses every conversation, so keep a copy.",
    key_made="Key:  {path}, made just now; whoever loses it loses every conversation, so keep a copy.",
    key_environment="Key:  from NITKA_ROOT_KEYS; whoever loses it loses every conversation.",
    try_this="Try:  tell it your name and ask for it later; /new breaks the thread; /why shows what it was given.",
    continued="Going on with your latest conversation (messages: {count}); /new begins another.",
    you="you",
    help=(
        "/new         break the thread: a new conversation that knows nothing of this one\n"
        "/why         what the model was given for the last answer, and what was not\n"
        "/summary     the running summary of this conversation\n"
        "/forget      forget this conversation, after asking\n"
        "/forget me   forget everything said by this user, after asking\n"
        "/quit        leave (or Ctrl-D); Ctrl-C stops an answer and keeps what was shown\n"
        "//text       say a text that begins with a slash"
    ),
    unknown_command="There is no such command; /help lists them. To say it all the same, begin with two slashes.",
    new_session="A new conversation. What was said before is not known here.",
    stopped="[stopped; what was shown is kept]",
    stopped_early="[stopped before anything was shown; this turn is not kept]",
    broke_off="The model broke off; what was shown is kept.",
    leave_hint="(Ctrl-D or /quit leaves)",
    replayed="[answered before]",
    fold_failed="[the summary could not be written just now; it will be tried again]",
    no_summary="No summary yet: everything said here still stands word for word.",
    summary_foot="Of messages 0–{last}; {tokens} tokens. What came after them stands word for word.",
    confirm_session="Forget this conversation for good? [y/N] ",
    confirm_user="Forget everything of this user for good (conversations: {sessions}, messages: {messages})? [y/N] ",
    confirm_turn="Forget this turn for good? [y/N] ",
    yes="y yes",
    kept="Nothing was forgotten.",
    no_receipt="Nothing has been asked yet.",
    why_title="What the model was given: {used} of {room} tokens (budget {budget}, the rest is kept for the answer)",
    why_head=("what", "tokens", "messages"),
    total="together",
    counted="Counted by {counter}; before this question the conversation had {head} messages.",
    summary_covers="The summary stands for messages 0–{last}.",
    layers={
        "system": "system prompt",
        "tools": "tools",
        "profile": "profile",
        "summary": "summary",
        "turn_summary": "shortened history",
        "history": "history",
        "facts": "facts",
        "recall": "recalled passages",
        "knowledge": "knowledge",
        "question": "question",
        "traffic": "tool traffic",
    },
    outcomes={
        "sent": "",
        "compacted": "shortened",
        "condensed": "middle condensed",
        "gist": "in few words",
        "left_out": "left out ({count})",
    },
    user="User",
    assistant="Assistant",
    session="Conversation {name}",
    cut_off="cut off here",
    unreadable="message {seq} does not open",
    unreadable_rows="Damaged: these messages do not open (conversation:message): {places}. The rest is in the export.",
    summary="Summary",
    other="Also kept",
    nothing_stored="Nothing is stored for this user.",
    written="Written to {path}. It is plain text: nothing in it is encrypted.",
    nothing_to_forget="There is nothing to forget.",
    forgotten="Forgotten: conversations: {sessions}, messages: {messages}, summary lines: {lines}, facts: {facts}.",
    pending="Another process still reads an older state; `nitka settle` finishes the erasure on disk.",
    settled=(
        "Settled: folds: {folds}, messages read: {messages}, summaries mended: {mended}, erasures finished: {erased}."
    ),
    settle_failed="Not everything could be settled (failed: {failed}); it is still due and will be tried again.",
    settling="Settling what is due",
    rotating="Wrapping keys anew",
    rotated="The active root key is now {root}; keys wrapped anew: {count}.",
    retired=(
        "Old root keys destroyed: {roots}. Copies of the store made before no longer open, unless somebody still has "
        "the old key file: destroy its copies too."
    ),
    retired_kept="Still in {path}, because another store needs them: {roots}.",
    retired_environment="Now take the old keys out of NITKA_ROOT_KEYS, everywhere it is set.",
    key_active="active",
    key_kept="kept",
    key_elsewhere="not in this key ring",
    backing_up="Copying",
    backed_up="Backed up to {path}: {files}. Open it with --store {url}.",
    backup_keys="The key file {path} is NOT in it: without that key the copy does not open. Keep it elsewhere.",
    backup_environment="The root keys (NITKA_ROOT_KEYS) are NOT in it: without them the copy does not open.",
    good="ok",
    bad="PROBLEM",
    note="note",
    checks={
        "settings": "settings",
        "store": "store",
        "file": "files",
        "keys": "keys",
        "model": "model",
        "tokens": "tokens",
    },
    advice={
        "settings_ok": "the environment can be used",
        "store_none": "none yet at {path}; `nitka chat` makes it",
        "store_ok": "{path} opens; schema and keys belong together",
        "file_ok": "both files are sound and private",
        "file_damaged": "{path} is damaged; restore it from a backup",
        "file_open": "{path} can be read by others; run: chmod {mode} {path}",
        "keys_none": "no key ring yet at {path}; it is made on first use",
        "keys_ok": "{path}, private; roots: {count}; keep a copy elsewhere",
        "keys_environment": "from NITKA_ROOT_KEYS",
        "model_offline": "an offline stand-in; --model openai:NAME or NITKA_MODEL names a real one",
        "model_ok": "{model} answered",
        "model_bad": "{model}: {text} Check OPENAI_BASE_URL and OPENAI_API_KEY, and that the server runs",
        "tokens_exact": "counted exactly ({name})",
        "tokens_estimate": "estimated ({name}, margin {margin} %); nitka[tokens] counts exactly",
        "unfinished": "erasures to finish on disk: {count}; `nitka settle` does it",
    },
    all_well="All is well.",
    not_well="Problems: {count}.",
)

RUSSIAN = Texts(
    error="nitka: {text}",
    unexpected="nitka: неожиданная ошибка: {name} (подробности покажет --debug)",
    no_store="Хранилища там ещё нет; его создаст `nitka chat`, или укажите нужное через --store.",
    ask_yes="Без терминала спросить некого: добавьте --yes.",
    errors={
        "NitkaError": "Не получилось сделать то, о чём просили.",
        "BadInput": "Указано то, что использовать нельзя.",
        "BadId": "Идентификатор — от 1 до 512 байт UTF-8 без NUL и одиночных суррогатов; он не исправляется.",
        "BadText": "Текст не должен быть пустым или длиннее предела.",
        "KeyReused": "Этот ключ хода уже занят ходом с другим текстом.",
        "OverBudget": "То, что нельзя выбросить из запроса, само по себе больше бюджета.",
        "Forgotten": "То, о чём идёт речь, забыто; ничего не записано.",
        "KeyMissing": "В хранилище зашифрованные данные, а связки ключей к ним нет.",
        "WrongKey": "Связка ключей не от этого хранилища; ничего не прочитано и не записано.",
        "Damaged": "Запись не открывается: её изменили, обрезали или переложили на чужое место.",
        "StoreError": "С хранилищем работать нельзя.",
        "StoreBusy": "Хранилище слишком долго занято кем-то другим; ничего не записано.",
        "ModelError": "Модель не дала пригодного ответа; ничего не записано.",
    },
    hints={
        "KeyMissing": "Если есть копия файла ключей, верните её на место или укажите через NITKA_KEY_FILE.",
        "WrongKey": "Укажите верный файл ключей через NITKA_KEY_FILE или восстановите его из копии.",
        "Damaged": "`nitka export` отдаст всё остальное.",
        "StoreBusy": "Повторите чуть позже.",
    },
    offline="nitka держит нить разговора. Вместо модели ЗАГЛУШКА БЕЗ СЕТИ: она лишь цитирует этот разговор.",
    online="nitka держит нить разговора. Модель: {model}; ей уходит ваша реплика и то, что нужно для ответа.",
    where_data="Данные: {path} (зашифрованы)",
    where_key="Ключ:   {path}; потеряете его — потеряете все беседы, поэтому храните копию.",
    key_made="Ключ:   {path}, только что создан; потеряете его — потеряете все беседы, храните копию.",
    key_environment="Ключ:   из NITKA_ROOT_KEYS; потеряете его — потеряете все беседы.",
    try_this="Начните: скажите, как вас зовут, и спросите об этом позже; /new рвёт нить; /why — что видела модель.",
    continued="Продолжается ваша последняя беседа (сообщений: {count}); /new начнёт другую.",
    you="вы",
    help=(
        "/new         порвать нить: новая беседа, которая ничего не знает об этой\n"
        "/why         что получила модель для последнего ответа, а что нет\n"
        "/summary     накопленная выжимка этой беседы\n"
        "/forget      забыть эту беседу (с вопросом)\n"
        "/forget me   забыть всё, что говорил этот пользователь (с вопросом)\n"
        "/quit        выйти (или Ctrl-D); Ctrl-C прерывает ответ, показанное сохраняется\n"
        "//текст      сказать текст, который начинается с косой черты"
    ),
    unknown_command="Такой команды нет; список — /help. Чтобы сказать это как текст, начните с двух косых черт.",
    new_session="Новая беседа. О прежнем здесь не известно.",
    stopped="[прервано; показанное сохранено]",
    stopped_early="[прервано до первого слова; этот ход не сохранён]",
    broke_off="Модель замолчала на полуслове; показанное сохранено.",
    leave_hint="(выйти: Ctrl-D или /quit)",
    replayed="[уже отвечено]",
    fold_failed="[выжимку сейчас записать не удалось; будет новая попытка]",
    no_summary="Выжимки ещё нет: всё сказанное здесь хранится дословно.",
    summary_foot="По сообщениям 0–{last}; токенов: {tokens}. Всё, что после них, хранится дословно.",
    confirm_session="Забыть эту беседу навсегда? [д/Н] ",
    confirm_user="Забыть навсегда всё об этом пользователе (бесед: {sessions}, сообщений: {messages})? [д/Н] ",
    confirm_turn="Забыть этот ход навсегда? [д/Н] ",
    yes="д да y yes",
    kept="Ничего не забыто.",
    no_receipt="Вопросов ещё не было.",
    why_title="Что получила модель: {used} из {room} токенов (бюджет {budget}, остальное оставлено для ответа)",
    why_head=("что", "токены", "сообщения"),
    total="вместе",
    counted="Счётчик: {counter}; до этого вопроса в беседе было сообщений: {head}.",
    summary_covers="Выжимка заменяет сообщения 0–{last}.",
    layers={
        "system": "системная подсказка",
        "tools": "инструменты",
        "profile": "профиль",
        "summary": "выжимка",
        "turn_summary": "сжатая история",
        "history": "история",
        "facts": "факты",
        "recall": "прежние места",
        "knowledge": "справка",
        "question": "вопрос",
        "traffic": "вызовы инструментов",
    },
    outcomes={
        "sent": "",
        "compacted": "сжато",
        "condensed": "середина сжата",
        "gist": "короче",
        "left_out": "не вошло ({count})",
    },
    reasons={
        r"no room": "нет места",
        r"too large": "слишком велико",
        r"blank": "пусто",
        r"(\d+) lines by their gist: no room": r"строк в краткой форме: \1; нет места",
        r"summary lines were removed by forgetting and are not yet written anew": (
            "часть строк выжимки ушла вместе с забытым и ещё не записана заново"
        ),
    },
    user="Пользователь",
    assistant="Ассистент",
    session="Беседа {name}",
    cut_off="здесь ответ прерван",
    unreadable="сообщение {seq} не открывается",
    unreadable_rows="Повреждено: не открываются (беседа:сообщение): {places}. Остальное в выгрузке.",
    summary="Выжимка",
    other="Хранится также",
    nothing_stored="Об этом пользователе ничего не хранится.",
    written="Записано в {path}. Это открытый текст: в нём ничего не зашифровано.",
    nothing_to_forget="Забывать нечего.",
    forgotten="Забыто: бесед: {sessions}, сообщений: {messages}, строк выжимки: {lines}, фактов: {facts}.",
    pending="Другой процесс ещё читает прежнее состояние; стирание на диске завершит `nitka settle`.",
    settled=(
        "Сделано: свёрток: {folds}, прочитано сообщений: {messages}, выжимок исправлено: {mended}, "
        "стираний завершено: {erased}."
    ),
    settle_failed="Удалось не всё (неудач: {failed}); работа остаётся в очереди, будет новая попытка.",
    settling="Выполняется то, что накопилось",
    rotating="Ключи заворачиваются заново",
    rotated="Действует новый корневой ключ {root}; завёрнуто ключей заново: {count}.",
    retired=(
        "Старые корневые ключи уничтожены: {roots}. Снятые раньше копии хранилища больше не откроются, если ни у кого "
        "не осталось прежнего файла ключей: его копии тоже уничтожьте."
    ),
    retired_kept="Остались в {path}, потому что нужны другому хранилищу: {roots}.",
    retired_environment="Теперь уберите старые ключи из NITKA_ROOT_KEYS везде, где она задана.",
    key_active="действует",
    key_kept="хранится",
    key_elsewhere="нет в этой связке",
    backing_up="Копирование",
    backed_up="Копия в {path}: {files}. Открыть её: --store {url}.",
    backup_keys="Файла ключей {path} в ней НЕТ: без него копия не откроется. Храните его отдельно.",
    backup_environment="Корневых ключей (NITKA_ROOT_KEYS) в ней НЕТ: без них копия не откроется.",
    good="хорошо",
    bad="БЕДА",
    note="заметка",
    checks={
        "settings": "настройки",
        "store": "хранилище",
        "file": "файлы",
        "keys": "ключи",
        "model": "модель",
        "tokens": "токены",
    },
    advice={
        "settings_ok": "окружение в порядке",
        "store_none": "по адресу {path} его ещё нет; создаст `nitka chat`",
        "store_ok": "{path} открывается; схема и ключи подходят",
        "file_ok": "оба файла целы и закрыты от чужих",
        "file_damaged": "{path} повреждён; восстановите его из резервной копии",
        "file_open": "{path} могут читать другие; выполните: chmod {mode} {path}",
        "keys_none": "по адресу {path} связки ключей ещё нет; она появится при первом запуске",
        "keys_ok": "{path}, закрыт от чужих; корневых ключей: {count}; храните копию отдельно",
        "keys_environment": "из NITKA_ROOT_KEYS",
        "model_offline": "заглушка без сети; настоящую задают --model openai:NAME или NITKA_MODEL",
        "model_ok": "{model} отвечает",
        "model_bad": "{model}: {text} Проверьте OPENAI_BASE_URL, OPENAI_API_KEY и что сервер запущен",
        "tokens_exact": "считаются точно ({name})",
        "tokens_estimate": "оцениваются ({name}, запас {margin} %); точно считает nitka[tokens]",
        "unfinished": "стираний, не завершённых на диске: {count}; их завершит `nitka settle`",
    },
    all_well="Всё в порядке.",
    not_well="Неполадок: {count}.",
)

TABLES: Mapping[str, Texts] = {"en": ENGLISH, "ru": RUSSIAN}


def texts_for(locale: str) -> Texts:
    """The table for a locale's name ("ru_RU.UTF-8", "ru"); English where it names no language of ours."""
    return TABLES.get(re.split(r"[_.@-]", locale)[0].lower(), ENGLISH)


def said(texts: Texts, reason: str) -> str:
    """A reason of a receipt in this language; unchanged where the table does not know it."""
    for pattern, form in texts.reasons.items():
        if found := re.fullmatch(pattern, reason):
            return found.expand(form)
    return reason
