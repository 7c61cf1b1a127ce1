// Package checks asks programs of a host whether they serve (docs/services.md): by a connection, by HTTP, or by a command that
// the host allows, as the program's own user. It knows no service, and what an answer means others decide.
package checks
