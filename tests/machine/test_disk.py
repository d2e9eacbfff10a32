"""Files of others are never lost; one's own are known again."""

import json
import os
from pathlib import Path

import pytest

from cases import each
from graphbam.errors import ConfigError
from graphbam.machine.disk import (
    Note,
    check_file,
    filling,
    list_own,
    make_folder,
    refuse_others,
    replacing,
    sign,
    take_path,
)

NOTE = Note("world.json", rb'^\{"format": "graphbam-world"', ("a.csv",))


def leave_note(folder, *files):
    (folder / NOTE.name).write_text(json.dumps(sign({"format": "graphbam-world", "seed": 1}, files)))


def test_own_files_are_those_that_the_note_lists(tmp_path):
    leave_note(tmp_path, "a.csv", "world.json")
    for name in ("a.csv", "b.csv"):
        (tmp_path / name).write_text(name)
    refuse_others(tmp_path, ["a.csv", "world.json", "c.csv"], NOTE)
    with pytest.raises(ConfigError, match=r"b\.csv is there already.* Choose another folder, or move the file"):
        refuse_others(tmp_path, ["a.csv", "b.csv"], NOTE)
    with filling(tmp_path, NOTE) as draft:
        (draft / "pictures").mkdir()
        (draft / "pictures" / "c.png").write_text("new")
    assert {path.name for path in tmp_path.rglob("*")} == {"b.csv", "pictures", "c.png"}


def test_a_folder_is_filled_whole_or_stays_as_it_was(tmp_path, monkeypatch):
    def fill(folder, text):
        with filling(folder, NOTE) as draft:
            leave_note(draft, "a.csv", "deep/b.csv", "world.json")
            (draft / "a.csv").write_text(text)
            (draft / "deep").mkdir()
            (draft / "deep" / "b.csv").write_text(text)

    folder = tmp_path / "not" / "there"
    fill(folder, "old")
    (folder / "mine").write_text("mine")
    fill(folder, "new")
    held = {str(path.relative_to(tmp_path)): path.read_text() for path in tmp_path.rglob("*") if path.is_file()}
    assert {Path(name).name: text for name, text in held.items() if name != "not/there/world.json"} == {
        "a.csv": "new", "b.csv": "new", "mine": "mine",
    }  # fmt: skip
    replace, left = os.replace, [0]

    def break_down(one, other):
        left[0] -= 1
        if left[0] == 0:
            raise OSError(28, "No space left on device")
        replace(one, other)

    monkeypatch.setattr("os.replace", break_down)
    for left[0] in range(1, 7):  # three files go away, three come
        with pytest.raises(ConfigError, match="cannot be written: No space left"):
            fill(folder, "newer")
        assert held == {
            str(path.relative_to(tmp_path)): path.read_text() for path in tmp_path.rglob("*") if path.is_file()
        }
    with pytest.raises(ZeroDivisionError), filling(folder, NOTE):
        _ = 1 / 0
    assert not list(tmp_path.rglob("*.part"))


def test_a_folder_in_place_of_a_file_is_not_thrown_away(tmp_path):
    leave_note(tmp_path, "a.csv")
    (tmp_path / "a.csv").mkdir()
    with pytest.raises(ConfigError, match=r"a\.csv is a folder where a file must go"), filling(tmp_path, NOTE):
        pass
    assert (tmp_path / "a.csv").is_dir()


def test_a_file_is_replaced_whole_or_stays_as_it_was(tmp_path):
    path = tmp_path / "a.csv"
    for text in ("old", "new"):
        with replacing(path) as draft, replacing(path) as other:
            assert draft != other
            draft.write_text(text)
            other.write_text("of another process")
        assert path.read_text() == text
    with pytest.raises(ZeroDivisionError), replacing(path) as draft:
        draft.write_text(str(1 / 0))
    assert {one.name: one.read_text() for one in tmp_path.iterdir()} == {"a.csv": "new"}


@each(("text", "own"), [
    ('{"format": "graphbam-world", "seed": 1}', {"a.csv"}),
    ('{"format": "graphbam-world", "files": []}', set()),
    ('{"format": "graphbam-world", "files": ["/etc/passwd", "../a.csv", "b/c.png"]}', {"b/c.png"}),
    ('{"tiers": [["a"], ["b"]]}', set()),
    ('{"x": {"format": "graphbam-world"}}', set()),
    ("", set()),
])  # fmt: skip
def test_notes_of_older_releases_own_what_these_wrote_and_no_note_leads_elsewhere(tmp_path, text, own):
    (tmp_path / NOTE.name).write_text(text)
    assert list_own(tmp_path, NOTE) == own


def test_empty_files_hold_nothing_to_lose(tmp_path):
    (tmp_path / "a.csv").write_text("")
    refuse_others(tmp_path, ["a.csv"], NOTE)


def test_a_folder_that_cannot_be_is_one_sentence(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match=r"cannot be written: .*\. Choose another place"):
        make_folder(tmp_path / "file" / "out")


def test_a_file_that_cannot_be_written_is_refused_before_the_work(tmp_path):
    (tmp_path / "file").write_text("")
    check_file(tmp_path / "file")
    check_file(tmp_path / "new" / "file")
    assert not (tmp_path / "new").exists()
    with pytest.raises(ConfigError, match="is a folder where a file must go"):
        check_file(tmp_path)
    with pytest.raises(ConfigError, match="file is a file, not a folder"):
        check_file(tmp_path / "file" / "new" / "mine")


def test_an_empty_path_is_not_the_present_folder(tmp_path):
    assert take_path(".") == take_path("./")
    with pytest.raises(ConfigError, match=r"the path of the store is empty\. Name one"):
        take_path("", "the path of the store")
