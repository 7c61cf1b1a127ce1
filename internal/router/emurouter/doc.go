// Package emurouter is Scaffold's router as a program of emulated routers: what routerd does with the kernel's
// forwarding and its BPF program, and Open vSwitch under the controller's driver, it does inside the engine. It
// registers with the same controller, obeys the same rules, greets hosts and neighbours alike, and carries the control
// channel of its hosts.
//
// A [Router] has two halves. The path is the engine's: it resolves, forwards, answers and probes on the thread that
// the router belongs to. The control is a loop of its own, which keeps the session with the controller; what it
// changes goes to the path by [emu.Router.Do], and what the path found comes back by a mailbox that never waits.
package emurouter
