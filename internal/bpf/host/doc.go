// Package host is the host's edge: two tc programs on each uplink that give programs sockets on names.
//
// What leaves has its service or identity addresses replaced by locator:socketID, what arrives has them
// put back, docs/protocol.md §3. The programs own a flow from connecting to bound, also while the daemon
// is away; the daemon reads flows from the maps only when it must act. core/flow has the same rules in
// Go, and the tests run the same packets through both.
package host
