// Package registrations knows what hosts would serve, decides which of it are instances, and tells hosts what they need to
// know of these services (docs/protocol.md §3.6). What a host may not serve, or of a service that is yet to be made, is kept:
// it counts as soon as it may. Instances are stored, and are those of the next term until their host has spoken.
package registrations
