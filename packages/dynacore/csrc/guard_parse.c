/* From nested tuples to nodes: everything that a walk relies on is verified here, once. */
#include "guard_parse.h"
#include <stddef.h>
#include <string.h>

#define MAX_DEPTH 4000 /* a walk recurses */

typedef enum { ARG_NONE, ARG_OBJECT, ARG_INDEX, ARG_NAME, ARG_TUPLE, ARG_TYPE, ARG_PAIR, ARG_INDEXES, ARG_FIELD, ARG_WEAK } ArgKind;

typedef struct {
    const char *name;
    int kind;
    ArgKind arg;
    int slow; /* runs Python code whose cost isn't ours */
} Spec;

static const Spec ACCESSORS[] = {
    {"root", ACCESS_ROOT, ARG_NONE, 0},     {"arg", ACCESS_ARG, ARG_INDEX, 0},       {"const", ACCESS_CONST, ARG_OBJECT, 0},
    {"weak", ACCESS_WEAK, ARG_WEAK, 0},     {"attr", ACCESS_ATTR, ARG_NAME, 1},      {"dict", ACCESS_DICT, ARG_NONE, 0},
    {"key", ACCESS_KEY, ARG_OBJECT, 0},     {"item", ACCESS_ITEM, ARG_INDEX, 0},     {"type", ACCESS_TYPE, ARG_NONE, 0},
    {"mro", ACCESS_MRO, ARG_NAME, 0},       {"cell", ACCESS_CELL, ARG_NONE, 0},      {"func", ACCESS_FUNC, ARG_FIELD, 0},
    {"method", ACCESS_METHOD, ARG_FIELD, 0}, {"slot", ACCESS_SLOT, ARG_NAME, 0},     {"call", ACCESS_CALL, ARG_OBJECT, 1},
    {"weak_key", ACCESS_WEAK_KEY, ARG_WEAK, 0},
    {NULL, 0, ARG_NONE, 0},
};

static const Spec CHECKS[] = {
    {"is", CHECK_IS, ARG_OBJECT, 0},
    {"is_not", CHECK_IS_NOT, ARG_OBJECT, 0},
    {"type", CHECK_TYPE, ARG_TYPE, 0},
    {"eq", CHECK_EQ, ARG_OBJECT, 0},
    {"len", CHECK_LEN, ARG_INDEX, 0},
    {"keys", CHECK_KEYS, ARG_TUPLE, 0},
    {"has", CHECK_HAS, ARG_OBJECT, 0},
    {"lacks", CHECK_LACKS, ARG_OBJECT, 0},
    {"mro_eq", CHECK_MRO_EQ, ARG_TUPLE, 0},
    {"mro_is", CHECK_MRO_IS, ARG_PAIR, 0},
    {"mro_lacks", CHECK_MRO_LACKS, ARG_NAME, 0},
    {"func_code", CHECK_FUNC_CODE, ARG_OBJECT, 0},
    {"unbound_cell", CHECK_UNBOUND_CELL, ARG_NONE, 0},
    {"is_weak", CHECK_IS_WEAK, ARG_WEAK, 0},
    {"lacks_weak", CHECK_LACKS_WEAK, ARG_WEAK, 0},
    {"keys_weak", CHECK_KEYS_WEAK, ARG_TUPLE, 0},
    {"true", CHECK_TRUE, ARG_OBJECT, 1},
    {"shape", CHECK_SHAPE, ARG_TUPLE, 0},
    {"tensor", CHECK_TENSOR, ARG_INDEX, 0},
    {"state", CHECK_STATE, ARG_PAIR, 0},
    {"switch", CHECK_SWITCH, ARG_PAIR, 0},
    {"call0_is", CHECK_CALL0_IS, ARG_PAIR, 1},
    {"tensors", CHECK_TENSORS, ARG_OBJECT, 0},
    {"tensors_any_grad", CHECK_TENSORS_ANY_GRAD, ARG_OBJECT, 0},
    {"same", CHECK_SAME, ARG_INDEXES, 0},
    {"differ", CHECK_DIFFER, ARG_INDEXES, 0},
    {"ints", CHECK_INTS, ARG_INDEXES, 0},
    {"rel", CHECK_REL, ARG_INDEXES, 1},
    {NULL, 0, ARG_NONE, 0},
};

static const struct {
    AccessKind access;
    const char *name;
    Py_ssize_t offset;
} FIELDS[] = {
    {ACCESS_FUNC, "code", offsetof(PyFunctionObject, func_code)},
    {ACCESS_FUNC, "defaults", offsetof(PyFunctionObject, func_defaults)},
    {ACCESS_FUNC, "kwdefaults", offsetof(PyFunctionObject, func_kwdefaults)},
    {ACCESS_FUNC, "closure", offsetof(PyFunctionObject, func_closure)},
    {ACCESS_FUNC, "globals", offsetof(PyFunctionObject, func_globals)},
    {ACCESS_FUNC, "dict", offsetof(PyFunctionObject, func_dict)},
    {ACCESS_METHOD, "self", offsetof(PyMethodObject, im_self)},
    {ACCESS_METHOD, "func", offsetof(PyMethodObject, im_func)},
};

typedef struct {
    Guards *guards;
    Py_ssize_t node, child, check; /* how many of each are filled */
    char *handed_seen;
    char *batch_seen;
    Py_ssize_t n_tensor_checks;
    int has_checker;
} Parser;

static int
malformed(const char *what, PyObject *where)
{
    PyErr_Format(PyExc_ValueError, "guard tree: %s: %.200R", what, where);
    return -1;
}

static const Spec *
find_spec(const Spec *specs, PyObject *name)
{
    if (PyUnicode_Check(name)) {
        for (; specs->name != NULL; specs++) {
            if (PyUnicode_CompareWithASCIIString(name, specs->name) == 0) {
                return specs;
            }
        }
    }
    malformed("unknown accessor or check", name);
    return NULL;
}

/* First pass: shapes and numbers. */
static int
count(PyObject *tuple, Guards *guards, int depth)
{
    if (!PyTuple_Check(tuple) || PyTuple_GET_SIZE(tuple) != 5 || !PyTuple_Check(PyTuple_GET_ITEM(tuple, 2)) ||
        !PyTuple_Check(PyTuple_GET_ITEM(tuple, 4))) {
        return malformed("a node is (accessor, key, checks, handed, children)", tuple);
    }
    if (depth > MAX_DEPTH) {
        PyErr_SetString(PyExc_ValueError, "guard tree: too deep");
        return -1;
    }
    PyObject *checks = PyTuple_GET_ITEM(tuple, 2), *children = PyTuple_GET_ITEM(tuple, 4);
    guards->n_nodes++;
    guards->n_checks += PyTuple_GET_SIZE(checks);
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(checks); i++) {
        PyObject *check = PyTuple_GET_ITEM(checks, i);
        if (!PyTuple_Check(check) || PyTuple_GET_SIZE(check) != 2) {
            return malformed("a check is (name, argument)", check);
        }
    }
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(children); i++) {
        if (count(PyTuple_GET_ITEM(children, i), guards, depth + 1) < 0) {
            return -1;
        }
    }
    return 0;
}

static int
parse_index(PyObject *object, Py_ssize_t *index)
{
    if (!PyLong_CheckExact(object)) {
        return malformed("not an index", object);
    }
    *index = PyLong_AsSsize_t(object);
    if (*index < 0) {
        PyErr_Clear();
        return malformed("not an index", object);
    }
    return 0;
}

static int
parse_handed_index(Parser *parser, PyObject *object, Py_ssize_t *index)
{
    if (parse_index(object, index) < 0) {
        return -1;
    }
    return *index < parser->guards->n_handed ? 0 : malformed("no such handed object", object);
}

static PyObject *
parse_name(PyObject *object)
{
    if (!PyUnicode_CheckExact(object)) {
        malformed("a name is a str", object);
        return NULL;
    }
    PyUnicode_InternInPlace((Py_INCREF(object), &object));
    return object;
}

static int
parse_field(AccessKind access, PyObject *name, Py_ssize_t *offset)
{
    for (size_t i = 0; i < Py_ARRAY_LENGTH(FIELDS); i++) {
        if (FIELDS[i].access == access && PyUnicode_Check(name) &&
            PyUnicode_CompareWithASCIIString(name, FIELDS[i].name) == 0) {
            *offset = FIELDS[i].offset;
            return 0;
        }
    }
    return malformed("no such field", name);
}

/* A pair is (callable, object) or (name, object). */
static int
parse_pair(const Spec *spec, PyObject *argument, Check *check)
{
    if (!PyTuple_Check(argument) || PyTuple_GET_SIZE(argument) != 2) {
        return malformed("the argument is a pair", argument);
    }
    PyObject *first = PyTuple_GET_ITEM(argument, 0);
    check->value = spec->kind == CHECK_MRO_IS ? parse_name(first) : Py_NewRef(first);
    check->other = Py_NewRef(PyTuple_GET_ITEM(argument, 1));
    return check->value != NULL ? 0 : -1;
}

static int
parse_indexes(Parser *parser, const Spec *spec, PyObject *argument, Check *check)
{
    if (!PyTuple_Check(argument) || PyTuple_GET_SIZE(argument) != 2) {
        return malformed("the argument is a pair", argument);
    }
    PyObject *first = PyTuple_GET_ITEM(argument, 0), *second = PyTuple_GET_ITEM(argument, 1);
    if (spec->kind != CHECK_REL && spec->kind != CHECK_INTS) {
        return parse_handed_index(parser, first, &check->index) < 0 ? -1
                                                                    : parse_handed_index(parser, second, &check->second);
    }
    if (!PyTuple_Check(second)) {
        return malformed("a tuple of handed indexes is needed", second);
    }
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(second); i++) {
        Py_ssize_t ignored;
        if (parse_handed_index(parser, PyTuple_GET_ITEM(second, i), &ignored) < 0) {
            return -1;
        }
    }
    check->value = Py_NewRef(first);
    check->other = Py_NewRef(second);
    if (spec->kind == CHECK_INTS) {
        check->relation = relation_parse(first, second);
        return check->relation != NULL ? 0 : -1;
    }
    return 0;
}

static int
parse_check_argument(Parser *parser, const Spec *spec, PyObject *argument, Check *check)
{
    switch (spec->arg) {
    case ARG_NONE:
        return 0;
    case ARG_INDEX:
        return parse_index(argument, &check->index);
    case ARG_NAME:
        check->value = parse_name(argument);
        return check->value != NULL ? 0 : -1;
    case ARG_PAIR:
        return parse_pair(spec, argument, check);
    case ARG_INDEXES:
        return parse_indexes(parser, spec, argument, check);
    case ARG_TUPLE:
        if (!PyTuple_Check(argument)) {
            return malformed("a tuple is needed", argument);
        }
        break;
    case ARG_TYPE:
        if (!PyType_Check(argument)) {
            return malformed("a type is needed", argument);
        }
        break;
    case ARG_WEAK:
        if (!PyWeakref_CheckRefExact(argument)) {
            return malformed("a weakref is needed", argument);
        }
        break;
    default:
        break;
    }
    check->value = Py_NewRef(argument);
    if (spec->kind == CHECK_SHAPE) {
        check->index = PyTuple_GET_SIZE(argument);
        check->other = guard_parse_sizes(argument);
        return check->other != NULL ? 0 : -1;
    }
    return 0;
}

static int
parse_check(Parser *parser, const Node *node, PyObject *tuple, Check *check)
{
    const Spec *spec = find_spec(CHECKS, PyTuple_GET_ITEM(tuple, 0));
    if (spec == NULL) {
        return -1;
    }
    if ((spec->kind >= CHECK_FIRST_OF_ROOT) != (node->access == ACCESS_ROOT)) {
        return malformed("a check of the root elsewhere, or the reverse", tuple);
    }
    check->kind = spec->kind;
    parser->guards->slow += spec->slow;
    if (parse_check_argument(parser, spec, PyTuple_GET_ITEM(tuple, 1), check) < 0) {
        return -1;
    }
    parser->guards->n_states += check->kind == CHECK_STATE || check->kind == CHECK_SWITCH;
    parser->guards->n_switches += check->kind == CHECK_SWITCH;
    if (check->kind == CHECK_TENSORS || check->kind == CHECK_TENSORS_ANY_GRAD) {
        parser->has_checker = 1;
        parser->guards->any_grad = check->kind == CHECK_TENSORS_ANY_GRAD;
    }
    else if (check->kind == CHECK_TENSOR) {
        if (check->index >= parser->guards->n_checks || parser->batch_seen[check->index]++) {
            return malformed("a place in the batch beyond its end or taken twice", tuple);
        }
        parser->n_tensor_checks++;
        check->second = node->handed >= 0 ? node->handed : parser->guards->n_handed + parser->guards->n_loose++;
        parser->guards->batch[check->index] = check->second;
        parser->guards->n_batch = Py_MAX(parser->guards->n_batch, check->index + 1);
    }
    return 0;
}

static int
parse_key(Node *node, ArgKind arg, PyObject *key)
{
    switch (arg) {
    case ARG_NONE:
        return key == Py_None ? 0 : malformed("this accessor takes no key", key);
    case ARG_INDEX:
        return parse_index(key, &node->index);
    case ARG_FIELD:
        return parse_field(node->access, key, &node->index);
    case ARG_WEAK:
        if (!PyWeakref_CheckRefExact(key)) {
            return malformed("a weakref is needed", key);
        }
        break;
    case ARG_NAME:
        node->key = parse_name(key);
        return node->key != NULL ? 0 : -1;
    default:
        break;
    }
    if (node->access == ACCESS_KEY && PyUnicode_CheckExact(key)) {
        node->key = parse_name(key);
        node->hash = PyObject_Hash(node->key);
        return 0;
    }
    node->key = Py_NewRef(key);
    return 0;
}

static int
parse_handed(Parser *parser, Node *node, PyObject *handed)
{
    if (!PyLong_CheckExact(handed)) {
        return malformed("not an index", handed);
    }
    node->handed = PyLong_AsSsize_t(handed);
    if (node->handed == -1) {
        PyErr_Clear();
        return 0;
    }
    if (parse_handed_index(parser, handed, &node->handed) < 0) {
        node->handed = -1;
        return -1;
    }
    return parser->handed_seen[node->handed]++ ? malformed("an object is handed twice", handed) : 0;
}

static Node *parse_node(Parser *parser, PyObject *tuple, const Node *parent);

static int
parse_children(Parser *parser, Node *node, PyObject *tuples)
{
    node->children = parser->guards->children + parser->child;
    parser->child += PyTuple_GET_SIZE(tuples);
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuples); i++) {
        Node *child = parse_node(parser, PyTuple_GET_ITEM(tuples, i), node);
        if (child == NULL) {
            return -1;
        }
        node->children[node->n_children++] = child;
    }
    return 0;
}

static int
starts_a_path(AccessKind access)
{
    return access == ACCESS_ARG || access == ACCESS_CONST || access == ACCESS_WEAK;
}

static Node *
parse_node(Parser *parser, PyObject *tuple, const Node *parent)
{
    Node *node = &parser->guards->nodes[parser->node++];
    node->hash = node->handed = -1;
    const Spec *spec = find_spec(ACCESSORS, PyTuple_GET_ITEM(tuple, 0));
    if (spec == NULL) {
        return NULL;
    }
    node->access = spec->kind;
    parser->guards->slow += spec->slow;
    int expects_start = parent != NULL && parent->access == ACCESS_ROOT;
    if ((node->access == ACCESS_ROOT) != (parent == NULL) || starts_a_path(node->access) != expects_start) {
        malformed("an accessor in the wrong place", tuple);
        return NULL;
    }
    if (parse_key(node, spec->arg, PyTuple_GET_ITEM(tuple, 1)) < 0 ||
        parse_handed(parser, node, PyTuple_GET_ITEM(tuple, 3)) < 0) {
        return NULL;
    }
    PyObject *checks = PyTuple_GET_ITEM(tuple, 2);
    node->checks = parser->guards->checks + parser->check;
    parser->check += PyTuple_GET_SIZE(checks);
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(checks); i++) {
        node->n_checks++;
        if (parse_check(parser, node, PyTuple_GET_ITEM(checks, i), &node->checks[i]) < 0) {
            return NULL;
        }
    }
    return parse_children(parser, node, PyTuple_GET_ITEM(tuple, 4)) < 0 ? NULL : node;
}

/* What starts from the state comes first among the root's children: it is likelier to fail than what was remembered. */
static void
put_args_first(Guards *guards)
{
    Node *root = guards->nodes;
    for (int i = 0; i < root->n_children; i++) {
        Node *child = root->children[i];
        guards->n_weak += child->access == ACCESS_WEAK;
        if (child->access == ACCESS_ARG) {
            memmove(root->children + guards->n_args + 1, root->children + guards->n_args,
                    (i - guards->n_args) * sizeof(Node *));
            root->children[guards->n_args++] = child;
        }
    }
}

static int
parse_all(Parser *parser)
{
    Guards *guards = parser->guards;
    Node *root = parse_node(parser, guards->tree, NULL);
    if (root == NULL) {
        return -1;
    }
    if (root->handed != -1) {
        return malformed("the root isn't an object to hand over", guards->tree);
    }
    if (guards->n_handed > 0 && memchr(parser->handed_seen, 0, guards->n_handed) != NULL) {
        return malformed("a handed object has no node", guards->tree);
    }
    if (parser->n_tensor_checks != guards->n_batch || (guards->n_batch > 0) != parser->has_checker) {
        return malformed("the batch of tensors has gaps or no checker", guards->tree);
    }
    put_args_first(guards);
    return 0;
}

int
guards_parse(Guards *guards)
{
    if (count(guards->tree, guards, 0) < 0) {
        return -1;
    }
    guards->nodes = PyMem_Calloc(guards->n_nodes, sizeof(Node));
    guards->children = PyMem_Calloc(guards->n_nodes, sizeof(Node *));
    guards->checks = PyMem_Calloc(guards->n_checks, sizeof(Check));
    guards->batch = PyMem_Calloc(guards->n_checks, sizeof(Py_ssize_t));
    Parser parser = {.guards = guards,
                     .handed_seen = PyMem_Calloc(guards->n_handed, 1),
                     .batch_seen = PyMem_Calloc(guards->n_checks, 1)};
    int result = -1;
    if (guards->nodes && guards->children && guards->checks && guards->batch && parser.handed_seen && parser.batch_seen) {
        result = parse_all(&parser);
    }
    else {
        PyErr_NoMemory();
    }
    PyMem_Free(parser.handed_seen);
    PyMem_Free(parser.batch_seen);
    return result;
}
