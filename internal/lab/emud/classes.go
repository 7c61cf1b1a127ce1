package emud

import (
	"fmt"

	"scaffold.dev/scaffold/emu/forward"
)

// classFIB is what a router has as its FIB that finds ways by destination classes.
const classFIB = "class"

// startClasses compiles destination classes from all routes, if any router wants them. Where they can not be had
// routers look their tables up, which is slower and otherwise the same.
func (e *engine) startClasses(log func(string, ...any)) {
	for _, r := range e.order {
		if r.cfg.FIB == classFIB {
			classes, err := forward.Compile(e.net)
			if err != nil {
				log("%v: those routers look their own tables up", err)
			}
			e.classes = classes
			return
		}
	}
}

// refreshClasses lets a router's new program take part.
func (e *engine) refreshClasses() error {
	if e.classes == nil {
		return nil
	}
	if err := e.classes.Refresh(); err != nil {
		return fmt.Errorf("destination classes: %w", err)
	}
	return nil
}
