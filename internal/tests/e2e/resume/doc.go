// Package resume holds tests of flows that go on at another instance, with the servers of examples/resume
// and unmodified clients, in a network with keys.
package resume
