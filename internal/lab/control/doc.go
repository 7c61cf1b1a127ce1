// Package control is what a lab says to the daemons of its network, over their API: services are created, routers and hosts
// become members, flows are steered, and it is waited until all have joined and every service has its programs.
package control
