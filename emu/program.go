package emu

import "time"

// A Program is what a router does with packets, after Click's elements (Kohler et al. 2000). One program serves
// one router unless it says otherwise; all its methods are called by the one thread that the router belongs to.
type Program interface {
	// Process decides where each packet of a batch goes by setting its Port. The batch is the program's until it
	// returns; packets that it set to Taken stay its own afterwards.
	Process(r *Router, batch []Packet)
}

// A Timed program does something at times, too.
type Timed interface {
	Program
	// Wake is called once when the router starts, and then when the moment has come that it returned. Times are
	// those of the network's clock; [Never] is none.
	Wake(r *Router, now time.Duration) (next time.Duration)
}

// Never is a time that does not come.
const Never = time.Duration(1<<63 - 1)

// A Handled program can be looked into and changed while it runs, as by Click's handlers.
type Handled interface {
	Program
	// Handlers are what can be read or written, by name.
	Handlers(r *Router) map[string]Handler
}

// A Handler reads or writes one thing of a router; either function may be nil.
type Handler struct {
	Get func() (string, error)
	Set func(value string) error
	Doc string // a line that says what it is and in which unit
}

// A Factory makes the program of a router from the parameters that a lab file gives it.
type Factory func(parameters map[string]string) (Program, error)
