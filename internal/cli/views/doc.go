// Package views has what several commands show of a network, so that they show it alike: instances, routers and their rules,
// and who gets in.
package views
