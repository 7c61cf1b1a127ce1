// Package setup makes a daemon part of a machine and takes it off again: its unit, its directories and
// user, and the way of the host's resolver to the network's names.
//
// What is to be done is a list of steps, made by looking and changing nothing. They are then shown, or
// taken one by one with their way back, so that an installation that fails leaves nothing. A manifest
// says what was made and what was there before; an uninstallation removes that and nothing else.
package setup
