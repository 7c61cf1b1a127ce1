// Package serving decides which triples a host serves: it counts the sockets of each, and judges by
// the accept queue whether their programs still answer. It is sans I/O: events, samples and times are
// arguments.
package serving
