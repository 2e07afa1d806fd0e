/* For people: which facts below constant and weak roots are watched, polled, or looked up in each call. */
#include "memo.h"
#include "memo_record.h"

static int
add(PyObject *list, const Guards *guards, const void *in_node, const char *how, const char *what)
{
    Py_ssize_t index = ((const char *)in_node - (const char *)guards->nodes) / (Py_ssize_t)sizeof(Node);
    PyObject *row = Py_BuildValue("nss", index, how, what);
    int result = row != NULL ? PyList_Append(list, row) : -1;
    Py_XDECREF(row);
    return result;
}

static const char *
kind_of_node(const Node *node)
{
    for (int i = 0; i < node->n_checks; i++) {
        if (node->checks[i].kind == CHECK_FUNC_CODE) {
            return "function";
        }
        if (node->checks[i].kind >= CHECK_MRO_EQ && node->checks[i].kind <= CHECK_MRO_LACKS) {
            return "class";
        }
    }
    for (int i = 0; i < node->n_children; i++) {
        if (node->children[i]->access == ACCESS_MRO || node->children[i]->access == ACCESS_FUNC) {
            return node->children[i]->access == ACCESS_MRO ? "class" : "function";
        }
    }
    return "dict";
}

static int
add_memo(PyObject *list, const Guards *guards, const Memo *memo)
{
    for (const Fact *fact = memo->facts; fact != NULL; fact = fact->next) {
        if (fact->watch.on != NULL && add(list, guards, fact->node, "watched", kind_of_node(fact->node)) < 0) {
            return -1;
        }
    }
    for (Py_ssize_t i = 0; i < memo->owners.count; i++) {
        const Owner *owner = (const Owner *)memo->owners.items + i;
        if (add(list, guards, owner->drift, "polled", owner->what) < 0) {
            return -1;
        }
    }
    for (Py_ssize_t i = 0; i < memo->edges.count; i++) {
        if (add(list, guards, ((const Edge *)memo->edges.items)[i].node, "looked up", "way") < 0) {
            return -1;
        }
    }
    for (Py_ssize_t i = 0; i < memo->questions.count; i++) {
        if (add(list, guards, ((const Question *)memo->questions.items)[i].node, "looked up", "check") < 0) {
            return -1;
        }
    }
    return 0;
}

PyObject *
memo_coverage(Guards *guards, PyObject *unused)
{
    (void)unused;
    PyObject *list = PyList_New(0);
    const Node *root = guards->nodes;
    for (int i = 0; list != NULL && i < root->n_children; i++) {
        const Memo *memo = root->children[i]->memo;
        if (memo != NULL && memo->valid && add_memo(list, guards, memo) < 0) {
            Py_CLEAR(list);
        }
    }
    return list;
}
