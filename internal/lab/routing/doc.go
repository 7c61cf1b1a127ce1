// Package routing runs FRR's daemons for the routers of a lab that have some: what they are told follows from the plan, and
// the lab's timeline waits until all of them know all ways, where it follows from the file which ways there are.
package routing
