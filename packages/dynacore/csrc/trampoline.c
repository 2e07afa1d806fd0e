/* Runs entries and their continuations, with constant C stack. */
#include "core.h"
#include "cpython.h"

#define SMALL 40 /* objects that fit on the C stack */

/* ---- one step: enter a point ---- */

static PyObject *
call_boxed(PyObject *fn, PyObject **handed, Py_ssize_t n)
{
    PyObject *list = PyList_New(n);
    if (list == NULL) {
        return NULL;
    }
    for (Py_ssize_t i = 0; i < n; i++) {
        PyList_SET_ITEM(list, i, handed[i]);
        handed[i] = NULL;
    }
    PyObject *result = PyObject_CallOneArg(fn, list);
    Py_DECREF(list);
    return result;
}

/* Python functions count against the recursion limit themselves; other callables might not. */
static PyObject *
call_handed(const Entry *entry, PyObject **handed, Py_ssize_t n)
{
    int counted = PyFunction_Check(entry->fn);
    if (!counted && Py_EnterRecursiveCall(" in a compiled function")) {
        return NULL;
    }
    PyObject *result = entry->boxed ? call_boxed(entry->fn, handed, n) : PyObject_Vectorcall(entry->fn, handed, n, NULL);
    if (!counted) {
        Py_LeaveRecursiveCall();
    }
    return result;
}

/* Whether the entry took the call: its guards held, and *result is what its function returned (NULL: it raised). */
static int
entry_takes(Entry *entry, State *state, PyObject **result)
{
    PyObject *small[SMALL];
    Py_ssize_t n = entry->guards->n_handed, room = n + entry->guards->n_loose;
    PyObject **found = room <= SMALL ? small : PyMem_Malloc(room * sizeof(PyObject *));
    if (found == NULL) {
        return 0;
    }
    GuardsResult held = guards_evaluate(entry->guards, state, found);
    if (held == GUARDS_HOLD) {
        entry->hits++;
        state_drop(state);
        *result = call_handed(entry, found, n);
        for (Py_ssize_t i = 0; i < n; i++) {
            Py_XDECREF(found[i]);
        }
    }
    else if (held == GUARDS_DEAD) {
        entry->valid = 0;
    }
    if (found != small) {
        PyMem_Free(found);
    }
    return held == GUARDS_HOLD;
}

/* The entry that took the last call comes first, then the newest ones. */
static int
some_entry_takes(Point *point, State *state, PyObject **result)
{
    PyObject *entries = Py_NewRef(point->entries);
    Py_ssize_t n = PyTuple_GET_SIZE(entries), last = point->last < n ? point->last : 0;
    int taken = 0;
    for (Py_ssize_t i = 0; !taken && i < n; i++) {
        Py_ssize_t at = i == 0 ? last : i - (i <= last);
        Entry *entry = (Entry *)PyTuple_GET_ITEM(entries, at);
        if (entry->valid) {
            point->last = at; /* before it runs: a call inside may change the entries */
            taken = entry_takes(entry, state, result);
        }
    }
    Py_DECREF(entries);
    return taken;
}

/* Turns plain items into a list, whose only reference is the state's. */
static int
state_to_list(State *state)
{
    if (state->list != NULL) {
        return 0;
    }
    PyObject *list = PyList_New(state->size);
    if (list == NULL) {
        return -1;
    }
    for (Py_ssize_t i = 0; i < state->size; i++) {
        PyList_SET_ITEM(list, i, state->items[i]);
        state->items[i] = NULL;
    }
    *state = (State){((PyListObject *)list)->ob_item, state->size, list};
    return 0;
}

/* Guards may run code that changes a list which others know: give the walk one of its own. */
static int
state_make_private(State *state)
{
    if (Py_REFCNT(state->list) > 1) {
        PyObject *copy = PyList_GetSlice(state->list, 0, PyList_GET_SIZE(state->list));
        if (copy == NULL) {
            return -1;
        }
        Py_SETREF(state->list, copy);
    }
    state->items = ((PyListObject *)state->list)->ob_item;
    state->size = PyList_GET_SIZE(state->list);
    return 0;
}

static PyObject *
run_missed(const Point *point, State *state)
{
    if (state_to_list(state) < 0) {
        return NULL;
    }
    if (point->miss != Py_None) {
        PyObject *args[] = {(PyObject *)point, state->list};
        PyObject *entry = PyObject_Vectorcall(point->miss, args, 2, NULL);
        if (entry == NULL) {
            return NULL;
        }
        PyObject *result = NULL;
        int taken = 0;
        if (Py_IS_TYPE(entry, &Entry_Type)) {
            if (state_make_private(state) < 0) {
                Py_DECREF(entry);
                return NULL;
            }
            taken = entry_takes((Entry *)entry, state, &result);
        }
        else if (entry != Py_None) {
            PyErr_Format(PyExc_TypeError, "miss returned %.100s, not an Entry or None", Py_TYPE(entry)->tp_name);
            taken = 1;
        }
        Py_DECREF(entry);
        if (taken) {
            return result;
        }
    }
    /* The function is called from here, so that no frame of ours stands between the user's. */
    PyObject *rest = PyObject_CallOneArg(point->fallback, state->list);
    state_drop(state);
    PyObject *value = rest != NULL ? PyObject_CallNoArgs(rest) : NULL;
    Py_XDECREF(rest);
    return value;
}

/* One step. Drops the state. */
static PyObject *
enter(Point *point, State *state)
{
    PyObject *result;
    Py_INCREF(point);
    if (!some_entry_takes(point, state, &result)) {
        result = run_missed(point, state);
    }
    state_drop(state);
    Py_DECREF(point);
    return result;
}

/* ---- the frames that wait ---- */

typedef struct {
    Point *point;
    PyObject *state;
    Py_ssize_t handles; /* which waiting frame, this one or one outside, handles an exception; -1: none does */
} Frame;

typedef struct {
    Frame small[8];
    Frame *frames; /* outermost first */
    Py_ssize_t count, capacity;
    PyObject *handled; /* the exception that was handled before all of them, or NULL */
} Waiting;

static int
waiting_reserve(Waiting *waiting, Py_ssize_t more)
{
    Py_ssize_t needed = waiting->count + more;
    if (needed <= waiting->capacity) {
        return 0;
    }
    Py_ssize_t capacity = Py_MAX(needed, 2 * waiting->capacity);
    Frame *frames = PyMem_Malloc(capacity * sizeof(Frame));
    if (frames == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    memcpy(frames, waiting->frames, waiting->count * sizeof(Frame));
    if (waiting->frames != waiting->small) {
        PyMem_Free(waiting->frames);
    }
    waiting->frames = frames;
    waiting->capacity = capacity;
    return 0;
}

static void
waiting_push(Waiting *waiting, PyObject *frame)
{
    Point *point = (Point *)Py_NewRef(PyTuple_GET_ITEM(frame, 0));
    Py_ssize_t outside = waiting->count > 0 ? waiting->frames[waiting->count - 1].handles : -1;
    Py_ssize_t handles = point->handled >= 0 ? waiting->count : outside;
    waiting->frames[waiting->count++] = (Frame){point, Py_NewRef(PyTuple_GET_ITEM(frame, 1)), handles};
}

/* Moves the continuation's frames behind those that wait. -1: its exception (or another one) is set. */
static int
waiting_extend(Waiting *waiting, const Continuation *continuation)
{
    PyObject *frames = continuation->frames;
    if (waiting_reserve(waiting, PyTuple_GET_SIZE(frames)) < 0) {
        return -1;
    }
    for (Py_ssize_t i = PyTuple_GET_SIZE(frames) - 1; i >= 0; i--) {
        waiting_push(waiting, PyTuple_GET_ITEM(frames, i));
    }
    if (continuation->exception != NULL) {
        cpython_raise(Py_NewRef(continuation->exception));
        return -1;
    }
    return PyErr_CheckSignals();
}

static void
frame_drop(Frame *frame)
{
    Py_DECREF(frame->point);
    Py_DECREF(frame->state);
}

/* Sets what sys.exc_info() sees in a frame that handles nothing itself: what the nearest waiting frame handles. */
static void
waiting_set_handled(const Waiting *waiting)
{
    PyObject *handled = waiting->handled;
    Py_ssize_t nearest = waiting->count > 0 ? waiting->frames[waiting->count - 1].handles : -1;
    if (nearest >= 0) {
        const Frame *frame = &waiting->frames[nearest];
        Py_ssize_t at = frame->point->handled;
        if (at >= 0 && at < PyList_GET_SIZE(frame->state) && PyExceptionInstance_Check(PyList_GET_ITEM(frame->state, at))) {
            handled = PyList_GET_ITEM(frame->state, at);
        }
    }
    Py_XDECREF(cpython_swap_handled_exception(Py_XNewRef(handled)));
}

/* Runs a frame that waits no longer. */
static PyObject *
frame_enter(const Waiting *waiting, Frame frame)
{
    waiting_set_handled(waiting);
    State state = {NULL, 0, frame.state};
    PyObject *result = state_make_private(&state) < 0 ? NULL : enter(frame.point, &state);
    state_drop(&state);
    Py_DECREF(frame.point);
    return result;
}

/* Gives the value to the innermost frame that waits and runs that. Steals the value. */
static PyObject *
waiting_return(Waiting *waiting, PyObject *value)
{
    int failed = PyErr_CheckSignals() < 0 || PyList_Append(waiting->frames[waiting->count - 1].state, value) < 0;
    Py_DECREF(value);
    if (failed) {
        return NULL;
    }
    Frame frame = waiting->frames[--waiting->count];
    return frame_enter(waiting, frame);
}

/* Turns a frame that an exception arrived in into one that its handler runs: state[:keep] (+ lasti) (+ exc). */
static int
frame_handle(Frame *frame, PyObject *handler, PyObject *exc)
{
    Py_ssize_t keep = PyLong_AsSsize_t(PyTuple_GET_ITEM(handler, 2));
    PyObject *lasti = PyTuple_GET_ITEM(handler, 4);
    if (PyList_SetSlice(frame->state, keep, PY_SSIZE_T_MAX, NULL) < 0 ||
        (lasti != Py_None && PyList_Append(frame->state, lasti) < 0) ||
        (PyTuple_GET_ITEM(handler, 3) == Py_True && PyList_Append(frame->state, exc) < 0)) {
        return -1;
    }
    Py_SETREF(frame->point, (Point *)Py_NewRef(PyTuple_GET_ITEM(handler, 1)));
    return 0;
}

/* The first of the frame's handlers that wants the exception, borrowed from the tuple; NULL: none. */
static PyObject *
find_handler(PyObject *handlers, PyObject *exc)
{
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(handlers); i++) {
        PyObject *handler = PyTuple_GET_ITEM(handlers, i);
        if (PyErr_GivenExceptionMatches(exc, PyTuple_GET_ITEM(handler, 0))) {
            return handler;
        }
    }
    return NULL;
}

/* What a generator's caller gets for an exception that leaves its body (stolen): a StopIteration becomes RuntimeError. */
static PyObject *
leave_generator(const Point *point, PyObject *exc)
{
    if (point->code == Py_None || !(((PyCodeObject *)point->code)->co_flags & CO_GENERATOR) ||
        !PyErr_GivenExceptionMatches(exc, PyExc_StopIteration)) {
        return exc;
    }
    PyObject *error = PyObject_CallFunction(PyExc_RuntimeError, "s", "generator raised StopIteration");
    if (error == NULL) {
        Py_DECREF(exc);
        return cpython_take_exception();
    }
    PyException_SetCause(error, Py_NewRef(exc));
    PyException_SetContext(error, exc);
    return error;
}

/* Unwinds: drops waiting frames until one handles the current exception, and runs its handler. NULL with the
 * exception set when none does. */
static PyObject *
waiting_raise(Waiting *waiting)
{
    PyObject *exc = cpython_take_exception();
    while (waiting->count > 0) {
        Frame frame = waiting->frames[--waiting->count];
        PyObject *handlers = Py_NewRef(frame.point->handlers);
        PyObject *handler = find_handler(handlers, exc);
        if (handler == NULL || PyTuple_GET_ITEM(handler, 3) == Py_True) { /* else nobody sees the exception again */
            traceback_add(exc, frame.point);
        }
        int failed = handler != NULL && frame_handle(&frame, handler, exc) < 0;
        Py_DECREF(handlers);
        if (handler != NULL && !failed) {
            Py_DECREF(exc);
            return frame_enter(waiting, frame);
        }
        if (failed) {
            Py_SETREF(exc, cpython_take_exception());
        }
        else {
            exc = leave_generator(frame.point, exc);
        }
        frame_drop(&frame);
    }
    cpython_raise(exc);
    return NULL;
}

static int
is_continuation(PyObject *result)
{
    return result != NULL && Py_IS_TYPE(result, &Continuation_Type);
}

/* Runs a continuation (stolen) to the end. */
static PyObject *
run(PyObject *result)
{
    Waiting waiting = {.count = 0, .capacity = Py_ARRAY_LENGTH(waiting.small)};
    waiting.frames = waiting.small;
    waiting.handled = cpython_swap_handled_exception(NULL);
    cpython_swap_handled_exception(Py_XNewRef(waiting.handled));
    for (;;) {
        if (is_continuation(result)) {
            int raised = waiting_extend(&waiting, (Continuation *)result) < 0;
            Py_DECREF(result);
            result = NULL;
            if (!raised) {
                Frame frame = waiting.frames[--waiting.count];
                result = frame_enter(&waiting, frame);
                continue;
            }
        }
        if (waiting.count == 0) {
            break;
        }
        result = result != NULL ? waiting_return(&waiting, result) : waiting_raise(&waiting);
    }
    if (waiting.frames != waiting.small) {
        PyMem_Free(waiting.frames);
    }
    /* What the last frame was handling ends with it. */
    Py_XDECREF(cpython_swap_handled_exception(waiting.handled));
    return result;
}

PyObject *
trampoline_call(Point *point, State *state)
{
    if (stack_check() < 0) {
        state_drop(state);
        return NULL;
    }
    PyObject *result = enter(point, state);
    return is_continuation(result) ? run(result) : result;
}
