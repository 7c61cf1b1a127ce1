// Package plan is the controller's mind: topology, hosts, registrations and policy in, rules for
// every router out. It is pure: no clock, no I/O, and the same state gives the same rules whatever
// the order in which it was told (TestOrderDoesNotMatter).
//
// Setters record what is so and mark what depends on it; Drain computes the marked parts, compares
// them with what was said before and returns the difference in the order in which it is safe to
// apply: instances that leave first, then new routes, then new instances, then removals. A
// registration costs its own triple and its service's tables for any port, however many services there are.
//
// The caller owns a Plan and uses it from one goroutine.
package plan
