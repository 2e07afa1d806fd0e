"""Programs that once went wrong, each held against plain Python."""

import traceback

import pytest
import torch

import dynacore


def outcome(function, *args):
    """What a call gives, or the exception that it raises: class, text, and lines of the traceback."""
    try:
        return function(*args)
    except Exception as error:
        lines = [(frame.name, frame.lineno) for frame in traceback.extract_tb(error.__traceback__)[1:]]
        return type(error), str(error), lines


def compiled(function):
    return dynacore.compile(function, backend="eager")


@pytest.mark.parametrize("device", ["nowhere", "cpu:x"])
def test_device_that_does_not_exist(device):
    def move(x):
        return (x + 1).to(device)

    def make(x):
        return x + torch.ones(2, device=device)

    for program in (move, make):
        assert outcome(compiled(program), torch.ones(2)) == outcome(program, torch.ones(2))


def test_break_behind_a_handler_in_an_instruction_without_a_line():
    def program(x, fail):
        try:
            try:
                if fail:
                    torch.ones(2).item()
            except KeyError as error:
                raise RuntimeError("wrong") from error
            finally:
                x = x * 2
        except ZeroDivisionError:
            return x
        return x

    run = compiled(program)
    for fail in (True, False, True):
        ours, plain = outcome(run, torch.ones(2), fail), outcome(program, torch.ones(2), fail)
        assert torch.equal(ours, plain) if isinstance(plain, torch.Tensor) else ours == plain
