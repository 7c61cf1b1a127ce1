// Package routerd is the daemon of a router. It greets its neighbours, probes the hosts that hang on
// it, carries their control channel to the controller, and puts the controller's rules into the
// kernel: routes by netlink and, on a service router, instance tables into internal/bpf/router.
//
// One loop owns all state (daemon); goroutines that wait for sockets post to it. The prober has a
// thread of its own. What the daemon put into the kernel works on while the daemon is away; the next
// start adopts it, and only the end by a signal removes it.
package routerd
