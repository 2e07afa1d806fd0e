/* Who watches what. Each watched object stands once in a table, by its address, with a list of those who want to know:
 * it is watched while the list has a member. Nothing here keeps an object alive. A dict tells when it goes; of
 * types and functions a weak reference says whether it is still the one that was meant.
 *
 * CPython calls us in the middle of a change. What is no longer wanted is therefore taken down later, between two
 * instructions: 3.12 would undo that during an event, and lists must not change while they are walked. */
#include "watch.h"
#include <stddef.h>
#include <structmember.h>

typedef struct Watched {
    PyObject *object;  /* borrowed */
    PyObject *weakref; /* to a type or function */
    Watch *first;
    struct Watched *next;
} Watched;

struct Watchable watchable;

static Watched **buckets;
static size_t n_buckets, n_watched;
static int tidy_is_due;

static Watched **
place_of(PyObject *object)
{
    Watched **place = &buckets[((uintptr_t)object >> 4) * 0x9E3779B97F4A7C15u >> 20 & (n_buckets - 1)];
    while (*place != NULL && (*place)->object != object) {
        place = &(*place)->next;
    }
    return place;
}

static int
grow(void)
{
    size_t old_size = n_buckets;
    Watched **old = buckets, **bigger = PyMem_Calloc(old_size > 0 ? 2 * old_size : 64, sizeof(Watched *));
    if (bigger == NULL) {
        return 0;
    }
    buckets = bigger;
    n_buckets = old_size > 0 ? 2 * old_size : 64;
    for (size_t i = 0; i < old_size; i++) {
        while (old[i] != NULL) {
            Watched *moved = old[i];
            old[i] = moved->next;
            moved->next = NULL;
            *place_of(moved->object) = moved;
        }
    }
    PyMem_Free(old);
    return 1;
}

static void
unlink_watch(Watch *watch)
{
    *watch->link = watch->next;
    if (watch->next != NULL) {
        watch->next->link = watch->link;
    }
    watch->on = NULL;
}

static int
is_there(const Watched *watched)
{
    return watched->weakref == NULL || ((PyWeakReference *)watched->weakref)->wr_object == watched->object;
}

/* Takes an object out of the table; who still wanted to know isn't watching any more. */
static void
forget(Watched **place)
{
    Watched *watched = *place;
    *place = watched->next;
    n_watched--;
    while (watched->first != NULL) {
        unlink_watch(watched->first);
    }
    Py_XDECREF(watched->weakref);
    PyMem_Free(watched);
}

static void
tell(Watched *watched, Change change, PyObject *key)
{
    for (Watch *watch = watched->first; watch != NULL; watch = watch->next) {
        watch->changed(watch, change, key);
    }
}

static int
is_wanted(const Watched *watched)
{
    for (const Watch *watch = watched->first; watch != NULL; watch = watch->next) {
        if (*watch->alive) {
            return 1;
        }
    }
    return 0;
}

/* Takes down what nobody wants any more. Must not be called from within a change. */
static int
tidy(void *unused)
{
    (void)unused;
    tidy_is_due = 0;
    for (size_t i = 0; i < n_buckets; i++) {
        for (Watched **place = &buckets[i]; *place != NULL;) {
            Watched *watched = *place;
            int there = is_there(watched);
            if (there && is_wanted(watched)) {
                place = &watched->next;
                continue;
            }
            if (there) {
                cpython_unwatch(watched->object);
            }
            else {
                tell(watched, CHANGE_GONE, NULL);
            }
            forget(place);
        }
    }
    return 0;
}

static void
object_changes(PyObject *object, Change change, PyObject *key)
{
    Watched **place = n_buckets > 0 ? place_of(object) : NULL;
    if (place == NULL || *place == NULL) {
        return;
    }
    Watched *watched = *place;
    tell(watched, is_there(watched) ? change : CHANGE_GONE, key);
    if (change == CHANGE_GONE) {
        forget(place);
    }
    else if (!tidy_is_due && !is_wanted(watched)) {
        tidy_is_due = Py_AddPendingCall(tidy, NULL) == 0; /* else at the next change */
    }
}

static int
is_watchable(PyObject *object)
{
    if (PyDict_Check(object)) {
        return cpython_has_shared_keys(object) ? watchable.instances : watchable.dicts;
    }
    return PyType_Check(object) ? watchable.types : PyFunction_Check(object) && watchable.functions;
}

static Watched *
new_watched(PyObject *object)
{
    Watched *watched = PyMem_Calloc(1, sizeof(Watched));
    if (watched == NULL) {
        return NULL;
    }
    watched->object = object;
    if (!PyDict_Check(object) && (watched->weakref = PyWeakref_NewRef(object, NULL)) == NULL) {
        PyErr_Clear();
        PyMem_Free(watched);
        return NULL;
    }
    return watched;
}

int
watch_start(Watch *watch, PyObject *object)
{
    watch->on = NULL;
    if (!is_watchable(object) || (n_watched >= n_buckets && !grow())) {
        return 0;
    }
    Watched **place = place_of(object);
    if (*place != NULL && !is_there(*place)) { /* another one had this address */
        tell(*place, CHANGE_GONE, NULL);
        forget(place);
        place = place_of(object);
    }
    /* A type must be asked again: it tells of one change only, until it has a valid version again. */
    if ((*place == NULL || PyType_Check(object)) && !cpython_watch(object)) {
        return 0;
    }
    if (*place == NULL) {
        if ((*place = new_watched(object)) == NULL) {
            cpython_unwatch(object);
            return 0;
        }
        n_watched++;
    }
    Watched *watched = *place;
    watch->on = watched;
    watch->next = watched->first;
    watch->link = &watched->first;
    if (watched->first != NULL) {
        watched->first->link = &watch->next;
    }
    watched->first = watch;
    return 1;
}

void
watch_stop(Watch *watch)
{
    Watched *watched = watch->on;
    if (watched == NULL) {
        return;
    }
    unlink_watch(watch);
    if (watched->first == NULL) {
        if (is_there(watched)) {
            cpython_unwatch(watched->object);
        }
        forget(place_of(watched->object));
    }
}

/* ---- for Python ---- */

typedef struct {
    PyObject_HEAD
    Watch watch;
    char unchanged;
} WatchObject;

static void
note_change(Watch *watch, Change change, PyObject *key)
{
    (void)change;
    (void)key;
    ((WatchObject *)((char *)watch - offsetof(WatchObject, watch)))->unchanged = 0;
}

static PyObject *
watch_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"object", NULL};
    PyObject *object;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O:Watch", names, &object)) {
        return NULL;
    }
    WatchObject *self = (WatchObject *)type->tp_alloc(type, 0);
    if (self == NULL) {
        return NULL;
    }
    self->unchanged = 1;
    self->watch.alive = &self->unchanged;
    self->watch.changed = note_change;
    if (!watch_start(&self->watch, object)) {
        Py_DECREF(self);
        return PyErr_Format(PyExc_TypeError, "%.100s can't be watched here", Py_TYPE(object)->tp_name);
    }
    return (PyObject *)self;
}

static void
watch_dealloc(WatchObject *self)
{
    watch_stop(&self->watch);
    Py_TYPE(self)->tp_free(self);
}

static PyMemberDef watch_members[] = {
    {"unchanged", T_BOOL, offsetof(WatchObject, unchanged), READONLY, "whether no change was told yet"},
    {NULL, 0, 0, 0, NULL},
};

PyTypeObject Watch_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "dynacore._C.Watch",
    .tp_doc = "Watch(object): whether a dict, type or function has changed since. Keeps it no longer alive.",
    .tp_basicsize = sizeof(WatchObject),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_new = watch_new,
    .tp_dealloc = (destructor)watch_dealloc,
    .tp_members = watch_members,
};

PyObject *
module_set_watchable(PyObject *module, PyObject *kinds)
{
    (void)module;
    static int started;
    if (!PyTuple_Check(kinds) || PyTuple_GET_SIZE(kinds) != 4) {
        return PyErr_Format(PyExc_TypeError, "(dicts, instances, types, functions) is needed, not %.100R", kinds);
    }
    if (!started) {
        cpython_start_watching(object_changes);
        started = 1;
    }
    watchable.dicts = PyTuple_GET_ITEM(kinds, 0) == Py_True;
    watchable.instances = PyTuple_GET_ITEM(kinds, 1) == Py_True;
    watchable.types = PyTuple_GET_ITEM(kinds, 2) == Py_True;
    watchable.functions = PyTuple_GET_ITEM(kinds, 3) == Py_True;
    Py_RETURN_NONE;
}

PyObject *
module_watchable(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    return Py_BuildValue("(NNNN)", PyBool_FromLong(watchable.dicts), PyBool_FromLong(watchable.instances),
                         PyBool_FromLong(watchable.types), PyBool_FromLong(watchable.functions));
}

PyObject *
module_watched(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    tidy(NULL);
    Py_ssize_t dicts = 0, types = 0, functions = 0;
    for (size_t i = 0; i < n_buckets; i++) {
        for (const Watched *watched = buckets[i]; watched != NULL; watched = watched->next) {
            *(PyDict_Check(watched->object)   ? &dicts
              : PyType_Check(watched->object) ? &types
                                              : &functions) += 1;
        }
    }
    return Py_BuildValue("{s:n,s:n,s:n}", "dicts", dicts, "types", types, "functions", functions);
}
