// Package trust is the cryptography by which the members of a network know each other, docs/protocol.md §5.5:
// the network's authority, which follows from the seed of its Ed25519 key; certificates that say a member's role
// and name; tokens by which somebody becomes one; and the TLS 1.3 configurations of both ends. It stores nothing
// but a member's own files (Directory), and decides nothing about who may do what: that is the controller's.
package trust
