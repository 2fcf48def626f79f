"""The flag --errors of the commands that read files of words or texts."""

from absl import flags

ERRORS = flags.DEFINE_enum(
    "errors",
    "strict",
    ("strict", "replace", "backslashreplace"),
    "What becomes of bytes of words and texts that are not UTF-8: an error that names the line, a "
    "replacement character, or their codes (which keeps different words different).",
)
