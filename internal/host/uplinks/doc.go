// Package uplinks holds the interfaces by which a host may be attached: whether they can be used, which router is followed on
// each, and which are not listened to (docs/protocol.md §5.1). What the host gets there, others ask for.
package uplinks
