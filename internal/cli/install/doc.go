// Package install is `scaffold install`, `uninstall` and `upgrade`: how a daemon becomes part of a machine, leaves it, and is
// replaced by a newer one.
package install
