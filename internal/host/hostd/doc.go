// Package hostd is the daemon of a host: it joins the network through the first-hop router, keeps the
// host's edge and kernel set up, tells the controller which services the host's sockets serve, answers
// DNS on the loopback and offers the host's API on a Unix socket.
//
// One goroutine, the loop, owns all state; others wait for something (events, the controller, timers
// of checks) and post what to do to it. Its death leaves every flow running; the next start adopts
// what runs.
package hostd
