"""Where DynamoDB Local is not the service, and which of the two we follow.

An entry is about pairs of errors: a pattern of what DynamoDB Local says, and one of what we say, both
written `Code: message`. We follow the service, as AWS documents it or as it is known to answer.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from tests.oracle.sides import Answer

API = "https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/"


@dataclass(frozen=True, slots=True)
class Known:
    """One difference: why, who says so, and how both answers look."""

    why: str
    source: str
    theirs: str
    ours: str


KNOWN_DIFFERENCES: tuple[Known, ...] = (
    Known(
        "The service counts and lists every constraint that a request's members break; "
        "DynamoDB Local tells the first in words of its own.",
        API + "CommonErrors.html",
        r"ValidationException: .*",
        r"ValidationException: \d+ validation errors? detected: .*",
    ),
    Known(
        "The service names the key attribute that is missing.",
        API + "API_PutItem.html",
        r"ValidationException: One of the required keys was not given a value",
        r"ValidationException: (One or more parameter values were invalid: Missing the key \w+ in the item"
        r"|The provided key element does not match the schema)",
    ),
    Known(
        "The service names the key attribute of a wrong type, with both types.",
        API + "API_PutItem.html",
        r"ValidationException: One or more parameter values were invalid: Type mismatch for key",
        r"ValidationException: (One or more parameter values were invalid: "
        r"Type mismatch for key \w+ expected: [SNB] actual: \w+"
        r"|The provided key element does not match the schema)",
    ),
    Known(
        "The service shows the text that is no number.",
        API + "API_AttributeValue.html",
        r"ValidationException: A value provided cannot be converted into a number",
        r"ValidationException: (The parameter cannot be converted to a numeric value.*)",
    ),
    Known(
        "The service shows the set that has a duplicate, and ends the sentence.",
        API + "API_AttributeValue.html",
        r"ValidationException: (One or more parameter values were invalid: )?"
        r"Input collection (\[.*\] |of type BS )?contains duplicates\.?",
        r"ValidationException: One or more parameter values were invalid: "
        r"Input collection \[.*\]( |of type BS )contains duplicates\.",
    ),
    Known(
        "The service says otherwise that a number has more than 38 digits.",
        API + "API_AttributeValue.html",
        r"ValidationException: DynamoDB only supports precision up to 38 digits",
        r"ValidationException: Attempting to store more than 38 significant digits in a Number",
    ),
    Known(
        "The service calls a body that is no JSON, or of other types, a SerializationException.",
        API + "CommonErrors.html",
        r"(InternalFailure|ValidationException): .*",
        r"SerializationException: .*",
    ),
)


def excuse(theirs: Answer, ours: Answer) -> Known | None:
    """The known difference that explains two unlike errors, if there is one."""
    if theirs[0] == 200 or ours[0] == 200:
        return None
    left, right = (f"{body['code']}: {body['message']}" for _, body in (theirs, ours))
    return next(
        (
            known
            for known in KNOWN_DIFFERENCES
            if re.fullmatch(known.theirs, left, re.S) and re.fullmatch(known.ours, right, re.S)
        ),
        None,
    )
