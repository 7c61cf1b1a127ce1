// Package sockets tells which sockets of a host serve a service address, by cgroup hooks that see
// every bind, listen, connect and last close on the machine. Programs need no change.
package sockets
