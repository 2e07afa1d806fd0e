/* Recording a memo. */
#include "memo_record.h"
#include "memo.h"
#include <stddef.h>
#include <string.h>

typedef struct {
    Memo *memo;
    Walk *walk;
    int may_hold; /* below a const root: what is held below it lives as long as the guards anyway */
    Array seen;   /* indexes of words by address + 1, an open hash table; count is the number of those used */
} Recorder;

/* An object on the way. It is pinned when, while the words before it hold, it can be no other object than the one that
 * was recorded. Otherwise only its address is known to be the same, and every fact about it needs a word or a
 * reference of its own: objects die, and others take their addresses. */
typedef struct {
    PyObject *object;
    int pinned;
} Known;

static void *
array_append(Array *array, size_t item_size)
{
    if (array->count == array->capacity) {
        Py_ssize_t capacity = array->capacity > 0 ? 2 * array->capacity : 8;
        void *items = PyMem_Realloc(array->items, capacity * item_size);
        if (items == NULL) {
            return NULL;
        }
        array->items = items;
        array->capacity = capacity;
    }
    return (char *)array->items + item_size * array->count++;
}

/* ---- words, each address once ---- */

static size_t
seen_slot(const Array *seen, const Word *words, const uint64_t *address)
{
    size_t mask = seen->capacity - 1;
    size_t slot = ((uintptr_t)address >> 3) * 0x9E3779B97F4A7C15u >> 20 & mask;
    for (;; slot = (slot + 1) & mask) {
        Py_ssize_t index = ((Py_ssize_t *)seen->items)[slot];
        if (index == 0 || words[index - 1].address == address) {
            return slot;
        }
    }
}

static int
seen_grow(Recorder *recorder)
{
    Array bigger = {.capacity = recorder->seen.capacity > 0 ? 2 * recorder->seen.capacity : 64};
    bigger.items = PyMem_Calloc(bigger.capacity, sizeof(Py_ssize_t));
    if (bigger.items == NULL) {
        return -1;
    }
    const Word *words = recorder->memo->words.items;
    for (Py_ssize_t i = 0; i < recorder->memo->words.count; i++) {
        ((Py_ssize_t *)bigger.items)[seen_slot(&bigger, words, words[i].address)] = i + 1;
    }
    PyMem_Free(recorder->seen.items);
    recorder->seen = bigger;
    return 0;
}

/* 0 without memory, or when the word has changed since it was recorded before. */
static int
record_word(Recorder *recorder, Word word, Owner owner)
{
    Memo *memo = recorder->memo;
    if (2 * memo->words.count >= recorder->seen.capacity && seen_grow(recorder) < 0) {
        return 0;
    }
    Py_ssize_t *index = (Py_ssize_t *)recorder->seen.items + seen_slot(&recorder->seen, memo->words.items, word.address);
    if (*index != 0) {
        return ((Word *)memo->words.items)[*index - 1].expected == word.expected;
    }
    Word *new_word = array_append(&memo->words, sizeof(Word));
    Owner *new_owner = array_append(&memo->owners, sizeof(Owner));
    if (new_word == NULL || new_owner == NULL) {
        return 0;
    }
    *new_word = word;
    *new_owner = owner;
    *index = memo->words.count;
    return 1;
}

/* A tensor's own check looks at its class. */
static int
is_checked_as_tensor(const Node *node)
{
    for (int i = 0; i < node->n_checks; i++) {
        if (node->checks[i].kind == CHECK_TENSOR) {
            return node->n_children == 0;
        }
    }
    return 0;
}

static Owner
way_to(Node *node, const char *what)
{
    return (Owner){&node->drift, what};
}

static Owner
itself(Node *node, const char *what)
{
    return (Owner){&node->own_drift, what};
}

/* The pointer or number that lies at `address` now. */
static int
record_field(Recorder *recorder, const void *address, Owner owner)
{
    return record_word(recorder, (Word){address, *(const uint64_t *)address}, owner);
}

/* Everything about the dict or type: watched, or else by its version. */
static int
record_all(Recorder *recorder, PyObject *object, Node *node)
{
    if (memo_watch(recorder->memo, node, object)) {
        return 1;
    }
    if (PyDict_Check(object)) {
        const uint64_t *version = cpython_dict_version(object);
        return version != NULL && record_field(recorder, version, itself(node, "version of the dict"));
    }
    const uint64_t *version = cpython_type_version((PyTypeObject *)object);
    return version != NULL && record_field(recorder, version, itself(node, "version of the type"));
}

/* ---- checks ---- */

static int
record_question(Recorder *recorder, Node *node, const Check *check, PyObject *object)
{
    Question *question = array_append(&recorder->memo->questions, sizeof(Question));
    if (question == NULL) {
        return 0;
    }
    *question = (Question){node, check, object};
    return 1;
}

static int
record_held(Recorder *recorder, PyObject *object)
{
    PyObject **held = array_append(&recorder->memo->held, sizeof(PyObject *));
    if (held == NULL) {
        return 0;
    }
    *held = Py_NewRef(object);
    return 1;
}

static int
record_length(Recorder *recorder, Node *node, PyObject *object)
{
    const void *length = &((PyVarObject *)object)->ob_size;
    if (node->fact != NULL) {
        return 1;
    }
    if (PyDict_Check(object)) {
        length = &((PyDictObject *)object)->ma_used;
    }
    else if (PyAnySet_Check(object)) {
        length = &((PySetObject *)object)->used;
    }
    return record_field(recorder, length, itself(node, "length"));
}

/* `__class__` may be assigned on instances of classes made in Python, and on modules. */
static int
record_type(Recorder *recorder, Owner owner, Known known)
{
    if (known.pinned && !PyType_HasFeature(Py_TYPE(known.object), Py_TPFLAGS_HEAPTYPE) && !PyModule_Check(known.object)) {
        return 1;
    }
    return record_field(recorder, &known.object->ob_type, owner);
}

/* Notes what keeps the check true, which holds now. 0: nothing does. */
static int
record_fact(Recorder *recorder, Node *node, const Check *check, Known known)
{
    PyObject *object = known.object;
    switch (check->kind) {
    case CHECK_IS: /* the check itself keeps the object: no other can have its address */
    case CHECK_IS_NOT:
        return 1;
    case CHECK_EQ:
        return known.pinned || record_held(recorder, object);
    case CHECK_TYPE:
        return is_checked_as_tensor(node) || record_type(recorder, itself(node, "class"), known);
    case CHECK_LEN:
        return record_length(recorder, node, object);
    case CHECK_KEYS: /* an OrderedDict changes its order without telling anybody */
        return (!PyODict_Check(object) || PyDict_GET_SIZE(object) < 2) && record_all(recorder, object, node);
    case CHECK_HAS:
    case CHECK_LACKS:
        return record_all(recorder, object, node);
    case CHECK_MRO_EQ:
    case CHECK_MRO_IS:
    case CHECK_MRO_LACKS:
        return record_all(recorder, object, node);
    case CHECK_FUNC_CODE:
        return memo_watch(recorder->memo, node, object) ||
               record_field(recorder, &((PyFunctionObject *)object)->func_code, itself(node, "function"));
    case CHECK_UNBOUND_CELL:
        return record_field(recorder, &((PyCellObject *)object)->ob_ref, itself(node, "cell"));
    default:
        Py_UNREACHABLE();
    }
}

/* Runs code that isn't ours, or may do so: asked only when the memo is used. */
static int
is_arbitrary(const Check *check)
{
    switch (check->kind) {
    case CHECK_TRUE:
    case CHECK_SHAPE:
        return 1;
    case CHECK_IS_WEAK: /* nothing keeps the object: another may come to its address */
    case CHECK_LACKS_WEAK:
    case CHECK_KEYS_WEAK:
        return 1;
    case CHECK_EQ:
    case CHECK_HAS:
    case CHECK_LACKS:
        return !is_constant(check->value);
    default:
        return 0;
    }
}

/* ---- accessors: each notes what keeps leading from `parent` to the same object; 0: nothing does ---- */

static int
record_edge(Recorder *recorder, Node *child, PyObject *parent)
{
    Edge *edge = array_append(&recorder->memo->edges, sizeof(Edge));
    if (edge == NULL) {
        return 0;
    }
    *edge = (Edge){child, parent};
    return 1;
}

/* CPython 3.12 may take the dict of an object back into inline values while nobody else refers to it: a dict that
 * vanished like that once too often is held. */
static int
record_dict(Recorder *recorder, Node *child, PyObject *parent)
{
    PyObject **slot = cpython_dict_slot(parent);
    if (slot == NULL || *slot == NULL || Py_TYPE(parent)->tp_itemsize != 0) {
        return 0;
    }
    if (child->drift >= DRIFTS && recorder->may_hold && !record_held(recorder, *slot)) {
        return 0;
    }
    return record_field(recorder, slot, way_to(child, "place of the dict"));
}

static int
record_key(Recorder *recorder, Node *child, Node *dict_node, PyObject *dict, int *pinned)
{
    if (dict_node->own_drift < DRIFTS && record_all(recorder, dict, dict_node)) {
        *pinned = 1; /* versions are never used twice: the very dict kept the object all the time */
        return 1;
    }
    Word words[CPYTHON_MAX_DICT_WORDS];
    int n = cpython_dict_value_words(dict, child->key, words);
    for (int i = 0; i < n; i++) {
        if (!record_word(recorder, words[i], way_to(child, "value in the dict"))) {
            return 0;
        }
    }
    return n > 0;
}

static int
record_item(Recorder *recorder, Node *child, Known parent, int *pinned)
{
    Owner owner = way_to(child, "item");
    if (PyTuple_Check(parent.object)) {
        *pinned = parent.pinned;
        return parent.pinned ||
               (record_field(recorder, &((PyVarObject *)parent.object)->ob_size, owner) &&
                record_field(recorder, &((PyTupleObject *)parent.object)->ob_item[child->index], owner));
    }
    PyListObject *list = (PyListObject *)parent.object;
    return record_field(recorder, &list->ob_base.ob_size, owner) && record_field(recorder, &list->ob_item, owner) &&
           record_field(recorder, &list->ob_item[child->index], owner);
}

static int
record_function_field(Recorder *recorder, Node *child, Node *parent_node, Known parent, int *pinned)
{
    switch (child->index) {
    case offsetof(PyFunctionObject, func_closure):
    case offsetof(PyFunctionObject, func_globals): /* these never change */
        *pinned = parent.pinned;
        break;
    case offsetof(PyFunctionObject, func_code):
    case offsetof(PyFunctionObject, func_defaults):
    case offsetof(PyFunctionObject, func_kwdefaults):
        *pinned = parent_node->own_drift < DRIFTS && memo_watch(recorder->memo, parent_node, parent.object);
        break;
    }
    return *pinned || record_field(recorder, (char *)parent.object + child->index, way_to(child, "function"));
}

/* The class says which field the attribute is. */
static int
record_slot(Recorder *recorder, Node *child, Node *parent_node, Known parent)
{
    PyObject **field = memo_slot_field(parent.object, child->key);
    PyTypeObject *type = Py_TYPE(parent.object);
    if (field == NULL || !record_type(recorder, itself(parent_node, "class"), parent)) {
        return 0;
    }
    if (PyType_HasFeature(type, Py_TPFLAGS_HEAPTYPE)) {
        const uint64_t *version = cpython_type_version(type);
        if (version == NULL || !record_field(recorder, version, way_to(child, "version of the class"))) {
            return 0;
        }
    }
    return record_field(recorder, field, way_to(child, "field"));
}

static int
record_access(Recorder *recorder, Node *child, Node *parent_node, Known parent, int *pinned)
{
    switch (child->access) {
    case ACCESS_DICT:
        return record_dict(recorder, child, parent.object);
    case ACCESS_KEY:
        return record_key(recorder, child, parent_node, parent.object, pinned);
    case ACCESS_ITEM:
        return record_item(recorder, child, parent, pinned);
    case ACCESS_TYPE:
        return record_type(recorder, way_to(child, "class"), parent);
    case ACCESS_MRO:
        *pinned = 1;
        return parent_node->own_drift < DRIFTS && record_all(recorder, parent.object, parent_node);
    case ACCESS_CELL:
        return record_field(recorder, &((PyCellObject *)parent.object)->ob_ref, way_to(child, "cell"));
    case ACCESS_METHOD:
        *pinned = parent.pinned; /* bound methods never change */
        return parent.pinned || record_field(recorder, (char *)parent.object + child->index, way_to(child, "method"));
    case ACCESS_SLOT:
        return record_slot(recorder, child, parent_node, parent);
    case ACCESS_FUNC:
        return record_function_field(recorder, child, parent_node, parent, pinned);
    default:
        return 0;
    }
}

/* Whether the way to the node runs none but CPython's own code, and has been steady. */
static int
is_rememberable(const Recorder *recorder, const Node *child, PyObject *parent)
{
    switch (child->access) {
    case ACCESS_ATTR:
    case ACCESS_CALL:
    case ACCESS_WEAK_KEY:
        return 0;
    case ACCESS_SLOT:
        return child->drift < DRIFTS && memo_slot_field(parent, child->key) != NULL;
    case ACCESS_KEY:
        return child->drift < DRIFTS && is_constant(child->key);
    case ACCESS_DICT:
        return child->drift < (recorder->may_hold ? 2 * DRIFTS : DRIFTS);
    default:
        return child->drift < DRIFTS;
    }
}

static int record_node(Recorder *recorder, Node *node, Known known);

static int
record_child(Recorder *recorder, Node *child, Node *parent_node, Known parent)
{
    PyObject *object = node_access(child, parent.object, recorder->walk);
    if (object == NULL) {
        return 0;
    }
    int pinned = 0;
    int recorded = record_access(recorder, child, parent_node, parent, &pinned) &&
                   record_node(recorder, child, (Known){object, pinned});
    Py_DECREF(object);
    return recorded;
}

static int
record_found(Recorder *recorder, Py_ssize_t place, PyObject *object)
{
    Found *found = array_append(&recorder->memo->found, sizeof(Found));
    if (found == NULL) {
        return 0;
    }
    *found = (Found){place, object};
    return 1;
}

static int
record_check(Recorder *recorder, Node *node, const Check *check, Known known)
{
    if (check->kind == CHECK_TENSOR) {
        return node->handed >= 0 || record_found(recorder, check->second, known.object);
    }
    if (is_arbitrary(check)) {
        return record_question(recorder, node, check, known.object);
    }
    if (!check_holds(check, known.object, recorder->walk)) {
        return 0;
    }
    int steady = node->own_drift < DRIFTS && record_fact(recorder, node, check, known);
    return steady || record_question(recorder, node, check, known.object);
}

static int
is_kept_by_check(const Node *node)
{
    for (int i = 0; i < node->n_checks; i++) {
        if (node->checks[i].kind == CHECK_IS) {
            return 1;
        }
    }
    return 0;
}

static int
is_worth_watching(const Node *node, PyObject *object)
{
    if (node->own_drift >= DRIFTS || !(PyType_Check(object) || PyDict_Check(object))) {
        return 0;
    }
    for (int i = 0; i < node->n_children; i++) {
        AccessKind access = node->children[i]->access;
        if (access == ACCESS_MRO || (access == ACCESS_KEY && node->children[i]->drift < DRIFTS)) {
            return 1;
        }
    }
    for (int i = 0; i < node->n_checks; i++) {
        if (node->checks[i].kind >= CHECK_LEN && node->checks[i].kind <= CHECK_MRO_LACKS) {
            return 1;
        }
    }
    return 0;
}

static int
record_node(Recorder *recorder, Node *node, Known known)
{
    known.pinned = known.pinned || is_kept_by_check(node);
    if (is_worth_watching(node, known.object)) {
        /* Before anything is read. A dict that is watched tells when it goes: no other can come to its address. */
        int watched = memo_watch(recorder->memo, node, known.object);
        known.pinned = known.pinned || (watched && PyDict_Check(known.object));
    }
    /* Another object may have come to the address of one that isn't pinned. Its type says what may be read there. */
    if (!known.pinned && !is_checked_as_tensor(node) && !record_type(recorder, way_to(node, "class"), known)) {
        return 0;
    }
    for (int i = 0; i < node->n_checks; i++) {
        if (!record_check(recorder, node, &node->checks[i], known)) {
            return 0;
        }
    }
    if (node->handed >= 0 && !record_found(recorder, node->handed, known.object)) {
        return 0;
    }
    for (int i = 0; i < node->n_children; i++) {
        Node *child = node->children[i];
        int recorded = is_rememberable(recorder, child, known.object) && record_child(recorder, child, node, known);
        if (!recorded && !record_edge(recorder, child, known.object)) {
            return 0;
        }
    }
    return 1;
}

Memo *
memo_record(Node *root_child, PyObject *root, Walk *walk)
{
    Memo *memo = PyMem_Calloc(1, sizeof(Memo));
    if (memo == NULL) {
        return NULL;
    }
    memo->valid = 1;
    memo->clock = &walk->guards->clock;
    memo->born = walk->guards->clock;
    Recorder recorder = {.memo = memo, .walk = walk, .may_hold = root_child->access == ACCESS_CONST};
    int collects = PyGC_Disable(); /* finalizers could change what is being recorded */
    int recorded = record_node(&recorder, root_child, (Known){root, 1});
    if (collects) {
        PyGC_Enable();
    }
    PyMem_Free(recorder.seen.items);
    if (!recorded) {
        memo_free(memo);
        return NULL;
    }
    return memo;
}
