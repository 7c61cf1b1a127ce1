// Package boostd is the daemon of an agent of boost: it joins internal/boost/agent with the kernel (internal/boost/ends), a
// port for other agents, and a file that says what it is to do.
//
// The file names the other agents with their public keys, and the lanes. Two agents know each other by these keys alone,
// over TLS 1.3: there is nothing to be signed, and nobody in between.
package boostd
