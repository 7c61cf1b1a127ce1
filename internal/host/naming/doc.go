// Package naming answers DNS for a host's programs: from memory while it is fresh, else from the controller, else, or where
// that takes long, from memory whatever its age.
package naming
