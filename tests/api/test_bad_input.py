"""Wrong arguments: an error that names the argument and the way out, raised at once, with nothing changed."""

import importlib
import platform
import sys

import pytest
import torch

import bytecode_models
import dynacore
from dynacore import ArgumentError, DynacoreError, MissingExtension, UnsupportedPython, UnsupportedTorch, environment


def f(x):
    return x + 1


@pytest.mark.parametrize(
    ("keywords", "text"),
    [
        ({"backend": "inductr"}, r"backend='inductr'.*did you mean 'inductor'\? Known: .*eager, .*inductor"),
        ({"backend": "zzzzz"}, r"no such backend\. Known: .*register_backend"),
        ({"backend": 3}, "backend=.*give a name or a callable, not 3"),
        ({"backend": None}, "backend=.*give a name or a callable, not None"),
        ({"mode": "max-autotun"}, r"mode='max-autotun'.*did you mean 'max-autotune'\? Choose from default, reduce"),
        ({"mode": "fast", "backend": "eager"}, r"mode='fast'.*no such mode\. Choose from"),
        ({"options": {"x": 1}, "backend": "eager"}, "options={'x': .*backend 'eager' takes no options"),
        ({"options": {"x": 1}, "backend": "aot_eager"}, "backend 'aot_eager' takes no options"),
        ({"options": {"max_autotun": True}}, "max_autotun.*no such option; did you mean 'max_autotune'"),
        ({"options": {"max_autotune": "yes"}}, "max_autotune.*give a value of type bool"),
        ({"options": ["max_autotune"]}, "options=.*give a dict"),
        ({"options": {"max_autotune": True}, "mode": "default"}, "give one of them"),
        ({"fullgraph": 1}, "fullgraph=.*True or False, not 1"),
        ({"dynamic": "yes"}, "dynamic=.*True, False or None, not 'yes'"),
    ],
)
def test_arguments_of_compile(keywords, text):
    for model in (f, None):
        with pytest.raises(ArgumentError, match=text):
            dynacore.compile(model, **keywords)


@pytest.mark.parametrize("thing", [3, "f", [f], property(f)], ids=["int", "str", "list", "property"])
def test_not_a_callable(thing):
    for call in (dynacore.compile, dynacore.compile(), dynacore.compile(disable=True)):
        with pytest.raises(ArgumentError, match="give a callable, not "):
            call(thing)
    with pytest.raises(ArgumentError, match="explain"):
        dynacore.explain(thing)


def test_errors_are_of_one_family_and_of_pythons():
    assert issubclass(ArgumentError, TypeError)
    for name in dynacore.__all__:
        error = getattr(dynacore, name)
        if isinstance(error, type) and issubclass(error, Exception):
            assert issubclass(error, DynacoreError)
            assert issubclass(error, RuntimeError)


@pytest.fixture
def fresh_environment():
    """The checks run again, and once more after the test."""
    for cached in (environment._check, environment.extension):
        cached.cache_clear()
    yield
    for cached in (environment._check, environment.extension):
        cached.cache_clear()


@pytest.mark.parametrize("version", ["2.10.1", "1.13.0+cpu", "3.0.0a0+git1234"])
def test_unsupported_torch(monkeypatch, fresh_environment, version):
    monkeypatch.setattr(torch, "__version__", version)
    with pytest.raises(UnsupportedTorch, match=rf"torch {version[:4]}.*isn't supported.*2\.11 to 2\.15.*Install"):
        dynacore.compile(f)
    with dynacore.config.patch(allow_untested_torch=True):
        dynacore.compile(f)


def test_unsupported_python(monkeypatch, fresh_environment, caplog):
    def unknown():
        raise bytecode_models.UnsupportedVersion("3.99 has no bytecode model; supported: CPython 3.11, 3.12")

    monkeypatch.setattr(bytecode_models, "current", unknown)
    expected = rf"can't capture under CPython {platform.python_version()}: 3.99 has no.*on_unsupported_python"
    with pytest.raises(UnsupportedPython, match=expected):
        dynacore.compile(f)
    with dynacore.config.patch(on_unsupported_python="eager"):
        assert dynacore.compile(f) is f
        assert dynacore.compile(backend="eager")(f) is f
        assert dynacore.disable(f)(1) == 2
        explanation = dynacore.explain(f)(1)
        assert explanation.result == 2
        assert "Nothing was captured" in str(explanation)
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "Functions run uncompiled" in caplog.text


def test_free_threaded_python(monkeypatch, fresh_environment):
    real = environment.sysconfig.get_config_var
    monkeypatch.setattr(environment.sysconfig, "get_config_var", lambda name: name == "Py_GIL_DISABLED" or real(name))
    with pytest.raises(UnsupportedPython, match="needs the global interpreter lock, and this is a free-threaded build"):
        dynacore.compile(f)
    with dynacore.config.patch(on_unsupported_python="eager"):
        assert dynacore.compile(f) is f


def test_missing_extension(monkeypatch, fresh_environment):
    monkeypatch.setitem(sys.modules, "dynacore._C", None)
    with pytest.raises(MissingExtension, match=r"dynacore\._C can't be imported .*Reinstall dynacore"):
        dynacore.compile(f)
    monkeypatch.undo()
    assert importlib.import_module("dynacore._C")
    dynacore.compile(f)
