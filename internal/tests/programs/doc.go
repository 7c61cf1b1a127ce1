// Package programs is tests only: unmodified Debian programs reach replicated services by name over a
// whole Scaffold network, and what they carried is compared byte by byte. docs/programs.md has the
// table of results.
package programs
