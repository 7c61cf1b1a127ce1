package emud

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"scaffold.dev/scaffold/emu"
)

// handlers are those of a router's program and those that every router has; to be called on the router's thread.
func (r *router) handlers() map[string]emu.Handler {
	all := map[string]emu.Handler{
		"counters": {Get: r.counters, Doc: "packets so far, as JSON: in, dropped, down, refused, local, made, starved"},
		"program":  {Get: func() (string, error) { return r.program, nil }, Doc: "the program that the router runs"},
		"failure":  {Get: r.lastFailure, Doc: "what its program panicked with, empty while it runs"},
	}
	if p, ok := r.Program().(emu.Handled); ok {
		maps.Copy(all, p.Handlers(r.Router))
	}
	return all
}

func (r *router) counters() (string, error) {
	text, err := json.Marshal(r.Counters())
	return string(text), err
}

func (r *router) lastFailure() (string, error) {
	if err := r.Failure(); err != nil {
		return err.Error(), nil
	}
	return "", nil
}

func (e *engine) listHandlers(req *http.Request) (any, error) {
	r, err := e.routerOf(req)
	if err != nil {
		return nil, err
	}
	var list []HandlerState
	err = e.net.Do(r.Router, func() {
		all := r.handlers()
		for _, name := range slices.Sorted(maps.Keys(all)) {
			h := all[name]
			list = append(list, HandlerState{Name: name, Doc: h.Doc, Read: h.Get != nil, Write: h.Set != nil})
		}
	})
	return list, err
}

// handle finds a handler and uses it, on the router's thread.
func (e *engine) handle(req *http.Request, use func(emu.Handler) error) error {
	r, err := e.routerOf(req)
	if err != nil {
		return err
	}
	name := req.PathValue("handler")
	asked := e.net.Do(r.Router, func() {
		all := r.handlers()
		h, ok := all[name]
		if !ok {
			err = notFound("router %s has no handler %q; it has %s", r.Name(), name, strings.Join(slices.Sorted(maps.Keys(all)), ", "))
			return
		}
		err = use(h)
	})
	if asked != nil {
		return asked
	}
	return err
}

func (e *engine) getHandler(req *http.Request) (any, error) {
	value := ""
	err := e.handle(req, func(h emu.Handler) (err error) {
		if h.Get == nil {
			return bad(fmt.Errorf("handler %q can only be set", req.PathValue("handler")))
		}
		value, err = h.Get()
		return err
	})
	return value, err
}

func (e *engine) setHandler(req *http.Request) (any, error) {
	value := ""
	if err := read(req, &value); err != nil {
		return nil, err
	}
	err := e.handle(req, func(h emu.Handler) error {
		if h.Set == nil {
			return bad(fmt.Errorf("handler %q can only be read", req.PathValue("handler")))
		}
		return bad(h.Set(value))
	})
	return nil, err
}
