"""Division of any text into statements and commands."""

import re

from hypothesis import given
from hypothesis import strategies as st

from pipelines.query.script import StepKind, is_complete, split

#: Characters that mean something to the division, more often than others.
CHARACTERS = st.text(st.sampled_from(list("ab1 \n;'\"\\-/*é")), max_size=60)
WORDS = st.sampled_from(["SELECT", "group_id", "x", "1", "-", "/", "a - b", "*", ","])
QUOTED = st.text(st.sampled_from(list("ab;\\-/* \n")), max_size=8).flatmap(
    lambda text: st.sampled_from([f"'{text}'", f"'it''s {text}'", f'"{text}x"', f"/*{text.replace('*', '').replace('/', '')}*/"])
)
COMMENTS = st.text(st.sampled_from(list("ab;'\"\\ ")), max_size=8).map(lambda text: f"--{text}\n")
STATEMENTS = st.lists(st.one_of(WORDS, QUOTED, COMMENTS), max_size=6).map(lambda parts: " ".join(["SELECT", *parts, "z"]))


@given(st.lists(STATEMENTS, max_size=5), st.sampled_from([";", " ;\n", "; -- next\n", "\n;\n\n"]))
def test_statements_joined_by_semicolons_are_found_again(statements: list[str], separator: str) -> None:
    script = split("".join(statement + separator for statement in statements))
    assert [(step.kind, step.text) for step in script.steps] == [(StepKind.STATEMENT, statement) for statement in statements]
    assert script.rest == ""


@given(STATEMENTS)
def test_every_beginning_of_a_statement_is_its_own_rest(statement: str) -> None:
    for end in range(1, len(statement) + 1):
        script = split(statement[:end])
        # a beginning may end in the middle of a comment, whose mark alone is a minus or a slash
        assert script.steps == ()
        assert statement.startswith(script.rest)
        assert not is_complete(statement[:end])


@given(CHARACTERS)
def test_any_text_is_divided_without_a_loss(text: str) -> None:
    script = split(text)
    position = 0
    for step in script.all_steps:
        at = text.index(step.text, position)
        assert text.count("\n", 0, at) + 1 == step.line
        assert re.fullmatch(r"(?:[\s;]|--[^\n]*|/\*.*?\*/)*", text[position:at], re.DOTALL)
        position = at + len(step.text)
    assert is_complete(text) is (script.rest == "")


@given(CHARACTERS, CHARACTERS)
def test_complete_texts_are_divided_independently(first: str, second: str) -> None:
    first += "\n"
    if not is_complete(first):
        return
    whole = [(step.kind, step.text) for step in split(first + second).all_steps]
    parts = [(step.kind, step.text) for text in (first, second) for step in split(text).all_steps]
    assert whole == parts


@given(st.lists(STATEMENTS, max_size=3), st.sampled_from(["\\x", "\\watch 2 3", "\\d offsets"]))
def test_a_command_ends_with_its_line(statements: list[str], command: str) -> None:
    script = split("".join(f"{command}  \n{statement};" for statement in statements))
    found = [step.text for step in script.steps if step.kind is StepKind.COMMAND]
    assert found == [command] * len(statements)
    assert [step.text for step in script.steps if step.kind is StepKind.STATEMENT] == statements
