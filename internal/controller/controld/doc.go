// Package controld is the controller: hosts and routers join here, hosts say which services they
// serve, operators say how flows are to be shared, and every router is told what follows from it.
//
// One goroutine, the loop, owns all state; handlers post functions to it. Streams to routers and
// hosts have bounded queues, so that nobody who does not read holds up the others. What must outlive
// the process is in internal/controller/store; everything else is told again when hosts and routers reconnect.
package controld
