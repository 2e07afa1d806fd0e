/* Relations between integers: small postfix programs over the handed objects, evaluated without Python. */
#include "guards.h"

enum { STEP_LOAD, STEP_CONST, STEP_ADD, STEP_SUB, STEP_MUL, STEP_DIV, STEP_MOD, STEP_LT, STEP_LE, STEP_EQ, STEP_NE, STEP_MIN, STEP_MAX, N_STEPS };

#define MAX_STACK 32

typedef struct {
    int64_t operand; /* load: the index of a handed object */
    int kind;
} Step;

struct Relation {
    Py_ssize_t n;
    Step steps[];
};

static int
bad(const char *what, PyObject *where)
{
    PyErr_Format(PyExc_ValueError, "guard tree: %s: %.200R", what, where);
    return -1;
}

/* The step at `i` of a flat tuple of (kind, operand); -1 with an exception when it isn't one. */
static int
parse_step(PyObject *program, Py_ssize_t i, PyObject *indexes, Step *step)
{
    int overflow = 0;
    PyObject *kind = PyTuple_GET_ITEM(program, i), *operand = PyTuple_GET_ITEM(program, i + 1);
    if (!PyLong_CheckExact(kind) || !PyLong_CheckExact(operand)) {
        return bad("a relation is a tuple of ints", program);
    }
    step->kind = (int)PyLong_AsLongLongAndOverflow(kind, &overflow);
    if (overflow || step->kind < 0 || step->kind >= N_STEPS) {
        return bad("no such step of a relation", kind);
    }
    step->operand = PyLong_AsLongLongAndOverflow(operand, &overflow);
    if (overflow || (step->kind == STEP_LOAD && (step->operand < 0 || step->operand >= PyTuple_GET_SIZE(indexes)))) {
        return bad("a relation's operand is out of range", operand);
    }
    if (step->kind == STEP_LOAD) {
        step->operand = PyLong_AsSsize_t(PyTuple_GET_ITEM(indexes, step->operand));
    }
    return 0;
}

Relation *
relation_parse(PyObject *program, PyObject *indexes)
{
    if (!PyTuple_Check(program) || PyTuple_GET_SIZE(program) % 2) {
        bad("a relation is a tuple of pairs, flattened", program);
        return NULL;
    }
    Py_ssize_t n = PyTuple_GET_SIZE(program) / 2, depth = 0;
    Relation *relation = PyMem_Malloc(sizeof(Relation) + n * sizeof(Step));
    if (relation == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    relation->n = n;
    for (Py_ssize_t i = 0; i < n; i++) {
        if (parse_step(program, 2 * i, indexes, &relation->steps[i]) < 0) {
            PyMem_Free(relation);
            return NULL;
        }
        depth += relation->steps[i].kind <= STEP_CONST ? 1 : -1;
        if (depth < 1 || depth > MAX_STACK) {
            depth = -1;
            break;
        }
    }
    if (depth != 1) {
        PyMem_Free(relation);
        bad("a relation leaves one number", program);
        return NULL;
    }
    return relation;
}

void
relation_free(Relation *relation)
{
    PyMem_Free(relation);
}

/* Division and remainder as Python rounds them; 0 when there is no result. */
static int
divided(int64_t a, int64_t b, int remainder, int64_t *result)
{
    if (b == 0 || (a == INT64_MIN && b == -1)) {
        return 0;
    }
    int64_t quotient = a / b, rest = a % b;
    if (rest != 0 && (rest < 0) != (b < 0)) {
        quotient--;
        rest += b;
    }
    *result = remainder ? rest : quotient;
    return 1;
}

static int
applied(int kind, int64_t a, int64_t b, int64_t *result)
{
    switch (kind) {
    case STEP_ADD:
        return !__builtin_add_overflow(a, b, result);
    case STEP_SUB:
        return !__builtin_sub_overflow(a, b, result);
    case STEP_MUL:
        return !__builtin_mul_overflow(a, b, result);
    case STEP_DIV:
    case STEP_MOD:
        return divided(a, b, kind == STEP_MOD, result);
    case STEP_LT:
        *result = a < b;
        return 1;
    case STEP_LE:
        *result = a <= b;
        return 1;
    case STEP_EQ:
        *result = a == b;
        return 1;
    case STEP_NE:
        *result = a != b;
        return 1;
    case STEP_MIN:
        *result = a < b ? a : b;
        return 1;
    default:
        *result = a > b ? a : b;
        return 1;
    }
}

/* Whether the program leaves anything but 0. What isn't an int of 64 bits, or becomes one, is a miss. */
int
relation_true(const Relation *relation, PyObject *const *handed)
{
    int64_t stack[MAX_STACK];
    int depth = 0;
    for (Py_ssize_t i = 0; i < relation->n; i++) {
        const Step *step = &relation->steps[i];
        if (step->kind == STEP_CONST) {
            stack[depth++] = step->operand;
        }
        else if (step->kind == STEP_LOAD) {
            int overflow;
            PyObject *object = handed[step->operand];
            if (!PyLong_CheckExact(object)) {
                return 0;
            }
            stack[depth++] = PyLong_AsLongLongAndOverflow(object, &overflow);
            if (overflow) {
                return 0;
            }
        }
        else {
            depth--;
            if (!applied(step->kind, stack[depth - 1], stack[depth], &stack[depth - 1])) {
                return 0;
            }
        }
    }
    return stack[0] != 0;
}
