#include "memo.h"
int memo_holds(Node *n, Walk *w) { PyObject *o = node_access(n, NULL, w); int h = o && node_holds(n, o, w); Py_XDECREF(o); return h; }
void memo_free(struct Memo *m) { (void)m; }
int memo_traverse(struct Memo *m, visitproc v, void *a) { (void)m; (void)v; (void)a; return 0; }
