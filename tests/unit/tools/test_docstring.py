"""Docstrings: three styles, and what is none of them (TOOL-1)."""

from psych_runtime.tools._docstring import read_docstring


def test_tool_1_google_sections_describe_parameters() -> None:
    """Types in parentheses are skipped, deeper lines go on with the text."""
    read = read_docstring(
        """Book a room.

        For one night.

        Args:
            hotel (str): Which one.
            nights (dict[str, tuple(int)], optional): How many:
                one or more.
            **rest: Ignored star.

        Returns:
            hotel: not a parameter.
        """
    )
    assert read.description == "Book a room.\n\nFor one night."
    assert read.parameters == {
        "hotel": "Which one.",
        "nights": "How many: one or more.",
        "rest": "Ignored star.",
    }


def test_tool_1_numpy_sections_describe_parameters() -> None:
    """One entry may describe several names."""
    read = read_docstring(
        """
        Book a room.

        Parameters
        ----------
        hotel : str
            Which one.

            With a second paragraph.
        first, last : int, optional
            Which days.
        bare
            Without a type.

        Returns
        -------
        str
            Not a parameter.
        """
    )
    assert read.description == "Book a room."
    assert read.parameters == {
        "hotel": "Which one. With a second paragraph.",
        "first": "Which days.",
        "last": "Which days.",
        "bare": "Without a type.",
    }


def test_tool_1_rest_fields_describe_parameters() -> None:
    """With and without a type; a field ends at the next one or at a blank line."""
    read = read_docstring(
        """Book a room.

        :param hotel: Which
            one.
        :param int nights: How many.
        :type hotel: str
        :returns: Not a parameter.

        Text that belongs to nothing.
        """
    )
    assert read.description == "Book a room."
    assert read.parameters == {"hotel": "Which one.", "nights": "How many."}


def test_tool_1_colons_in_prose_are_no_section() -> None:
    """`Note:` with text beside it, and unknown titles, stay in the description."""
    text = "Book a room.\n\nNote: it costs money.\n\nBeware:\n    of dogs"
    assert read_docstring(text).description == text


def test_tool_1_other_sections_end_the_description() -> None:
    """What is raised is not for the model."""
    read = read_docstring("Book a room.\n\nRaises:\n    ValueError: always.\n")
    assert read.description == "Book a room."
    assert read.parameters == {}


def test_tool_1_no_docstring_describes_nothing() -> None:
    """Neither does one that begins with a section, or an entry without text."""
    assert read_docstring(None).description == ""
    assert read_docstring("Args:\n    a: First.\n    b:\n").description == ""
    assert read_docstring("Args:\n    a: First.\n    b:\n").parameters == {"a": "First."}
