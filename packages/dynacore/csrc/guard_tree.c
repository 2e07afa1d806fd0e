/* The Guards type: walks the tree. */
#include "guards.h"
#include "guard_parse.h"
#include "memo.h"
#include <stddef.h>
#include <string.h>
#include <structmember.h>

void
state_drop(State *state)
{
    if (state->list != NULL) {
        Py_CLEAR(state->list);
    }
    else {
        for (Py_ssize_t i = 0; i < state->size; i++) {
            Py_CLEAR(state->items[i]);
        }
    }
    state->size = 0;
}

/* What failed now is likeliest to fail next time. All must hold, so the order is free. */
static void
put_first(Node *node, int first, int failed, const Walk *walk)
{
    if (walk->alone) {
        Node *child = node->children[failed];
        node->children[failed] = node->children[first];
        node->children[first] = child;
    }
}

int
node_holds(Node *node, PyObject *object, Walk *walk)
{
    for (int i = 0; i < node->n_checks; i++) {
        if (!check_holds(&node->checks[i], object, walk)) {
            return 0;
        }
    }
    if (node->handed >= 0) {
        Py_XSETREF(walk->found[node->handed], Py_NewRef(object));
    }
    for (int i = 0; i < node->n_children; i++) {
        Node *child = node->children[i];
        PyObject *next = node_access(child, object, walk);
        int holds = next != NULL && node_holds(child, next, walk);
        Py_XDECREF(next);
        if (!holds) {
            put_first(node, 0, i, walk);
            return 0;
        }
    }
    return 1;
}

static int
relation_holds(const Check *check, PyObject *const *handed)
{
    PyObject *args[8];
    Py_ssize_t n = PyTuple_GET_SIZE(check->other);
    PyObject **room = n <= (Py_ssize_t)Py_ARRAY_LENGTH(args) ? args : PyMem_Malloc(n * sizeof(PyObject *));
    if (room == NULL) {
        return 0;
    }
    for (Py_ssize_t i = 0; i < n; i++) {
        room[i] = handed[PyLong_AsSsize_t(PyTuple_GET_ITEM(check->other, i))];
    }
    int holds = guard_call_is_true(check->value, room, n);
    if (room != args) {
        PyMem_Free(room);
    }
    return holds;
}

static int
root_check_holds(const Check *check, Walk *walk)
{
    PyObject **handed = walk->found;
    switch (check->kind) {
    case CHECK_CALL0_IS: {
        PyObject *value = PyObject_CallNoArgs(check->value);
        int equal = value != NULL && constants_equal(value, check->other);
        Py_XDECREF(value);
        return equal;
    }
    case CHECK_TENSORS:
    case CHECK_TENSORS_ANY_GRAD:
        return guard_tensors_hold(check, walk->guards, handed);
    case CHECK_SAME:
        return handed[check->index] == handed[check->second];
    case CHECK_DIFFER:
        return handed[check->index] != handed[check->second];
    case CHECK_INTS:
        return relation_true(check->relation, handed);
    case CHECK_REL:
        return relation_holds(check, handed);
    default:
        Py_UNREACHABLE();
    }
}

static int
root_checks_hold(CheckKind first, CheckKind last, Walk *walk)
{
    const Node *root = walk->guards->nodes;
    for (int i = 0; i < root->n_checks; i++) {
        const Check *check = &root->checks[i];
        if (check->kind >= first && check->kind <= last && !root_check_holds(check, walk)) {
            return 0;
        }
    }
    return 1;
}

static int
args_hold(Walk *walk)
{
    Node *root = walk->guards->nodes;
    for (int i = 0; i < walk->guards->n_args; i++) {
        Node *child = root->children[i];
        PyObject *object = node_access(child, NULL, walk);
        int holds = object != NULL && node_holds(child, object, walk);
        Py_XDECREF(object);
        if (!holds) {
            put_first(root, 0, i, walk);
            return 0;
        }
    }
    return 1;
}

/* What hangs below constants and weak references: by the summary of what is remembered, else root by root. */
static int
roots_hold(Walk *walk)
{
    Guards *guards = walk->guards;
    Node *root = guards->nodes;
    int summarised = walk->alone ? summary_holds(walk) : -1;
    if (summarised == 0) {
        return 0;
    }
    for (int i = guards->n_args; i < root->n_children; i++) {
        Node *child = root->children[i];
        if (summarised == 1 && child->access == ACCESS_CONST) {
            if (guards->n_weak == 0) {
                break;
            }
            continue;
        }
        if (!memo_holds(child, walk)) {
            put_first(root, guards->n_args, i, walk);
            return 0;
        }
    }
    if (walk->alone && summarised < 0) {
        summary_consider(guards);
    }
    return 1;
}

/* What failed last time comes first: torch's state, or what lies below the roots. */
static int
state_and_roots_hold(Walk *walk)
{
    Guards *guards = walk->guards;
    if (guards->state_is_suspect && !guard_state_holds(guards)) {
        return 0;
    }
    if (!args_hold(walk) || !roots_hold(walk)) {
        guards->state_is_suspect = 0;
        return 0;
    }
    if (!guards->state_is_suspect) {
        guards->state_is_suspect = !guard_state_holds(guards);
        return !guards->state_is_suspect;
    }
    return 1;
}

/* A guard that fails by an exception is a miss; an interrupt is only postponed. */
static void
clear_exception(void)
{
    if (PyErr_Occurred()) {
        if (PyErr_ExceptionMatches(PyExc_KeyboardInterrupt)) {
            PyErr_SetInterrupt();
        }
        PyErr_Clear();
    }
}

GuardsResult
guards_evaluate(Guards *guards, const State *state, PyObject **found)
{
    Walk walk = {.guards = guards, .state = state, .found = found, .alone = !guards->busy};
    memset(found, 0, (guards->n_handed + guards->n_loose) * sizeof(PyObject *));
    guards->busy = 1;
    guards->clock++;
    int holds = root_checks_hold(CHECK_CALL0_IS, CHECK_CALL0_IS, &walk) && state_and_roots_hold(&walk) &&
                root_checks_hold(CHECK_TENSORS, CHECK_TENSORS_ANY_GRAD, &walk) &&
                root_checks_hold(CHECK_SAME, CHECK_INTS, &walk) && root_checks_hold(CHECK_REL, CHECK_REL, &walk);
    if (walk.alone) {
        guards->busy = 0;
    }
    if (!holds) {
        clear_exception();
    }
    for (Py_ssize_t i = holds ? guards->n_handed : 0; i < guards->n_handed + guards->n_loose; i++) {
        Py_CLEAR(found[i]);
    }
    return holds ? GUARDS_HOLD : walk.dead ? GUARDS_DEAD : GUARDS_MISS;
}

static PyObject *
guards_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"tree", "n_handed", NULL};
    PyObject *tree;
    Py_ssize_t n_handed;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!n:Guards", names, &PyTuple_Type, &tree, &n_handed)) {
        return NULL;
    }
    if (n_handed < 0) {
        return PyErr_Format(PyExc_ValueError, "n_handed must not be negative: %zd", n_handed);
    }
    Guards *guards = (Guards *)type->tp_alloc(type, 0);
    if (guards == NULL) {
        return NULL;
    }
    guards->tree = Py_NewRef(tree);
    guards->n_handed = n_handed;
    guards->state_is_suspect = 1;
    if (guards_parse(guards) < 0) {
        Py_DECREF(guards);
        return NULL;
    }
    return (PyObject *)guards;
}

static int
guards_traverse(Guards *guards, visitproc visit, void *arg)
{
    Py_VISIT(guards->tree);
    for (Py_ssize_t i = 0; guards->nodes != NULL && i < guards->n_nodes; i++) {
        Py_VISIT(guards->nodes[i].key);
        if (guards->nodes[i].memo != NULL) {
            int result = memo_traverse(guards->nodes[i].memo, visit, arg);
            if (result != 0) {
                return result;
            }
        }
    }
    for (Py_ssize_t i = 0; guards->checks != NULL && i < guards->n_checks; i++) {
        Py_VISIT(guards->checks[i].value);
        Py_VISIT(guards->checks[i].other);
    }
    return 0;
}

static void
guards_dealloc(Guards *guards)
{
    PyObject_GC_UnTrack(guards);
    if (guards->weakrefs != NULL) {
        PyObject_ClearWeakRefs((PyObject *)guards);
    }
    summary_drop(guards); /* it refers to the memos */
    for (Py_ssize_t i = 0; guards->nodes != NULL && i < guards->n_nodes; i++) {
        Py_CLEAR(guards->nodes[i].key);
        memo_free(guards->nodes[i].memo);
    }
    for (Py_ssize_t i = 0; guards->checks != NULL && i < guards->n_checks; i++) {
        Py_CLEAR(guards->checks[i].value);
        Py_CLEAR(guards->checks[i].other);
        relation_free(guards->checks[i].relation);
    }
    Py_CLEAR(guards->tree);
    guard_torch_forget(guards);
    PyMem_Free(guards->batch);
    PyMem_Free(guards->nodes);
    PyMem_Free(guards->children);
    PyMem_Free(guards->checks);
    Py_TYPE(guards)->tp_free(guards);
}

static PyObject *
guards_check(Guards *guards, PyObject *list)
{
    if (!PyList_Check(list)) {
        return PyErr_Format(PyExc_TypeError, "state must be a list, not %.100s", Py_TYPE(list)->tp_name);
    }
    PyObject **found = PyMem_Malloc((guards->n_handed + guards->n_loose + 1) * sizeof(PyObject *));
    PyObject *copy = PyList_GetSlice(list, 0, PyList_GET_SIZE(list)); /* a guard may run code that changes the list */
    if (found == NULL || copy == NULL) {
        PyMem_Free(found);
        Py_XDECREF(copy);
        return PyErr_NoMemory();
    }
    State state = {((PyListObject *)copy)->ob_item, PyList_GET_SIZE(copy), copy};
    PyObject *handed = Py_None;
    if (guards_evaluate(guards, &state, found) == GUARDS_HOLD) {
        handed = PyList_New(guards->n_handed);
        for (Py_ssize_t i = 0; i < guards->n_handed; i++) {
            if (handed != NULL) {
                PyList_SET_ITEM(handed, i, found[i]);
            }
            else {
                Py_DECREF(found[i]);
            }
        }
    }
    else {
        Py_INCREF(handed);
    }
    state_drop(&state);
    PyMem_Free(found);
    return handed;
}

static PyObject *
guards_stats(Guards *guards, void *closure)
{
    (void)closure;
    return Py_BuildValue("{s:n,s:n,s:n}", "walks", guards->walks, "recordings", guards->recordings, "recalls",
                         guards->recalls);
}

static PyMethodDef guards_methods[] = {
    {"check", (PyCFunction)guards_check, METH_O, "check(state) -> list of the handed objects, None when a guard fails"},
    {"coverage", (PyCFunction)memo_coverage, METH_NOARGS,
     "coverage() -> list of (index of a node, how, what): what is remembered below constant and weak roots"},
    {NULL, NULL, 0, NULL},
};

static PyMemberDef guards_members[] = {
    {"tree", T_OBJECT, offsetof(Guards, tree), READONLY, "the tuples"},
    {"n_handed", T_PYSSIZET, offsetof(Guards, n_handed), READONLY, "number of objects handed to the entry's function"},
    {"slow", T_PYSSIZET, offsetof(Guards, slow), READONLY, "number of accessors and checks that call Python code"},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(Guards, weakrefs), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyGetSetDef guards_getset[] = {
    {"stats", (getter)guards_stats, NULL, "counts below const roots: walks, recordings, recalls (no walk needed)", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

PyTypeObject Guards_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "dynacore._C.Guards",
    .tp_doc = "Guards(tree, n_handed): what must hold of a state. The tuples are described in dynacore.guards.spec.",
    .tp_basicsize = sizeof(Guards),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .tp_new = guards_new,
    .tp_traverse = (traverseproc)guards_traverse,
    .tp_dealloc = (destructor)guards_dealloc,
    .tp_weaklistoffset = offsetof(Guards, weakrefs),
    .tp_methods = guards_methods,
    .tp_members = guards_members,
    .tp_getset = guards_getset,
};
