// Package joining is how a machine becomes a member of a network with keys, or a user one of its administrators, and how
// both end: `scaffold join`, `leave`, `rotate`, `login` and `logout`.
package joining
