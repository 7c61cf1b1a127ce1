// Package bench measures Scaffold beside a peer and prints rows of one contract.
//
// The experiments bring up a lab, run load agents (Agent) in its namespaces, and compare with plain
// IPv6 between the same two hosts over the same path, in alternating pairs: on a shared machine only
// ratios taken within the same seconds mean anything.
package bench
