/* Dicts, types and functions that tell when they change. */
#ifndef DYNACORE_WATCH_H
#define DYNACORE_WATCH_H

#include "cpython.h"

/* One interest in one object. It keeps nothing alive: when the object goes, it is told and stops by itself. */
typedef struct Watch {
    struct Watched *on; /* NULL: not watching (any more) */
    struct Watch *next, **link;
    const char *alive; /* 0 there: nobody wants to know any more, so that the watch may be stopped at any time */
    /* Called before the object changes, possibly with an exception set. It may only take notes. `key` is NULL unless
     * one key is concerned. */
    void (*changed)(struct Watch *watch, Change change, PyObject *key);
} Watch;

/* 0: this interpreter doesn't tell when this object changes. `alive` and `changed` are set by the caller. */
int watch_start(Watch *watch, PyObject *object);

void watch_stop(Watch *watch);

extern PyTypeObject Watch_Type;

/* What the probe found that this interpreter tells about. Nothing, before. */
extern struct Watchable {
    char dicts, instances, types, functions;
} watchable;

PyObject *module_set_watchable(PyObject *module, PyObject *kinds);
PyObject *module_watchable(PyObject *module, PyObject *unused);
PyObject *module_watched(PyObject *module, PyObject *unused);

#endif
