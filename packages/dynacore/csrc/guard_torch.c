/* Checks on torch's state and on tensors: by what is read from memory while that is known to be right, else by asking. */
#include "guards.h"
#include "torch_memory.h"
#include <string.h>

/* What was read when the checks last held, and when they last failed: what is the same again needs no asking. */
typedef struct TorchMemory {
    uint64_t held[MAX_STATE], failed[MAX_STATE];
    int n_held, n_failed;
    TensorWords batch[]; /* as they last held */
} TorchMemory;

int
guard_call_is_true(PyObject *callable, PyObject *const *args, Py_ssize_t n)
{
    PyObject *answer = PyObject_Vectorcall(callable, args, n, NULL);
    int truth = answer != NULL ? PyObject_IsTrue(answer) : -1;
    Py_XDECREF(answer);
    return truth == 1;
}

static TorchMemory *
memory_of(Guards *guards)
{
    if (guards->memory == NULL) {
        guards->memory = PyMem_Calloc(1, sizeof(TorchMemory) + guards->n_batch * sizeof(TensorWords));
    }
    return guards->memory;
}

static int
is_same(const uint64_t *words, int n, const uint64_t *others, int n_others)
{
    return n > 0 && n == n_others && memcmp(words, others, n * sizeof(uint64_t)) == 0;
}

static int
states_are_as_asked(const Guards *guards)
{
    const Node *root = guards->nodes;
    for (int i = 0; i < root->n_checks; i++) {
        const Check *check = &root->checks[i];
        if (check->kind == CHECK_STATE) {
            PyObject *value = PyObject_CallNoArgs(check->value);
            int equal = value != NULL && constants_equal(value, check->other);
            Py_XDECREF(value);
            if (!equal) {
                return 0;
            }
        }
    }
    return 1;
}

int
guard_state_holds(Guards *guards)
{
    uint64_t words[MAX_STATE];
    int n = guards->n_states > 0 ? torch_state_read(words) : 0;
    TorchMemory *memory = n > 0 ? memory_of(guards) : NULL;
    if (memory == NULL) {
        return states_are_as_asked(guards);
    }
    if (is_same(words, n, memory->held, memory->n_held)) {
        return 1;
    }
    if (is_same(words, n, memory->failed, memory->n_failed)) {
        return 0;
    }
    int holds = states_are_as_asked(guards);
    memcpy(holds ? memory->held : memory->failed, words, n * sizeof(uint64_t));
    *(holds ? &memory->n_held : &memory->n_failed) = n;
    return holds;
}

int
guard_tensors_hold(const Check *check, Guards *guards, PyObject *const *tensors)
{
    TorchMemory *memory = memory_of(guards);
    Py_ssize_t n = guards->n_batch, i = 0;
    while (memory != NULL && i < n && tensor_has(tensors[i], &memory->batch[i])) {
        i++;
    }
    if (i == n) {
        return 1;
    }
    int holds = guard_call_is_true(check->value, tensors, n);
    for (; holds && memory != NULL && i < n; i++) {
        if (!tensor_has(tensors[i], &memory->batch[i])) {
            (void)tensor_read_another(tensors[i], &memory->batch[i]);
        }
    }
    return holds;
}

/* The sizes of the check `shape`, as a bytes object that holds numbers; -1: any. */
PyObject *
guard_parse_sizes(PyObject *shape)
{
    Py_ssize_t n = PyTuple_GET_SIZE(shape);
    PyObject *bytes = PyBytes_FromStringAndSize(NULL, n * sizeof(int64_t));
    for (Py_ssize_t i = 0; bytes != NULL && i < n; i++) {
        PyObject *size = PyTuple_GET_ITEM(shape, i);
        int64_t number = size == Py_None ? -1 : PyLong_AsLongLong(size);
        if (number == -1 && PyErr_Occurred()) {
            Py_CLEAR(bytes);
            break;
        }
        memcpy(PyBytes_AS_STRING(bytes) + i * sizeof(int64_t), &number, sizeof number);
    }
    return bytes;
}

int
guard_shape_holds(const Check *check, PyObject *object)
{
    const int64_t *sizes = (const int64_t *)PyBytes_AS_STRING(check->other);
    return !tensor_has_other_sizes(object, sizes, check->index);
}
