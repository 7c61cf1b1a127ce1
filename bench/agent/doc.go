// Package agent holds the load programs that the benchmarks and tests run inside a lab's namespaces,
// as `scaffold-bench agent ...`. They use nothing of Scaffold: plain sockets, so that the same
// program measures a service address and a plain IPv6 address.
//
// Times are CLOCK_MONOTONIC nanoseconds: the same clock in all namespaces of one machine.
package agent
