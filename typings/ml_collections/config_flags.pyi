from typing import Any

from absl import flags

def DEFINE_config_file(
    name: str,
    default: str | None = None,
    help_string: str = ...,
    flag_values: flags.FlagValues = ...,
    lock_config: bool = True,
    accept_new_attributes: bool = False,
    sys_argv: list[str] | None = None,
    **kwargs: Any,
) -> flags.FlagHolder[Any]: ...
def get_override_values(config_flag: flags.Flag[Any]) -> dict[str, Any]: ...
def get_config_filename(config_flag: flags.Flag[Any]) -> str: ...
