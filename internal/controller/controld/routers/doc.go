// Package routers knows the service routers and plain ones of a network: who joins as which, its block of locators, its link
// key, and whether its stream stands. What a router reports it hands to those whom it concerns.
package routers
