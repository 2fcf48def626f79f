import textwrap

from absl import flags

from common import usage


def test_comments_are_found_by_name_and_by_group():
    text = textwrap.dedent("""
        def get_config():
            config = ConfigDict()
            config.words = 20  # most frequent
            config.loop.steps = (1, 2)  # at "most"; # 2
            config.silent = 3

        def start():
            config.name = "gromov"  # of starts.py
    """)
    found = usage.comments(text)
    assert found["words"] == "most frequent"
    assert found["loop.steps"] == 'at "most"; # 2'
    assert found["start.name"] == "of starts.py"
    assert "silent" not in found


def test_a_page_lists_flags_experiments_and_values(monkeypatch, tmp_path):
    values = flags.FlagValues()
    flags.DEFINE_string("config", None, "The experiment.", flag_values=values)
    flags.DEFINE_bool("distributed", False, "Join the others.", flag_values=values)
    own = [values["config"], values["distributed"]]
    folder = tmp_path / "configs/my_paper"
    folder.mkdir(parents=True)
    (folder / "none.py").write_text('"""No experiment."""')
    path = folder / "table.py"
    path.write_text(
        textwrap.dedent('''
            """The table.

            More of it."""
            from ml_collections import ConfigDict


            def get_config():
                """Values."""
                config = ConfigDict()
                config.sizes = (1, 2)  # of what is measured; COMMENT
                config.loop = ConfigDict({"steps": 5})
                config.quick = False
                config.when_quick = ConfigDict({"loop": {"steps": 2}})
                return config
        ''').replace("COMMENT", "long " * 20)
    )
    monkeypatch.chdir(tmp_path)
    page = usage.page("Runs it.", own, "my_paper")
    assert "--[no]distributed  Join the others." in page
    assert "table.py  The table." in page and "none.py" not in page
    page = usage.page("Runs it.", own, "my_paper", str(path))
    assert "sizes=1,2    of what is measured; long" in page
    assert "loop.steps=5" in page and "loop.steps=2" in page.split("--config.quick")[-1]
    assert max(map(len, page.replace(str(path), "table.py").splitlines())) <= usage.WIDTH
