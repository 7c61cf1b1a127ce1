package model

import (
	"context"
	_ "embed" // the model
	"errors"
	"fmt"
	"slices"
	"strings"
)

//go:embed failover.pml
var failover string

// mostAsked and mostConfirms are the code's; a model that is to be searched whole has less of both.
const (
	mostAsked    = 24
	mostConfirms = 6
)

// A course is the Promela process that does what the ends of a failover did. A client's socketID is an epoch there,
// and an instance's is the instance's number, whatever it was called.
type course struct {
	strings.Builder
	base      uint32            // the client's epoch at the beginning, 0 in the model
	epochs    map[uint64]uint32 // of the client's socketIDs
	instances map[uint64]int    // of theirs, by what they said
	most      int               // the highest instance
}

// ReplayFailover has SPIN execute the model of failover along a run that begins with a client that is bound. It returns
// how many events that were: the run's, up to a move of the client with the instance that it got.
func ReplayFailover(ctx context.Context, spin string, run []Event) (n int, err error) {
	first := slices.IndexFunc(run, func(e Event) bool { return e.End == Client })
	if first < 0 || run[first].Before.State != "Bound" {
		return 0, errors.New("the run does not begin with a client that is bound")
	}
	before := run[first].Before
	c := &course{base: before.Epoch, epochs: map[uint64]uint32{before.Socket: 0}, instances: map[uint64]int{before.Peer: 0}}
	c.WriteString("active proctype replay() {\n\tmade[0] = Bound;\n")
	for n < len(run) && c.event(&run[n]) {
		n++
	}
	c.WriteString("}\n")
	return n, execute(ctx, spin, map[string]string{"failover.pml": failover, "trace.pml": c.String()},
		fmt.Sprintf("-DINSTANCES=%d", c.most+1), fmt.Sprintf("-DTRIES=%d", mostAsked), fmt.Sprintf("-DCONFIRMS=%d", mostConfirms), "failover.pml")
}

// event writes what an end did; false where the run goes on as one of the other model.
func (c *course) event(e *Event) bool {
	if e.End != Client {
		c.most = max(c.most, e.End-1)
		c.instance(e)
		return true
	}
	if renegotiates(e) && e.Before.State != "Blocked" && e.Before.State != "Asking" && e.Before.State != "Confirming" {
		return e.What != "move" && e.Before.State == e.After.State // a probe, or what came late
	}
	if e.What == "fail" {
		return false // its program died: there is nothing left to go on with
	}
	c.epochs[e.After.Socket] = e.After.Epoch - c.base
	c.client(e)
	c.said(e)
	fmt.Fprintf(c, "\tassert(client == %s && epoch == %d);\n", e.After.State, e.After.Epoch-c.base)
	return true
}

// client writes the step of the model that a client's event is.
func (c *course) client(e *Event) {
	became := e.After.State
	switch {
	case e.Before.State == "Bound" && became == "Blocked" && e.In == nil:
		c.WriteString("\tblock();\n")
	case e.What == "continue":
		c.WriteString("\tstep(0, Blocked, Asking);\n\task();\n")
	case e.Before.State == "Blocked" && became == "Closed":
		c.WriteString("\tstep(0, Blocked, Closed);\n")
	case e.What == "move":
		c.WriteString("\tmove();\n")
	case e.What == "lost" && e.Before.State == "Confirming":
		c.WriteString("\tanew();\n")
	case e.What == "timer":
		c.WriteString("\ttimer();\n")
	case e.What == "FAIL" && e.Before.State == "Asking":
		// Whether the next one is asked at once is a choice of the model.
		fmt.Fprintf(c, "\tassert(client == Asking);\n")
		if e.In.Socket == e.Before.Socket && (len(e.Out) > 0 || became == "Closed") {
			c.WriteString("\task();\n")
		}
	case e.In != nil:
		c.epoch(e.In)
		fmt.Fprintf(c, "\tatClient(%s, %d, %d);\n", c.kind(e.In), c.from(e.In), c.epoch(e.In))
	}
}

// instance writes that of an instance's, as far as it is about a failover.
func (c *course) instance(e *Event) {
	n := e.End - 1
	for i := range e.Out {
		if e.Out[i].Kind != "FAIL" {
			c.instances[e.Out[i].Socket] = n
		}
	}
	switch {
	case e.What == "RESUME" && e.In.Quote == 0:
		c.epochs[e.In.Socket] = e.In.Epoch - c.base
		if len(e.Out) > 0 && e.Out[0].Kind == "FAIL" { // it cannot, which the model has as a property of the instance
			return
		}
		fmt.Fprintf(c, "\tatInstance(ASK, %d, %d);\n", n, e.In.Epoch-c.base)
	case e.What == "RESUME":
		fmt.Fprintf(c, "\tatInstance(CONFIRM, %d, %d);\n", n, e.In.Epoch-c.base)
	case e.What == "FAIL" && e.Before.State == "Bound":
		ep, known := c.epochs[e.Before.Peer]
		if !known || e.After.State != "Closed" {
			return
		}
		fmt.Fprintf(c, "\tatInstance(GIVEUP, %d, %d);\n", n, ep)
	case e.What == "fail": // its program died
		fmt.Fprintf(c, "\tover(%d);\n", n)
		return
	default:
		return
	}
	for i := range e.Out {
		kind := map[string]string{"RSYNACK": "OFFER", "RACK": "MADE", "FAIL": "FAIL"}[e.Out[i].Kind]
		c.taken(kind, n, e.In.Epoch-c.base)
	}
	c.WriteString("\tassert(quiet);\n")
	if e.What == "RESUME" && e.After.State != "Closed" {
		fmt.Fprintf(c, "\tassert(made[%d] == Bound && held[%d] == %d);\n", n, n, e.After.Seen-c.base)
	} else {
		fmt.Fprintf(c, "\tassert(made[%d] == Closed);\n", n)
	}
}

// said writes that the client sent what it sent, and no more.
func (c *course) said(e *Event) {
	for i := range e.Out {
		m := &e.Out[i]
		switch {
		case m.Kind == "RESUME" && m.Quote == 0:
			c.taken("ASK", 0, m.Epoch-c.base)
		case m.Kind == "RESUME":
			c.taken("CONFIRM", c.instances[m.Quote], m.Epoch-c.base)
		default: // to an instance, about what the client was to it
			c.taken("GIVEUP", c.instances[m.Socket], c.epochs[m.Quote])
		}
	}
	c.WriteString("\tassert(quiet);\n")
}

func (c *course) taken(kind string, n int, epoch uint32) {
	fmt.Fprintf(c, "\tassert(net??[%s, %d, %d]);\n\tnet??%s, %d, %d;\n", kind, n, epoch, kind, n, epoch)
}

// kind is the model's of a message to the client.
func (c *course) kind(m *Message) string {
	return map[string]string{"RSYNACK": "OFFER", "RACK": "MADE", "FAIL": "FAIL", "RSYN": "CLAIM"}[m.Kind]
}

// from is the instance that sent a message to the client.
func (c *course) from(m *Message) int {
	if m.Kind == "FAIL" {
		return c.instances[m.Quote]
	}
	return c.instances[m.Socket]
}

// epoch is that of the client's socketID to which a message came.
func (c *course) epoch(m *Message) uint32 {
	if m.Kind == "FAIL" {
		return c.epochs[m.Socket]
	}
	return c.epochs[m.Quote]
}
