// Package capture is `scaffold capture`: a service's packets as a host's uplinks see them, with names beside addresses.
package capture
