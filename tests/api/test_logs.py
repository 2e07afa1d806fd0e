"""What is logged: chosen by name, through `logging`, each break once."""

import logging
import os
import subprocess
import sys

import pytest

from dynacore import ConfigError, config, logs
from dynacore.reasons import Break, BreakSite

SITE = BreakSite.of(Break("call-unknown-c-function", "time.sleep"), __file__, 1, "f")


def test_unknown_artifacts_are_errors_with_the_list():
    with pytest.raises(
        ConfigError, match=r"no log artifact 'graphs'; did you mean 'graph'\? Known: graph_breaks, guards"
    ):
        config.logs = "graphs"
    with pytest.raises(ConfigError, match=r"no log artifact 'zzz'\. Known: "):
        config.patch(logs="guards,zzz")
    assert config.logs == ""


def test_nothing_is_emitted_unless_chosen(caplog):
    logs.emit("guards", "one")
    logs.emit_break(SITE)
    with config.patch(logs="guards"):
        logs.emit("guards", "two")
        logs.emit("source", "three")
    assert [(record.name, record.message) for record in caplog.records] == [("dynacore.guards", "two")]


def test_all_stands_for_every_artifact():
    with config.patch(logs="all"):
        assert all(logs.enabled(name) for name in logs.ARTIFACTS)


def test_a_break_is_logged_once_until_reset(caplog):
    with config.patch(logs="graph_breaks"):
        logs.emit_break(SITE)
        logs.emit_break(BreakSite.of(Break("call-unknown-c-function", "time.sleep"), __file__, 1, "f"))
        assert len(caplog.records) == 1
        logs.emit_break(BreakSite.of(Break("tensor-truth"), __file__, 1, "f"))
        assert len(caplog.records) == 2
        logs.reset()
        logs.emit_break(SITE)
        assert len(caplog.records) == 3
    text = caplog.records[0].message
    assert f'File "{__file__}", line 1, in f' in text
    assert '"""What is logged' in text, "the source line"
    assert "call-unknown-c-function" in text
    assert "time.sleep" in text
    assert "hint: " in text


def test_warnings_are_always_shown_and_once_for_a_key(caplog):
    logs.warn_once("key", "careful")
    logs.warn_once("key", "careful again")
    assert [(record.levelno, record.message) for record in caplog.records] == [(logging.WARNING, "careful")]


PROGRAM = "from dynacore import logs; logs.emit('guards', 'text %s'); logs.emit('source', 'silent'); logs.warn('loud')"


def run(program, **environment):
    command = [sys.executable, "-W", "ignore", "-c", program]
    return subprocess.run(command, capture_output=True, text=True, env={**os.environ, **environment})


def test_the_environment_variable_writes_to_stderr_without_any_setup():
    done = run(PROGRAM, DYNACORE_LOGS="guards")
    assert done.stderr.splitlines()[-2:] == ["[dynacore.guards] text %s", "[dynacore] loud"]
    assert done.stdout == ""


def test_an_application_with_its_own_logging_gets_the_records_alone():
    program = "import logging; logging.basicConfig(format='app:%(message)s');" + PROGRAM
    done = run(program, DYNACORE_LOGS="guards")
    assert done.stderr.splitlines()[-2:] == ["app:text %s", "app:loud"]


def test_a_wrong_environment_variable_is_an_error_at_import():
    done = run("import dynacore", DYNACORE_LOGS="guard")
    assert done.returncode == 1
    assert "DYNACORE_LOGS: no log artifact 'guard'; did you mean 'guards'?" in done.stderr
