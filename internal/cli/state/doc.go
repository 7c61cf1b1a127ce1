// Package state is `scaffold state`: backups of what a network's controllers have stored, and how one is put in.
package state
