"""Files of others are never lost; one's own are known again."""

import json

import pytest

from cases import each
from graphbam.errors import ConfigError
from graphbam.machine.disk import Note, check_file, list_own, make_folder, refuse_others, remove_own, sign, take_path

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
    remove_own(tmp_path, ["world.json"], NOTE)
    assert {path.name for path in tmp_path.iterdir()} == {"b.csv", "world.json"}


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
