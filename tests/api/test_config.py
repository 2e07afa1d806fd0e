"""Settings: typed, documented, patched, and an error for what isn't one."""

import threading

import pytest

import dynacore
from dynacore import ConfigError, config, logs


def test_unknown_names_are_errors_that_suggest_the_right_one():
    with pytest.raises(ConfigError, match="no setting 'recompile_limt'; did you mean 'recompile_limit'"):
        config.recompile_limt = 3
    with pytest.raises(ConfigError, match="did you mean 'suppress_errors'"):
        _ = config.supress_errors
    assert not hasattr(config, "nothing_like_it")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("recompile_limit", "3"),
        ("recompile_limit", True),
        ("recompile_limit", 3.0),
        ("suppress_errors", 1),
        ("on_internal_error", "ignore"),
        ("logs", None),
        ("testing_cut", 5),
    ],
)
def test_wrong_types_are_errors_and_change_nothing(name, value):
    before = getattr(config, name)
    with pytest.raises(ConfigError, match=name):
        setattr(config, name, value)
    with pytest.raises(ConfigError, match=name):
        config.patch({name: value})
    assert getattr(config, name) == before


def test_settings_cannot_be_deleted():
    with pytest.raises(ConfigError, match="can't be deleted"):
        del config.recompile_limit
    assert config.recompile_limit == 8


def test_patch_as_context_restores_also_after_an_exception():
    with config.patch(recompile_limit=3) as patched:
        assert patched is config
        assert config.recompile_limit == 3
        with config.patch({"recompile_limit": 4}, verify=True):
            assert (config.recompile_limit, config.verify) == (4, True)
        assert (config.recompile_limit, config.verify) == (3, False)
    with pytest.raises(KeyError), config.patch(recompile_limit=3):
        raise KeyError
    assert config.recompile_limit == 8


def test_patch_as_decorator_of_a_recursive_function():
    @config.patch(recompile_limit=2)
    def depths(n):
        """Doc."""
        return [config.recompile_limit] + (depths(n - 1) if n else [])

    assert depths(3) == [2, 2, 2, 2]
    assert config.recompile_limit == 8
    assert (depths.__name__, depths.__doc__) == ("depths", "Doc.")


def test_one_patch_object_entered_twice():
    patch = config.patch(recompile_limit=2)
    with patch, patch:
        assert config.recompile_limit == 2
    assert config.recompile_limit == 8


def test_every_thread_sees_a_setting():
    seen = []
    with config.patch(recompile_limit=5):
        thread = threading.Thread(target=lambda: seen.append(config.recompile_limit))
        thread.start()
        thread.join()
    assert seen == [5]


def test_every_setting_is_described():
    text = config.describe()
    for name, value in config.as_dict().items():
        assert f"{name} = {value!r}\n    " in text
        assert f"{name} = {value!r}" in repr(config)


def test_choosing_logs_turns_them_on_and_off():
    assert not logs.enabled("guards")
    with config.patch(logs="guards, recompiles"):
        assert logs.enabled("guards")
        assert logs.enabled("recompiles")
        assert not logs.enabled("source")
    assert not logs.enabled("guards")


def test_the_setting_is_the_same_object_however_it_is_imported():
    import dynacore.config as imported

    assert imported is dynacore.config is config
