"""Images and files that a tool returns: what each must be, and where it may stand (TOOL-6)."""

import hashlib
from collections.abc import Callable
from typing import cast

import pytest

from psych_runtime.errors import InvalidArgument, InvalidPayload, PayloadTooLarge
from psych_runtime.tools.attachment import Attachment, attachments_in
from psych_runtime.tools.results import to_result
from psych_schema.common import BlobRef
from psych_schema.model import BlobPart, JsonPart, TextPart

PNG = b"\x89PNG\r\n\x1a\n\x00\xff"
CAT = Attachment(PNG, "image/png", name="cat.png")


def ref(data: bytes, media_type: str) -> BlobRef:
    """Return the name that bytes have in a blob store."""
    return BlobRef(hash=hashlib.sha256(data).hexdigest(), bytes=len(data), media_type=media_type)


@pytest.mark.parametrize(
    ("data", "media_type", "name"),
    [
        (b"", "text/plain", None),
        (PNG, "image/png", "cat.png"),
        (PNG, "application/vnd.openxmlformats-officedocument.wordprocessingml", "é 😀.docx"),
        (PNG, "text/csv; charset=utf-8", "a/../b"),
        (PNG, "text/csv;charset=utf-8", " "),
        (PNG, "x-a!#$&^_.+/y", "n" * 255),
    ],
)
def test_tool_6_an_attachment_has_bytes_a_type_and_perhaps_a_name(
    data: bytes, media_type: str, name: str | None
) -> None:
    """It is named in the log by its hash, and no text of it says the bytes."""
    made = Attachment(data, media_type, name=name)
    assert made.ref == ref(data, media_type)
    assert "data=" not in repr(made)
    assert to_result("look", made).parts == (BlobPart(blob=made.ref, name=name),)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ("text", "data is a str; pass bytes"),
        (bytearray(b"a"), "data is a bytearray; pass bytes"),
        (memoryview(b"a"), "data is a memoryview; pass bytes"),
        (None, "data is a NoneType; pass bytes"),
    ],
)
def test_tool_6_an_attachment_is_bytes(data: object, words: str) -> None:
    """What may change later, or has no bytes, is refused where it is made."""
    with pytest.raises(InvalidArgument) as caught:
        Attachment(cast("bytes", data), "image/png")
    assert caught.value.what == "Attachment"
    assert caught.value.problem == words


@pytest.mark.parametrize(
    "media_type",
    [
        *("", "png", "image/", "/png", "image/png/x", "image png", " image/png", "image/png "),
        *("image/png\n", "image/p\x00ng", "imáge/png", "image/png;", "image/png; a=b\n"),
        *("a" * 65 + "/png", "image/" + "a" * 65, "a/b; " + "c" * 65),
        *(None, 7, b"image/png"),
    ],
)
def test_tool_6_an_attachment_says_what_it_is(media_type: object) -> None:
    """As a media type on one line: it goes into the requests of model servers."""
    with pytest.raises(InvalidArgument, match="media_type is a text as image/png"):
        Attachment(PNG, cast("str", media_type))


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("", "name has 0 characters; pass 1 to 255, or None"),
        ("n" * 256, "name has 256 characters; pass 1 to 255, or None"),
        ("a\nb", r"name has '\n' at character 1, which no name may have"),
        ("a\x00", r"name has '\x00' at character 1, which no name may have"),
        ("a\u2028", r"name has '\u2028' at character 1, which no name may have"),
        ("a\ud800", r"name has '\ud800' at character 1, which no name may have"),
        ("\u202etxt.exe", r"name has '\u202e' at character 0, which no name may have"),
        (7, "name is a int; pass text, or None"),
        (b"cat", "name is a bytes; pass text, or None"),
    ],
)
def test_tool_6_the_name_of_an_attachment_hides_nothing(name: object, words: str) -> None:
    """It stands in what a model and people read."""
    with pytest.raises(InvalidArgument) as caught:
        Attachment(PNG, "image/png", name=cast("str", name))
    assert caught.value.problem == words


@pytest.mark.parametrize(
    "name",
    [
        "Screenshot 3.45.12\u202fPM.png",  # as macOS writes them
        "\u8cc7\u6599\u3000\u4e00.pdf",
        "\N{MAN}\u200d\N{WOMAN}.png",
        "\u0645\u06cc\u200c\u062e.txt",
        "a\u00a0b",
        "soft\u00adhyphen.txt",
    ],
)
def test_tool_6_the_name_of_an_attachment_is_that_of_a_real_file(name: str) -> None:
    """With the spaces and joiners of any script."""
    assert Attachment(PNG, "image/png", name=name).name == name


def test_tool_6_an_attachment_is_no_larger_than_a_blob() -> None:
    """Refused where it is made, and not after the tool has done its work."""
    assert Attachment(bytes(64_000_000), "image/png").data
    with pytest.raises(PayloadTooLarge) as caught:
        Attachment(bytes(64_000_001), "image/png")
    assert (caught.value.what, caught.value.size_bytes, caught.value.bound_bytes) == (
        "Attachment",
        64_000_001,
        64_000_000,
    )


@pytest.mark.parametrize("pack", [list, tuple])
def test_tool_6_attachments_stand_beside_texts_and_values(
    pack: Callable[[list[object]], object],
) -> None:
    """Each in its place; a text is a text, anything else a value."""
    report = Attachment(b"a,b", "text/csv")
    returned = pack(["Two files:", CAT, {"pages": 2}, report, None])
    assert to_result("look", returned).parts == (
        TextPart(text="Two files:"),
        BlobPart(blob=CAT.ref, name="cat.png"),
        JsonPart(value={"pages": 2}),
        BlobPart(blob=report.ref),
        JsonPart(value=None),
    )
    assert list(attachments_in(returned)) == [CAT, report]


def test_tool_6_a_list_without_an_attachment_is_one_value() -> None:
    """The neighbour."""
    assert to_result("look", ["a", {"b": 1}]).parts == (JsonPart(value=["a", {"b": 1}]),)
    assert list(attachments_in(["a", {"b": 1}])) == []


@pytest.mark.parametrize(
    ("returned", "where"),
    [
        ({"image": CAT}, "result.image is an Attachment inside a value"),
        ([CAT, [CAT]], "result[1][0] is an Attachment inside a value"),
        (["x", {"a": [CAT]}, CAT], "result[1].a[0] is an Attachment inside a value"),
    ],
)
def test_tool_6_an_attachment_inside_a_value_is_refused(returned: object, where: str) -> None:
    """Nobody would find it there."""
    with pytest.raises(InvalidPayload) as caught:
        to_result("look", returned)
    assert where in caught.value.problem
    assert caught.value.problem.endswith("; return it alone, or in a list")


def test_tool_6_what_stands_beside_attachments_is_judged() -> None:
    """By the same rules, and with its place."""
    with pytest.raises(InvalidPayload, match=r"result\[1\]\.a is the number nan"):
        to_result("look", [CAT, {"a": float("nan")}])
    with pytest.raises(InvalidPayload, match=r"result\[0\] is a lone surrogate"):
        to_result("look", ["\ud800", CAT])
    with pytest.raises(PayloadTooLarge, match="the result of look"):
        to_result("look", ["x" * 200_000, CAT, "x" * 70_000])


def test_tool_6_a_result_has_a_bounded_number_of_attachments() -> None:
    """Their names must fit into the log, whatever the blob store has room for."""
    assert len(to_result("look", [CAT] * 64).parts) == 64
    with pytest.raises(InvalidPayload) as caught:
        to_result("look", ["x", *[CAT] * 65], max_bytes=1 << 24)
    assert caught.value.problem == (
        "result is 65 attachments, which cannot be stored; return at most 64 of them"
    )
