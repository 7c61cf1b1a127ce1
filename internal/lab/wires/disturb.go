package wires

import "scaffold.dev/scaffold/internal/lab/plan"

// Disturb does to one end of a link what a verb says; whatever is no fault mends it.
func (w *Wirer) Disturb(verb, ns string, p *plan.Port) error {
	switch {
	case verb == "cut" && p.Link.InEngine():
		return nil // the engine loses everything
	case verb == "cut":
		return w.Cut(ns, p.Dev)
	case verb == "unplug", verb == "fail":
		return w.down(ns, p.Dev)
	case verb == "remove":
		return w.remove(ns, p)
	}
	if err := w.replug(ns, p); err != nil {
		return err
	}
	return w.Shape(ns, p.Dev, p.Link.Rate)
}
