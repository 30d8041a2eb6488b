"""VOC folders are read as they are meant, and what is wrong with one is said with the file and the remedy."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rankwise_lab.detection.voc import Annotated, Object, VocError, read_voc

HEAD = "<annotation><size><width>50</width><height>40</height><depth>3</depth></size>"
BOX = "<bndbox><xmin>2</xmin><ymin>3</ymin><xmax>20</xmax><ymax>30</ymax></bndbox>"
FISH = f"<object><name>fish</name><difficult>0</difficult>{BOX}</object>"


def annotation(objects: str = FISH) -> str:
    return f"{HEAD}{objects}</annotation>"


def boxed(x1: str, y1: str, x2: str, y2: str) -> str:
    sides = f"<xmin>{x1}</xmin><ymin>{y1}</ymin><xmax>{x2}</xmax><ymax>{y2}</ymax>"
    return annotation(f"<object><name>fish</name><bndbox>{sides}</bndbox></object>")


class Year:
    """A year of a devkit on disk, to be spoilt."""

    def __init__(self, root: Path) -> None:
        self.root = root
        for folder in ("JPEGImages", "Annotations", "ImageSets/Main"):
            (root / folder).mkdir(parents=True)

    def image(self, name: str, xml: str | bytes | None = None, suffix: str = ".jpg") -> None:
        (self.root / "JPEGImages" / f"{name}{suffix}").write_bytes(b"not looked at")
        self.xml(name, annotation() if xml is None else xml)

    def xml(self, name: str, text: str | bytes) -> None:
        (self.root / "Annotations" / f"{name}.xml").write_bytes(text.encode() if isinstance(text, str) else text)

    def set(self, name: str, text: str | bytes) -> None:
        path = self.root / "ImageSets" / "Main" / f"{name}.txt"
        path.write_bytes(text.encode() if isinstance(text, str) else text)


@pytest.fixture
def year(tmp_path: Path) -> Year:
    """VOC2007 with images a, b, c: a and b for training, c to test."""
    made = Year(tmp_path / "VOCdevkit" / "VOC2007")
    for name in "abc":
        made.image(name)
    made.set("train", "a\nb\n")
    made.set("test", "c\n")
    return made


def test_images_objects_sets_and_classes_are_read(year: Year) -> None:
    whale = BOX.replace("20", "50").replace("30", "40")
    year.xml("b", annotation(f"<object><name>whale</name><difficult>1</difficult>{whale}</object>{FISH}"))
    kit = read_voc(year.root.parent)
    fish = Object("fish", (2.0, 3.0, 20.0, 30.0), False)
    folder = year.root / "JPEGImages"
    assert kit.name == "VOC2007"
    assert kit.classes == ("fish", "whale")
    assert kit.sets == {"train": ("a", "b"), "test": ("c",)}
    assert kit.images == (
        Annotated("a", folder / "a.jpg", 50, 40, (fish,)),
        Annotated("b", folder / "b.jpg", 50, 40, (Object("whale", (2.0, 3.0, 50.0, 40.0), True), fish)),
        Annotated("c", folder / "c.jpg", 50, 40, (fish,)),
    )


def test_a_year_is_found_by_itself_by_name_and_by_number(year: Year, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = read_voc(year.root)
    assert read_voc(str(year.root), "VOC2007") == expected
    assert read_voc(year.root.parent) == expected
    assert read_voc(year.root.parent, "VOC2007") == read_voc(year.root.parent, "2007") == expected
    monkeypatch.chdir(year.root)
    assert read_voc(".", "2007").name == "VOC2007"


def test_of_several_years_one_must_be_chosen(year: Year) -> None:
    other = Year(year.root.parent / "VOC2012")
    other.image("z")
    other.set("val", "z")
    with pytest.raises(VocError, match="several years; choose one of VOC2007, VOC2012"):
        read_voc(year.root.parent)
    assert read_voc(year.root.parent, "2012").sets == {"val": ("z",)}
    for wrong in ("2010", "../VOC2007", ""):
        with pytest.raises(VocError, match=r"no year .* choose one of VOC2007, VOC2012"):
            read_voc(year.root.parent, wrong)
    with pytest.raises(VocError, match="VOC2007 is one year, but not VOC2012"):
        read_voc(year.root, "2012")


def test_every_image_comes_once_in_the_order_of_the_sets(year: Year) -> None:
    for name in "de":
        year.image(name)
    year.set("trainval", "e\na\nb\nd\n")
    year.set("val", "e\nd\n")
    year.set("extra", "c\nd\n")
    kit = read_voc(year.root)
    assert list(kit.sets) == ["train", "val", "trainval", "test", "extra"]
    assert kit.sets["trainval"] == ("e", "a", "b", "d")
    assert [image.image_id for image in kit.images] == ["a", "b", "e", "d", "c"]
    kit = read_voc(year.root, sets=["test", "val"])
    assert list(kit.sets) == ["test", "val"]
    assert [image.image_id for image in kit.images] == ["c", "e", "d"]


def test_lines_may_end_as_on_windows_images_be_png_and_other_sets_broken(year: Year) -> None:
    year.image("d", suffix=".PNG")
    year.image("e.1", suffix=".JPEG")
    year.xml("c", "broken")  # of another set
    year.set("train", b"\xef\xbb\xbfd\r\n\r\n  e.1  \r\n")
    assert [image.path.name for image in read_voc(year.root, sets=["train"]).images] == ["d.PNG", "e.1.JPEG"]


def fish(x1: float, y1: float, x2: float, y2: float, name: str = "fish", difficult: bool = False) -> Object:
    return Object(name, (x1, y1, x2, y2), difficult)


SAID: dict[str, tuple[str, tuple[Object, ...]]] = {
    "decimals": (boxed("2.5", " 3 ", "20.75", "3.05e1"), (fish(2.5, 3.0, 20.75, 30.5),)),
    "not difficult": (annotation(FISH.replace("<difficult>0</difficult>", "")), (fish(2, 3, 20, 30),)),
    "difficult": (annotation(FISH.replace(">0<", "> 1 <")), (fish(2, 3, 20, 30, difficult=True),)),
    "spaces": (annotation(FISH.replace("fish", "\n poisson-lune é \n")), (fish(2, 3, 20, 30, "poisson-lune é"),)),
    # The parts of a person, in VOC's layouts, have names and boxes of their own.
    "parts": (
        annotation(f"<object><part><name>head</name>{BOX.replace('20', '9')}</part>{FISH[8:]}"),
        (fish(2, 3, 20, 30),),
    ),
}


@pytest.mark.parametrize("case", SAID)
def test_what_the_xml_may_say(year: Year, case: str) -> None:
    xml, expected = SAID[case]
    year.xml("a", xml)
    assert read_voc(year.root).images[0].objects == expected


BOMB = '<!DOCTYPE a [<!ENTITY x "ha"><!ENTITY y "&x;&x;&x;">]>'
BAD_XML: list[tuple[str | bytes, str]] = [
    ("", "is not XML"),
    (b"\xff\xd8\xff\xe0" + bytes(100), "is not XML"),
    (BOMB + annotation(FISH.replace("fish", "&y;")), "<!DOCTYPE>"),
    ('<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/hostname">]>' + annotation(), "<!DOCTYPE>"),
    ("<html/>", "begins with <html>"),
    (annotation(FISH + "<object><name>eel</name></object>"), r"object 2 \(eel\) has no <bndbox>"),
    (boxed("2", "three", "20", "30"), r"<ymin> of object 1 \(fish\) is 'three', not a number"),
    (boxed("21", "3", "20", "30"), "the box 21, 3, 20, 30 is inverted"),
    (boxed("2", "3", "51", "30"), "the box 2, 3, 51, 30 is not inside the 50 × 40"),
    (boxed("-2", "3", "4", "5").replace("50", "0"), "is not inside the image"),
    (annotation(FISH.replace(">0<", ">yes<")), "<difficult> is 'yes'; write 0 or 1"),
]
BAD_SETS: list[tuple[str | bytes, str]] = [
    ("", "is empty"),
    (b"\xff\xfea\x00", "not UTF-8"),
    ("/etc/passwd\n", "line 1: '/etc/passwd' is outside JPEGImages"),
    ("a\nb\na\n", "line 3: 'a' is also on line 1"),
    ("a\nb c d\n", "line 2: 'b c d' is more than the name"),
]


def moved(year: Year, name: str) -> None:
    (year.root / name).rename(year.root / "elsewhere")


def without_sets(year: Year) -> None:
    for path in (year.root / "ImageSets" / "Main").iterdir():
        path.unlink()


def instead_of_xml(make: Callable[[Path], object]) -> Callable[[Year], object]:
    def spoil(year: Year) -> None:
        path = year.root / "Annotations" / "b.xml"
        path.unlink()
        make(path)

    return spoil


NAMED, NO_XML = r"no such image, but .*train\.txt names it", r"Annotations.b\.xml: no such file, but .*train\.txt names"
SPOILT: list[tuple[Callable[[Year], object], str]] = [
    *((lambda year, xml=xml: year.xml("b", xml), rf"VOC2007.Annotations.b\.xml\b.*{says}") for xml, says in BAD_XML),
    *((lambda year, to=to: year.set("train", to), rf"ImageSets.Main.train\.txt\b.*{says}") for to, says in BAD_SETS),
    (lambda year: (year.root / "JPEGImages" / "b.jpg").unlink(), rf"JPEGImages.b\.jpg: {NAMED}; add it"),
    (lambda year: year.image("b", suffix=".png"), r"b\.jpg and b\.png have the same name"),
    (instead_of_xml(lambda path: None), f"{NO_XML} its image"),
    (instead_of_xml(lambda path: path.symlink_to("gone")), r"b\.xml: no such file"),
    (instead_of_xml(Path.mkdir), r"b\.xml is not a file"),
    (instead_of_xml(os.mkfifo), r"b\.xml is not a file"),
    (lambda year: moved(year, "JPEGImages"), "JPEGImages: no such folder"),
    (without_sets, "Main has no set; write a file such as train.txt"),
    (lambda year: moved(year, "ImageSets"), "neither .* nor a folder in it has ImageSets.Main"),
]


@pytest.mark.skipif(os.name != "posix", reason="no named pipes here")
@pytest.mark.parametrize(("spoil", "says"), SPOILT)
def test_a_bad_folder_is_refused_by_file(year: Year, spoil: Callable[[Year], object], says: str) -> None:
    spoil(year)
    with pytest.raises(VocError, match=says):
        read_voc(year.root)


BAD: dict[str, tuple[str, dict[str, Any], type[Exception]]] = {
    "no such folder; pass a VOCdevkit folder": ("nowhere", {}, VocError),
    r"no val\.txt; choose from test, train": ("", {"sets": ["val"]}, VocError),
    "sets is empty": ("", {"sets": []}, VocError),
    r"pass \['train'\]": ("", {"sets": "train"}, TypeError),
}


@pytest.mark.parametrize("says", BAD)
def test_bad_folders_and_names_of_sets_are_refused(year: Year, says: str) -> None:
    path, options, error = BAD[says]
    with pytest.raises(error, match=says):
        read_voc(year.root / path, **options)
