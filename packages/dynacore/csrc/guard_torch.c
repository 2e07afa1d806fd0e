/* Checks on torch's state and on tensors: by what is read from memory while that is known to be right, else by asking. */
#include "guards.h"
#include "torch_memory.h"
#include <string.h>

#define UNKNOWN (-1)
#define AHEAD 32 /* tensors on their way from memory while one is compared */

/* What was read when the checks last held, and when they last failed: what is the same again needs no asking. */
typedef struct TorchMemory {
    uint64_t held[MAX_STATE], failed[MAX_STATE];
    int n_held, n_failed;
    TensorWords *kinds; /* the different metadata that tensors of the batch had: a model's parameters have few */
    int n_kinds;
    int batch[]; /* each tensor's among them, as it last held, or UNKNOWN */
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
        TorchMemory *memory = PyMem_Calloc(1, sizeof(TorchMemory) + guards->n_batch * sizeof(int));
        for (Py_ssize_t i = 0; memory != NULL && i < guards->n_batch; i++) {
            memory->batch[i] = UNKNOWN;
        }
        guards->memory = memory;
    }
    return guards->memory;
}

void
guard_torch_forget(Guards *guards)
{
    if (guards->memory != NULL) {
        PyMem_Free(guards->memory->kinds);
        PyMem_Free(guards->memory);
        guards->memory = NULL;
    }
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
        if (check->kind == CHECK_STATE || check->kind == CHECK_SWITCH) {
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
    int n = guards->n_states > 0 ? torch_state_read(words, guards->n_switches > 0) : 0;
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

static inline int
tensor_is_as_it_was(const Guards *guards, const TorchMemory *memory, PyObject *const *found, size_t i)
{
    int kind = memory->batch[i];
    return kind != UNKNOWN && tensor_has(found[guards->batch[i]], &memory->kinds[kind]);
}

/* The first tensor of the batch that isn't as it was. Where a model's tensors lie in memory nobody could guess, so the
 * processor is told of those that come next: it waits for many at once then. */
static Py_ssize_t
first_other_tensor(const Guards *guards, const TorchMemory *memory, PyObject *const *found)
{
    const uint64_t *bodies[AHEAD]; /* of the tensors that come next, round and round */
    size_t n = guards->n_batch, i = 0;
    if (n < AHEAD) {
        while (i < n && tensor_is_as_it_was(guards, memory, found, i)) {
            i++;
        }
        return i;
    }
    for (; i < n + AHEAD; i++) {
        const uint64_t **body = &bodies[i % AHEAD];
        if (i >= AHEAD && !tensor_is_as_it_was(guards, memory, found, i - AHEAD)) {
            return i - AHEAD;
        }
        if (i < n && (*body = tensor_body(found[guards->batch[i]])) != NULL) {
            tensor_fetch(*body, guards->any_grad);
        }
        if (!guards->any_grad && i >= AHEAD / 2 && i < n + AHEAD / 2 && bodies[(i - AHEAD / 2) % AHEAD] != NULL) {
            tensor_fetch_autograd(bodies[(i - AHEAD / 2) % AHEAD]);
        }
    }
    return n;
}

static int
ask_about_tensors(const Check *check, const Guards *guards, PyObject *const *found)
{
    PyObject *small[16];
    Py_ssize_t n = guards->n_batch;
    PyObject **tensors = n <= (Py_ssize_t)Py_ARRAY_LENGTH(small) ? small : PyMem_Malloc(n * sizeof(PyObject *));
    if (tensors == NULL) {
        return 0;
    }
    for (Py_ssize_t i = 0; i < n; i++) {
        tensors[i] = found[guards->batch[i]];
    }
    int holds = guard_call_is_true(check->value, tensors, n);
    if (tensors != small) {
        PyMem_Free(tensors);
    }
    return holds;
}

/* The number of these metadata among those of the batch. */
static int
kind_of(TorchMemory *memory, const TensorWords *words, Py_ssize_t n_batch)
{
    for (int i = 0; i < memory->n_kinds; i++) {
        if (memcmp(&memory->kinds[i], words, sizeof *words) == 0) {
            return i;
        }
    }
    if (memory->n_kinds >= 2 * n_batch) { /* those that no tensor has any more pile up */
        memory->n_kinds = 0;
        for (Py_ssize_t i = 0; i < n_batch; i++) {
            memory->batch[i] = UNKNOWN;
        }
    }
    TensorWords *kinds = PyMem_Realloc(memory->kinds, (memory->n_kinds + 1) * sizeof *words);
    if (kinds == NULL) {
        return UNKNOWN;
    }
    memory->kinds = kinds;
    kinds[memory->n_kinds] = *words;
    return memory->n_kinds++;
}

/* The tensor passed the check at this place of the batch. */
static void
remember_tensor(TorchMemory *memory, Py_ssize_t at, PyObject *tensor, const Guards *guards)
{
    TensorWords words;
    int before = memory->batch[at];
    if (before != UNKNOWN && tensor_has(tensor, &memory->kinds[before])) {
        return;
    }
    if (!tensor_read(tensor, &words, guards->any_grad)) {
        memory->batch[at] = UNKNOWN;
        return;
    }
    if (before != UNKNOWN) {
        tensor_words_allow(&words, &memory->kinds[before]);
    }
    memory->batch[at] = kind_of(memory, &words, guards->n_batch);
}

int
guard_tensors_hold(const Check *check, Guards *guards, PyObject *const *found)
{
    TorchMemory *memory = memory_of(guards);
    Py_ssize_t n = guards->n_batch, i = memory != NULL ? first_other_tensor(guards, memory, found) : 0;
    if (i == n) {
        return 1;
    }
    int holds = ask_about_tensors(check, guards, found);
    for (; holds && memory != NULL && i < n; i++) {
        remember_tensor(memory, i, found[guards->batch[i]], guards);
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
