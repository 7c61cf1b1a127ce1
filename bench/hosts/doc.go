// Package hosts is hosts and routers that exist on their streams to a controller alone: far more than a machine
// has room for, each with a connection of its own, as real ones have. They say what real ones say, when they
// say it: a host that has joined tells what it serves and each second its load; a router answers rules by what it
// has applied, and probes by hosts that are up.
package hosts
