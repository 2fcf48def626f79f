"""The one exception that means: the user can mend this."""


class UserError(ValueError):
    """Bad input, said in one sentence: what is wrong, where, and how to mend it.

    The command lines print the sentence and exit with code 2; anything else that is raised is a bug
    of ours and keeps its traceback.
    """
