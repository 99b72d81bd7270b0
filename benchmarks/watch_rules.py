"""The pages `docs/watch-rules.md` and `.ru.md`, written from the packaged rules: `python -m benchmarks.watch_rules`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from nitka.watch.data import rule_book
from nitka.watch.rules import RuleBook
from nitka.watch.types import LIVES, FlagKind

PAGES = {"en": "watch-rules.md", "ru": "watch-rules.ru.md"}
_SAID: dict[str, dict[str, Any]] = {
    "en": {
        "top": """# The watch: rules and flags

*Written from the rules by `python -m benchmarks.watch_rules`. [По-русски](watch-rules.ru.md) · how to call it:
[watch.md](watch.md) · how often it errs: [responsible-use.md](responsible-use.md)*

## What is covered

Fraud aimed at the reader, extortion with what was sent or shown, approaches to minors, and attempts to talk an
assistant out of its instructions. That is all.

**Not covered:** threats of violence, hatred and bullying, drugs and weapons, publishing somebody's address or data
(doxxing), recruiting for crime, war or a sect, suicide, self-harm and eating disorders, trade in people, terror.
`target_distress` is read only as a part of extortion (X05): nobody is noticed for despair alone. Silence on any of
these means nothing; if you have a duty there, you need another tool and people.
""",
        "rules": "Rules",
        "flags": "Flags",
        "how": "`,` is or; `&` and; `>` earlier than; `@pretext` any flag of that group, `@minor` a known minor.",
        "head": ("rule", "combination", "severity", "tags"),
        "flag": ("flag", "group", "counts for", "what it says"),
        "titles": {
            "D": "In one message",
            "X": "Extortion",
            "F": "Fraud",
            "G": "Approaches to minors",
            "L": "Attacks on an assistant",
        },
        "life": "{} messages",
        "ever": "for good",
    },
    "ru": {
        "top": """# Наблюдение: правила и признаки

*Написано по правилам командой `python -m benchmarks.watch_rules`. [In English](watch-rules.md) · как вызывать:
[watch.ru.md](watch.ru.md) · как часто ошибается: [responsible-use.ru.md](responsible-use.ru.md)*

## Что охвачено

Мошенничество, направленное на собеседника; вымогательство присланным или показанным; сближение с детьми; попытки увести
ассистента от его указаний. Больше ничего.

**Не охвачено:** угрозы насилием, ненависть и травля, наркотики и оружие, публикация чужого адреса и данных (доксинг),
вербовка в преступление, на войну или в секту, самоубийство, самоповреждение и расстройства питания, торговля людьми,
террор. `target_distress` читается только как часть вымогательства (X05): одно отчаяние никого не выделит. Молчание обо
всём этом ничего не значит; если здесь ваш долг, нужны другое средство и люди.
""",
        "rules": "Правила",
        "flags": "Признаки",
        "how": "`,` — или; `&` — и; `>` — раньше; `@pretext` — любой признак группы, `@minor` — известно, что ребёнок.",
        "head": ("правило", "сочетание", "тяжесть", "метки"),
        "flag": ("признак", "группа", "сколько считается", "что говорит"),
        "titles": {
            "D": "В одном сообщении",
            "X": "Вымогательство",
            "F": "Мошенничество",
            "G": "Сближение с детьми",
            "L": "Нападение на ассистента",
        },
        "life": "{} сообщений",
        "ever": "навсегда",
    },
}


def page(language: str, book: RuleBook) -> str:
    """The page in a language, `en` or `ru`."""
    said = _SAID[language]
    lines = [said["top"], f"## {said['rules']} ({book.version})\n", said["how"], *_rules(book, said)]
    lines += [f"\n## {said['flags']}\n", *_row(said["flag"]), *(_flag(kind, language) for kind in book.kinds.values())]
    return "\n".join(lines) + "\n"


def _rules(book: RuleBook, said: dict[str, Any]) -> Iterator[str]:
    letters = dict.fromkeys(rule[0] for rule in book.rules)
    for letter in sorted(letters, key=[*said["titles"]].index):
        yield f"\n### {letter}: {said['titles'][letter]}\n"
        yield from _row(said["head"])
        for rule in book.rules.values():
            if rule.id[0] == letter:
                tags = ", ".join(rule.tags)
                yield f"| {rule.id} | {book.raw[rule.id]['formula'].replace(',', ', ')} | {rule.severity} | {tags} |"


def _row(head: tuple[str, ...]) -> tuple[str, str]:
    return f"| {' | '.join(head)} |", "|---" * len(head) + "|"


def _flag(kind: FlagKind, language: str) -> str:
    said = _SAID[language]
    life = said["ever"] if kind.life == "P" else said["life"].format(LIVES[kind.life])
    return f"| `{kind.id}` | {kind.group} | {life} | {kind.words.get(language, ('', ''))[1]} |"


def main() -> None:
    """Write both pages."""
    book, _ = rule_book()
    for language, name in PAGES.items():
        (Path(__file__).resolve().parents[1] / "docs" / name).write_text(page(language, book), encoding="utf-8")


if __name__ == "__main__":
    main()
