// Package registry knows what this host serves: which sockets listen on services' addresses, whether who holds them may serve,
// whether their programs are ready, and what of that the edge and the controller were told. The arithmetic of sockets and accept
// queues is core/serving's; where the host is, and which namespaces belong to it, it is told by who has that.
package registry
